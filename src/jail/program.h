/*
 * program.h - the jail program: what writ-init builds, as bytes without pointers
 *
 * Reads:  nothing
 * Writes: nothing; both sides share only these layouts
 * Next:   adapter/ fills one from a plan; jail/init carries it out
 *
 * A program is one sealed memfd: struct jail_head, then tables and strings that
 * the head names by offset. A command (struct jail_command) is another one, so
 * that a session can run more than one. writ-init checks every offset before it
 * does anything. All numbers are native; both ends are the same machine.
 */
#ifndef WRIT_JAIL_PROGRAM_H
#define WRIT_JAIL_PROGRAM_H

#include <stdint.h>

#include "base/err.h"

enum {
	JAIL_MAGIC = 0x54495257, /* "WRIT" */
	JAIL_VERSION = 1,
	JAIL_MAX = 16 << 20, /* bytes of a program or command */
};

/* With ours and one of somebody around us this is all that Landlock has. */
enum { JAIL_LAYERS_MAX = 14 };

/* Descriptors writ-init starts with; everything else is closed first. */
enum { JAIL_FD_SESSION = 3, JAIL_FD_KEEPER = 4 };

/* --- the program --- */

struct jail_span {
	uint32_t at; /* offset in bytes */
	uint32_t n;  /* elements; of strings: bytes without the NUL that follows */
};

enum jail_op {
	JAIL_OP_NONE = 0,
	JAIL_OP_DIR,   /* make directory @dst with mode @arg */
	JAIL_OP_FILE,  /* make file @dst holding the bytes @src, mode @arg */
	JAIL_OP_LINK,  /* symbolic link @dst to @src */
	JAIL_OP_BIND,  /* the host's @src at @dst, mount attributes @arg */
	JAIL_OP_SELF,  /* the jail's own @src at @dst, mount attributes @arg */
	JAIL_OP_TMPFS, /* with options @src ("size=...,mode=...") */
	JAIL_OP_PROC,
	JAIL_OP_DEVPTS,
	JAIL_OP_MASK, /* nothing readable over @dst, whether file or directory */
	JAIL_OP_FEED, /* empty file @dst; who may append to it is the supervisor, see JAIL_SEALED */
	/* keep last */
	JAIL_OP_COUNT
};

enum jail_bind_flag {
	JAIL_OPTIONAL = 1u << 0, /* skip it if @src (BIND) or @dst (MASK, SELF) does not exist */
	JAIL_ALONE = 1u << 1,	 /* without the mounts below it */
	JAIL_TARGET = 1u << 2,	 /* make what it is mounted on, file or directory like the source */
	JAIL_KERNEL = 1u << 3,	 /* MASK, SELF: a name in procfs, where nobody can put a link */
};

struct jail_mount {
	uint16_t op;	/* enum jail_op */
	uint16_t flags; /* enum jail_bind_flag */
	uint32_t pad;
	struct jail_span src, dst;
	uint64_t arg;
};

/* One Landlock rule: @access below @path, which is a name inside the jail. */
struct jail_rule {
	struct jail_span path;
	uint64_t access;
	uint32_t flags; /* JAIL_OPTIONAL */
	uint32_t layer; /* 0: the jail's own ruleset; else one of .layers more */
};

struct jail_rlimit {
	uint32_t resource, pad;
	uint64_t value; /* soft and hard */
};

/* One socket that listens in the jail and is handed out. IPv4 in the first four bytes. */
struct jail_listen {
	uint8_t addr[16];
	uint16_t port;
	uint8_t v6;
	uint8_t kind; /* enum jail_socket */
};
enum jail_socket {
	JAIL_STREAM = 0,
	JAIL_DATAGRAM,
	JAIL_DIALLER, /* bound to nothing: it can connect to what listens inside */
};

/* Addresses that stand for names: 198.18.0.0/15; the first is the jail's own. */
enum { JAIL_POOL_A = 198, JAIL_POOL_B = 18, JAIL_POOL_LEN = 15, JAIL_SOCKETS_MAX = 64 };

