/*
 * box_priv.h - one container, whatever file describes it
 *
 * Reads:  docker.c, compose.c, devcontainer.c and kube.c fill it
 * Writes: findings
 * Next:   lint_box() applies every container rule once
 */
#ifndef WRIT_LINT_BOX_PRIV_H
#define WRIT_LINT_BOX_PRIV_H

#include "lint/check_priv.h"

enum box_ns {
	NS_NETWORK = 0,
	NS_PID,
	NS_IPC,
	NS_UTS,
	NS_USER,
	NS_CGROUP,
	/* keep last */
	NS_COUNT
};

struct box_item {
	const struct node *at;
	struct sv text;
};

struct box_items {
	struct box_item *v;
	size_t n, room;
};

struct box_mount {
	const struct node *at;
	struct sv source, target;
	bool readonly;
	bool volume; /* a named volume, not a path of the host */
};

struct box_env {
	const struct node *at;
	struct sv name, value;
	bool passed; /* the value comes from the host or a secret store */
};

struct box {
	const struct node *at; /* findings about what is missing point here */
	const struct node *privileged;
	struct box_item ns[NS_COUNT];
	struct box_items caps, devices;
	struct box_items secopts; /* docker's words: "seccomp=unconfined" */
	struct {
		struct box_mount *v;
		size_t n, room;
	} mounts;
	struct {
		struct box_env *v;
		size_t n, room;
	} envs;
	const struct node *entrypoint, *command; /* each a string or a list */
	struct box_item image, user;
	struct box_item name; /* fixed container name */
	bool memory, cpu, pids;
	bool pids_elsewhere; /* kubelet's business, not this file's */
	bool egress_limited; /* no network, or only internal ones */
	bool keeps_running;  /* restarted or detached, not removed */
	bool nonroot;	     /* refuses root by another setting */
	bool agent;	     /* its name or command says so */
	bool caps_dropped, root_readonly;
	/* The rest of the container is described in another file. */
	bool partial;
};

void lint_box(struct check *c, const struct box *b);
bool lint_box_has_authority(const struct box *b); /* over the host */
bool lint_box_is_agent(const struct box *b);
bool lint_box_no_new_privs(const struct box *b);

bool lint_box_add(struct check *c, struct box_items *items, const struct node *at, struct sv text);
void lint_box_mount(struct check *c, struct box *b, struct box_mount m);
void lint_box_env(struct check *c, struct box *b, struct box_env e);
/* "SRC:DST:ro" */
void lint_box_volume(struct check *c, struct box *b, const struct node *at, struct sv spec);
/* "type=bind,source=/x,target=/y,readonly" */
void lint_box_mount_spec(struct check *c, struct box *b, const struct node *at, struct sv spec);
/* "NAME=value" or "NAME" */
void lint_box_env_spec(struct check *c, struct box *b, const struct node *at, struct sv spec);

/* Takes the options of `docker run` and returns how many words they were. */
size_t lint_docker_options(struct check *c, struct box *b, const struct node *const *argv,
			   size_t n);
/* Options, image and command of one container; @at is the engine's name. */
void lint_docker_run(struct check *c, const struct node *at, const struct node *const *argv,
		     size_t n);
/* Is this `docker run` or `podman create`? *@ret_skip words come before options. */
must_check bool lint_docker_is_run(const struct node *const *argv, size_t n, size_t *ret_skip);

#endif
