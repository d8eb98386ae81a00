/*
 * host_path_priv.h - classify paths of the host by the authority that access to them gives
 *
 * Reads:  paths of a configuration file
 * Writes: findings
 * Next:   host_path.c
 */
#ifndef WRIT_LINT_HOST_PATH_PRIV_H
#define WRIT_LINT_HOST_PATH_PRIV_H

#include "lint/check_priv.h"

enum host_path {
	HOST_PATH_OTHER = 0,
	HOST_PATH_ROOT,
	HOST_PATH_SYSTEM,
	HOST_PATH_ENGINE,  /* control socket of a container engine or hypervisor */
	HOST_PATH_SESSION, /* sockets of agents, buses and displays of the login session */
	HOST_PATH_HOME,
	HOST_PATH_CREDENTIAL,
};
enum host_path lint_host_path(struct sv path);
/* Do consecutive segments of @path match an entry of @names, which is NULL-terminated? */
bool lint_path_names(struct sv path, const char *const *names);
/*
 * Does denying @entry, a path or glob, also deny the path @rest ("/.ssh") below the home directory?
 */
bool lint_host_path_covers(struct sv entry, const char *rest);
bool lint_in_home(struct sv path);
struct sv lint_unglob(struct sv path); /* removes final slashes and stars */
/*
 * Reports @path by the rule for its class. Returns false if the class is HOST_PATH_OTHER, which has
 * no rule.
 */
bool lint_host_path_check(struct check *c, const struct node *at, struct sv path);

#endif
