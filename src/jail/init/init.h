/*
 * init.h - what the files of writ-init share
 *
 * Reads:  jail/program.h
 * Writes: nothing
 * Next:   main.c starts; steps.c builds; spawn.c runs commands; keep.c is the keeper
 */
#ifndef WRIT_JAIL_INIT_INIT_H
#define WRIT_JAIL_INIT_INIT_H

#include "jail/init/sys.h"
#include "jail/program.h"

enum { COMMANDS_MAX = 256 };

/* pid 1's whole memory. */
struct init {
	bool own_namespaces;
	uint32_t fail_at;	   /* the step that fails on purpose */
	uint32_t done;		   /* bits of 1 << enum jail_step */
	const struct jail_head *p; /* mapped and checked */
	int old_root;		   /* O_PATH, while the root is built; else -1 */
	uint64_t made_dev[4];	   /* devices that are ours: targets are made only there */
	uint32_t made_n;
	int network; /* socket: the network namespace comes from the keeper; else -1 */
	int parent; /* O_PATH: the directory that targets were last made in; else -1 */
	char parent_path[JAIL_PATH];
	int feed;     /* to append to, until it is handed over; else -1 */
	int feed_tree; /* the mount it was opened through, until the root is closed; else -1 */
	int ruleset;  /* Landlock, or -1 */
	int layers[JAIL_LAYERS_MAX]; /* more of them, as many as the program has */
	int children; /* signalfd for SIGCHLD */
	bool ending;
	bool ran;      /* a command was started */
	uint32_t last; /* the session ends with this command; 0: with none */
	uint32_t commands_n;
	struct {
		int pid;
		uint32_t id;
	} commands[COMMANDS_MAX];
};

/* 0, or a negative errno with @err filled for whoever reports it. */
int init_fail(struct writ_err *err, long r, const char *what, const char *object);

/* steps.c */
int step_enter(struct init *in, struct writ_err *err); /* namespaces and id map */
int steps_run(struct init *in, struct writ_err *err, uint32_t *ret_step);
void put_number(char *to, size_t *at, uint64_t n);
int write_text(int dir, const char *path, const char *text);

/* program.c: checks every offset before anything reads through it. */
int program_map(int fd, uint32_t least, const void **ret, uint32_t *ret_size);
int program_check(const struct jail_head *p, uint32_t size);
int command_check(const struct jail_command *c, uint32_t size);
static inline const void *span_at(const void *base, struct jail_span s)
{
	return (const char *)base + s.at;
}

/* root.c */
int root_begin(struct init *in, const struct jail_head *p, struct writ_err *err);
int root_build(struct init *in, struct writ_err *err);

/* net.c */
int net_build(struct init *in, struct writ_err *err);
int net_bring_up(struct writ_err *err);	      /* lo, by the keeper: pid 1 has enough to do */
long net_listen(const struct jail_listen *l); /* a descriptor, or a negative errno */

/* lock.c */
int lock_limits(struct init *in, struct writ_err *err);
int lock_fds(struct init *in, struct writ_err *err);
int lock_caps(struct init *in, struct writ_err *err);
int lock_privs(struct init *in, struct writ_err *err);
int lock_ruleset(struct init *in, struct writ_err *err);
int lock_seccomp(struct init *in, struct writ_err *err);
int lock_verify(struct init *in, struct writ_err *err);

/* spawn.c: in pid 1, starts a command; returns its pid or a negative errno. */
int spawn_command(struct init *in, uint32_t id, int command, const int *fds, uint32_t fds_n);

/* probe.c: tries what the program lists, and says what came of it. */
int probe_run(const struct jail_head *p, enum jail_phase phase, uint32_t id, bool landlock);

/* message.c */
int message_send(int socket, const struct jail_message *m, int fd);
int message_send_many(int socket, const struct jail_message *m, const int *fds, uint32_t n);
/* Returns the number of bytes, 0 at the end, or a negative errno. */
long message_receive(int socket, struct jail_message *ret, char *ret_text, size_t text_room,
		     int *ret_fds, uint32_t room, uint32_t *ret_fds_n);

/* keep.c */
/* Makes the network; pid 1 hears of it at the other end of @socket, which is closed. */
void keeper_network(int socket);
/* @network: that socket; -1: it is made already. */
_Noreturn void keeper_main(int pid1, int network);

#endif
