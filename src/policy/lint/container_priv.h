/*
 * container_priv.h - a container, independent of the file format that describes it
 *
 * Reads:  docker.c, compose.c, devcontainer.c and kube.c fill it
 * Writes: findings
 * Next:   lint_container() applies every container rule
 */
#ifndef WRIT_LINT_CONTAINER_PRIV_H
#define WRIT_LINT_CONTAINER_PRIV_H

#include "lint/check_priv.h"

enum container_ns {
	NS_NETWORK = 0,
	NS_PID,
	NS_IPC,
	NS_UTS,
	NS_USER,
	NS_CGROUP,
	/* number of values; keep last */
	NS_COUNT
};

struct container_item {
	const struct node *at;
	struct sv text;
};

struct container_items {
	struct container_item *v;
	size_t n, room;
};

struct container_mount {
	const struct node *at;
	struct sv source, target;
	bool readonly;
	bool volume; /* the source is a named volume, not a path of the host */
};

struct container_env {
	const struct node *at;
	struct sv name, value;
	bool passed; /* the variable's value comes from the host or a secret store */
};

struct container {
	const struct node *at; /* position of findings about missing settings */
	const struct node *privileged;
	struct container_item ns[NS_COUNT];
	struct container_items caps, devices;
	/* security options in docker's notation: "seccomp=unconfined" */
	struct container_items secopts;
	VEC(struct container_mount) mounts;
	VEC(struct container_env) envs;
	const struct node *entrypoint, *command; /* each a string or a list */
	struct container_item image, user;
	/* fixed name of the container, from the option --name or container_name */
	struct container_item name;
	bool memory, cpu, pids;
	bool pids_elsewhere; /* the limit on processes is set outside this file (Kubernetes) */
	/*
	 * egress is or may be limited: no network, an internal or unknown network, a NetworkPolicy
	 */
	bool egress_limited;
	bool keeps_running;  /* the container is restarted or detached, and not removed */
	bool nonroot;	     /* runAsNonRoot is set, so the container refuses to run as root */
	bool agent;	     /* name or command of the container suggest an AI agent */
	bool caps_dropped, root_readonly;
	/* Another file describes the rest of the container, so do not report missing settings. */
	bool partial;
};

void lint_container(struct check *c, const struct container *b);
/* can the container @b control the host? */
bool lint_container_controls_host(const struct container *b);
bool lint_container_is_agent(const struct container *b);
bool lint_container_no_new_privs(const struct container *b);

void lint_container_add(struct check *c, struct container_items *items, const struct node *at,
			struct sv text);
void lint_container_mount(struct check *c, struct container *b, struct container_mount m);
void lint_container_env(struct check *c, struct container *b, struct container_env e);
/* Parses a volume "SRC:DST:ro" and adds the mount to container @b. */
void lint_container_volume(struct check *c, struct container *b, const struct node *at,
			   struct sv spec);
/* Parses "type=bind,source=/x,target=/y,readonly" and adds the mount to container @b. */
void lint_container_mount_spec(struct check *c, struct container *b, const struct node *at,
			       struct sv spec);
/* Parses "NAME=value" or "NAME" and adds the variable to container @b. */
void lint_container_env_spec(struct check *c, struct container *b, const struct node *at,
			     struct sv spec);

/*
 * Parses the options at the start of @argv, options of `docker run`, into @b. Returns the number of
 * words consumed.
 */
size_t lint_docker_options(struct check *c, struct container *b, const struct node *const *argv,
			   size_t n);
/*
 * Checks the container that `docker run` or `docker create` with the words @argv makes: options,
 * image and command. @at is the word with the engine's name.
 */
void lint_docker_run(struct check *c, const struct node *at, const struct node *const *argv,
		     size_t n);
/*
 * Do the words @argv form a command such as `docker run` or `podman create`? *@ret_skip: number of
 * words before the options.
 */
must_check bool lint_docker_is_run(const struct node *const *argv, size_t n, size_t *ret_skip);

#endif
