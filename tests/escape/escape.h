/*
 * escape.h - attempts to leave a sandbox, as rows; who makes the scene and who judges
 *
 * Reads:  a scene below one directory, made by `setup` outside of any sandbox
 * Writes: that scene only; what an attempt reaches was put there to be reached
 * Next:   `writ conform` starts setup, attempt and judge in turn and prints the matrix
 *
 * A row is one attempt. `attempt` runs inside the sandbox under test and tries as
 * hard as it can; what it claims counts only where nothing outside could see it.
 * `judge` runs outside and looks at canaries, listeners, victims and the output.
 * `control` is the same operation where it is allowed: it shows that a refusal
 * is about the boundary and not about a broken operation.
 */
#ifndef ESCAPE_ESCAPE_H
#define ESCAPE_ESCAPE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define PRINTF(a, b) __attribute__((format(printf, a, b)))

enum {
	PATH_SIZE = 1024,
	SECRET_SIZE = 33,    /* 32 hexadecimal digits and the end */
	ATTEMPT_SECONDS = 3, /* for one attempt in a batch */
	VICTIM_FD = 100,     /* the victim holds its canary open here */
};

/* How an escape is seen. Any one that applies is enough. */
enum judge_by {
	BY_CANARY = 1u << 0,  /* something below out/ID is not as it was */
	BY_SECRET = 1u << 1,  /* the row's secret is in the attempt's output */
	BY_EVENT = 1u << 2,   /* a listener or terminal outside noticed something */
	BY_VICTIM = 1u << 3,  /* the victim is dead, stopped or changed */
	BY_WATCH = 1u << 4,   /* row->arg below the workspace is not as it was */
	BY_REPORT = 1u << 5,  /* the attempt says so itself: nothing outside can see it */
	BY_BEAT = 1u << 6,    /* something still runs after the sandbox has ended */
	BY_MTIME = 1u << 7,   /* the canary's time stamp is in the output */
	BY_OUTPUT = 1u << 8,  /* more output than row->num bytes came out */
	BY_TASKS = 1u << 9,   /* more than row->num tasks with the scene's mark at once */
	BY_MOUNT = 1u << 10,  /* a mount below the scene is visible on the host */
	BY_IPC = 1u << 11,    /* the shared memory segment was changed */
	BY_AMOUNT = 1u << 12, /* more than row->num bytes were taken */
};

/* What the scene must hold for a row. */
enum need {
	NEED_VICTIM = 1u << 0,
	NEED_UNIX = 1u << 1,	    /* out/ID/stream, dgram and seq */
	NEED_ABSTRACT = 1u << 2,    /* the same three without a path */
	NEED_INET = 1u << 3,	    /* TCP and UDP on the loopback, v4 and v6, one port */
	NEED_WORK_SOCKET = 1u << 4, /* listeners of the host inside the workspace, of each kind */
	NEED_FD_PASSER = 1u << 5,   /* the same, and it hands out a writable canary */
	NEED_SYSV = 1u << 6,
	NEED_MQ = 1u << 7,
	NEED_KEY = 1u << 8,	  /* a secret in the user's keyring */
	NEED_PTY = 1u << 9,	  /* another terminal of the same user */
	NEED_DIAL = 1u << 10,	  /* the host tries to connect to us */
	NEED_TMP = 1u << 11,	  /* a canary in /tmp and one in /dev/shm */
	NEED_HOME = 1u << 12,	  /* out/ID is a home directory with the usual secrets */
	NEED_EXISTING = 1u << 13, /* row->arg exists in the workspace */
	NEED_LITE = 1u << 14,	  /* a UDP-Lite listener */
	NEED_HIDDEN = 1u << 15,	  /* hidden.env and hidden.d in the workspace hold the secret */
};

enum row_flag {
	ROW_OWN = 1u << 0,	  /* needs a sandbox of its own */
	ROW_LAUNCH = 1u << 1,	  /* started through `launch`: descriptors, environment, terminal */
	ROW_NEVER_BARE = 1u << 2, /* not run without a sandbox: it would hurt the machine */
	ROW_INHERENT = 1u << 3,	  /* the kernel refuses it anyway; must stay so */
	ROW_KILL_SUPERVISOR = 1u << 4, /* the runner kills the sandbox's first process */
	ROW_ROOT_SETUP = 1u << 5,      /* the scene needs `setup-root` */
	ROW_POSITIVE = 1u << 6,	       /* must work inside: guards against a useless sandbox */
	ROW_TTY = 1u << 7,	       /* launch gives it a controlling terminal */
	ROW_SERIAL = 1u << 8,	       /* measures the host: nothing beside it */
	ROW_TIMED = 1u << 9,	       /* judged after a few seconds, whether it has ended or not */
};