struct jail_instruction {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};

enum jail_flag {
	JAIL_OWN_NAMESPACES = 1u << 0, /* tier A */
	JAIL_LANDLOCK = 1u << 1,
	JAIL_TRAPS = 1u << 2,	     /* each command gets the trap filter and a listener */
	JAIL_EXEC_BY_PATH = 1u << 3, /* the filter refuses AT_EMPTY_PATH */
	JAIL_TTY_HOST = 1u << 4,     /* terminals come from outside, as descriptors */
	JAIL_SEND_TRAPPED = 1u << 5, /* among what is mediated is sendmsg() */
	JAIL_POOL = 1u << 6,	     /* addresses for names on lo */
};

struct jail_head {
	uint32_t magic, version, size, flags;
	uint32_t uid, gid;	  /* seen inside */
	struct jail_span mounts;  /* struct jail_mount */
	struct jail_span rules;	  /* struct jail_rule */
	struct jail_span rlimits; /* struct jail_rlimit */
	struct jail_span listens; /* struct jail_listen: there before anything runs */
	struct jail_span base;	  /* struct jail_instruction: the allow-list */
	struct jail_span traps;	  /* struct jail_instruction: what is mediated */
	struct jail_span keeper;  /* struct jail_instruction: what the keeper may still do */
	struct jail_span probes;  /* struct jail_probe: what is tried inside, at start and end */
	struct jail_span hostname;
	uint64_t landlock_fs, landlock_net, landlock_scope; /* handled */
	uint32_t landlock_abi;
	uint32_t fail_at; /* enum jail_step that fails on purpose; 0: none. For the fault suite */
	/*
	 * Rulesets besides the jail's own: one for each set that has to allow what is done.
	 * They are about the contents of files: nobody could go through a directory above
	 * otherwise.
	 */
	uint32_t layers;
	uint32_t pad;
};

/* --- probes: attempts from inside that show what holds --- */

enum jail_probe_op {
	JAIL_PROBE_NONE = 0,
	JAIL_PROBE_OPEN,      /* @path with flags @arg[0]: which file it was, or the error */
	JAIL_PROBE_CALL,      /* system call @number with @arg; none of them is a pointer */
	JAIL_PROBE_SOCKET,    /* socket(@arg[0], @arg[1], @arg[2]) */
	JAIL_PROBE_CONNECT,   /* IPv4 @arg[0], port @arg[1], socket type @number; says @arg[2..3] */
	JAIL_PROBE_RLIMIT,    /* raises limit @arg[0] above @arg[1] */
	JAIL_PROBE_INHERITED, /* finds a descriptor that would go through an exec */
	/* keep last */
	JAIL_PROBE_COUNT
};

struct jail_probe {
	uint16_t op; /* enum jail_probe_op */
	uint16_t number;
	uint32_t pad;
	struct jail_span path;
	uint64_t arg[4];
};

enum jail_phase { JAIL_PHASE_START = 0, JAIL_PHASE_END };

/* Of the prober, as inode numbers; 0: not to be seen. */
enum jail_space {
	JAIL_SPACE_MNT = 0,
	JAIL_SPACE_NET,
	JAIL_SPACE_PID,
	JAIL_SPACE_USER,
	/* keep last */
	JAIL_SPACES
};

enum { JAIL_PROBES_MAX = 48 };

/* What follows a message of PROBED, whole. */
struct jail_probed {
	uint32_t n;
	uint32_t landlock; /* 1: the prober restricted itself */
	uint64_t spaces[JAIL_SPACES];
	struct jail_probe_result {
		uint64_t dev, ino; /* of what was opened */
		int32_t error;	   /* an errno; 0: it worked */
		uint32_t pad;
	} of[JAIL_PROBES_MAX];
};

/* --- a command --- */

enum jail_command_flag {
	JAIL_COMMAND_PROBE = 1u << 0, /* it is the first: what is to be tried inside is tried */
	/*
	 * Then it waits for a byte from the descriptor that is given last; the end of file
	 * means that it may not run. Where its exec is mediated, that is what it waits for.
	 */
	JAIL_COMMAND_GATE = 1u << 1,
};

struct jail_command {
	uint32_t magic, version, size, flags;
	struct jail_span args; /* struct jail_span each: argv */
	struct jail_span env;  /* struct jail_span each: NAME=VALUE */
	struct jail_span path; /* where to look for argv[0]: directories joined by colons */
	struct jail_span cwd;
	struct jail_span program; /* run this file; empty: look for argv[0] */
	uint32_t umask;
	uint32_t pty;	/* bits of 1 << fd: these are the new terminal */
	uint32_t given; /* bits of 1 << fd: these come with the message, in order */
	uint16_t rows, cols;
};

/* --- steps, in the order they are carried out --- */

enum jail_step {
	STEP_NONE = 0,
	STEP_NAMESPACES,
	STEP_ID_MAP,
	STEP_PROGRAM, /* received, sealed, in bounds */
	STEP_ROOT,
	STEP_NETWORK,
	STEP_INNER_USERNS,
	STEP_LIMITS,
	STEP_CLOSE_FDS,
	STEP_DROP_CAPS,
	STEP_NO_NEW_PRIVS,
	STEP_LANDLOCK,
	STEP_SECCOMP,
	STEP_SEALED, /* everything read back and found to hold */
	STEP_EXEC,
	/* keep last */
	STEP_COUNT
};

/* --- messages, one per packet --- */

enum jail_type {
	JAIL_NOTHING = 0,
	/* from the supervisor */
	JAIL_PREPARE, /* descriptor: a program of which only the mounts count, to begin with */
	JAIL_BUILD,  /* descriptor: the program; to pid 1 and to the keeper */
	JAIL_SPAWN,  /* descriptors: the command, then what it is given; @id (not 0) names it.
			@value not 0: the session ends with it */
	JAIL_SIGNAL, /* @value to the foreground of command @id; JAIL_KILL_LED: see there */
	JAIL_END,    /* kill everything, then end */
	JAIL_JOIN,   /* to a keeper that waits for it, before there is a pid 1. Descriptors: the
			cgroups it is to be in; the first @value of them of the unified hierarchy */
	/* from pid 1 */
	JAIL_HELLO,    /* namespaces are there; @value is its pid, by credentials */
	JAIL_SOCKETS,  /* descriptors: @value listeners, from number @id of the program's table */
	JAIL_SEALED,   /* the jail is closed; @value has a bit per step; descriptor: the feed */
	JAIL_LISTENER, /* descriptor: notifications of command @id */
	JAIL_STARTED,  /* command @id; descriptor: master of its terminal, if it has one */
	JAIL_FAILED,   /* @step, and the error says what */
	JAIL_EXITED,   /* command @id with wait status @value */
	JAIL_STOPPED,  /* command @id stopped itself; SIGCONT lets it go on */
	JAIL_PROBED,   /* a struct jail_probed follows; @value is the phase, @id the command */
	JAIL_EMPTY,    /* nothing but pid 1 is left */
	/* between supervisor and keeper */
	JAIL_KEEPER, /* it is ready */
	JAIL_ATTACH, /* @text at its own name inside; @value are mount attributes */
	JAIL_DETACH, /* @text */
	JAIL_LISTEN, /* a struct jail_listen follows; the answer is BOUND with the same @id */
	JAIL_DONE,   /* what was asked for, or the error */
	JAIL_BOUND,  /* descriptor: the listener; or the error */
};

struct jail_message {
	uint32_t type; /* enum jail_type */
	uint32_t id;
	int64_t value;
	uint32_t step; /* enum jail_step */
	uint32_t pad;
	struct writ_err err;
};

/*
 * To a command with a terminal instead of SIGKILL, which would end its leader alone: the
 * leader kills the command and then ends like it.
 */
enum { JAIL_KILL_LED = 64 };

enum { JAIL_PATH = 4096 };
/* What follows a message of ATTACH and DETACH: a path, NUL-terminated. */

#endif