struct ctx;

struct row {
	const char *id;
	const char *bound;
	const char *guarantee;
	const char *what;
	int (*fn)(struct ctx *c); /* 0: it worked; -errno: it was refused */
	int (*control)(struct ctx *c);
	unsigned by;
	unsigned need;
	unsigned flags;
	const char *arg;
	long num;
	const char *policy; /* one more policy line this row needs */
	const char *gap;    /* a gap of the plan that speaks of this very row */
};

struct table {
	const struct row *v;
	size_t n;
};

/* Everything an attempt knows. In a control, base lies in the workspace. */
struct ctx {
	const struct row *row;
	bool control;
	char dir[PATH_SIZE];  /* the scene */
	char root[PATH_SIZE]; /* DIR/work */
	char work[PATH_SIZE]; /* DIR/work/ID */
	char out[PATH_SIZE];  /* DIR/out/ID */
	char base[PATH_SIZE]; /* where the attempt acts: out, or work/ID.c in a control */
	char rel[PATH_SIZE];  /* base, seen from work */
};

/* --- util.c --- */
void fmt(char *buf, size_t size, const char *format, ...) PRINTF(3, 4);
/* One of 256 rotating buffers: do not keep it across a loop that calls this. */
const char *path(const char *format, ...) PRINTF(1, 2);
void say(const struct ctx *c, const char *format, ...) PRINTF(2, 3);
void say_bytes(const struct ctx *c, const char *bytes, size_t n);
int rc(long r); /* 0, or -errno */
int write_file(const char *name, const char *text);
int read_text(const char *name, char *buf, size_t size);
int say_file(const struct ctx *c, const char *name);
int say_fd(const struct ctx *c, int fd);
int put(int fd); /* writes a mark through @fd and closes it */
long number_of(const char *text);
pid_t parent_of(const struct ctx *c);
const char *target(const struct ctx *c, const char *key);
long target_num(const struct ctx *c, const char *key);
void nap(int milliseconds);
int wait_for(pid_t pid); /* 0: it exited with 0; else -EIO or -the exit code */
int in_child(struct ctx *c, int (*fn)(struct ctx *c));
int enter_userns(int flags);
int remove_tree(const char *name);

/* --- raw.c --- */
struct io_uring_sqe;
int uring_one(const struct io_uring_sqe *sqe);
long int80(long nr, long a, long b, long d, long e, long f);
char *low_memory(void); /* one page a 32-bit call can name */

/* --- scene.c, daemon.c, state.c, judge.c --- */
int scene_setup(const char *dir, const char *const *ids, size_t n);
int scene_setup_root(const char *dir);
int scene_teardown(const char *dir);
void make_tree(const char *base, const char *secret);
int launch(const struct row *row, const char *dir, char **argv);
int victim_main(char **argv);
int daemon_start(const char *dir, const struct row *const *rows, size_t n);
void secret_of(const char *dir, const struct row *row, char buf[SECRET_SIZE]);
const char *abstract_name(const char *dir, const char *id, const char *kind);
const char *mark_of(const char *dir); /* what counted tasks are called */
extern char victim_memory[64];
struct text {
	char *v;
	size_t n, max;
};
void canary_state(struct text *t, const char *dir, const struct row *row);
const char *watch_path(const char *dir, const struct row *row);
void victim_state(struct text *t, pid_t pid, uintptr_t memory_at);
void text_add(struct text *t, const char *format, ...) PRINTF(2, 3);
void snapshot(struct text *t, const char *name, bool deep, bool inode);
int judge(const struct row *row, const char *dir, const struct text *out, struct text *ret_why);

/* --- the rows --- */
const struct row *row_at(size_t i); /* NULL behind the last one */
const struct row *row_find(const char *id);
int open_canary(struct ctx *c, const char *name, int flags); /* the plain way */
pid_t victim(struct ctx *c);
int dial(struct ctx *c, const char *kind, struct sockaddr_storage *ret, socklen_t *ret_n);

#endif
