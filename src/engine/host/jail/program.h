/*
 * program.h - the jail program: what writ-init builds, as bytes without pointers
 *
 * Reads:  nothing
 * Writes: nothing; the supervisor and writ-init share only these layouts
 * Next:   compile/ fills one from a plan; init/ carries it out
 *
 * A program is one sealed memfd: struct jail_head, then tables and strings that the head names by
 * offset. Each command (struct jail_command) is a sealed memfd of its own, so that a session can
 * run several commands. writ-init checks every offset before it uses the bytes. All numbers have
 * the byte order of the machine, because sender and receiver run on the same machine.
 */
#ifndef WRIT_JAIL_PROGRAM_H
#define WRIT_JAIL_PROGRAM_H

#include <stdint.h>

#include "base/err.h"
#include "jail/steps.def"

enum {
	JAIL_MAGIC = 0x54495257, /* "WRIT" */
	JAIL_VERSION = 1,
	JAIL_MAX = 16 << 20, /* maximum size of a program or command in bytes */
};

/*
 * Maximum number of Landlock rulesets besides the jail's own. The kernel stacks 16 rulesets at
 * most: these, the jail's own, and one of a sandbox that may surround writ.
 */
enum { JAIL_LAYERS_MAX = 14 };

/*
 * Numbers of the two sockets that writ-init starts with. Besides them it inherits only /dev/null,
 * as descriptors 0 to 2.
 */
enum { JAIL_FD_SESSION = 3, JAIL_FD_KEEPER = 4 };

/* --- the program --- */

struct jail_span {
	uint32_t at; /* offset of the first element in the program or command, in bytes */
	uint32_t n;  /* number of elements; of a string: bytes without the NUL that follows */
};

enum jail_op {
	JAIL_OP_NONE = 0,
	JAIL_OP_DIR,   /* create the directory @dst with mode @arg */
	JAIL_OP_FILE,  /* create the file @dst with content @src and mode @arg */
	JAIL_OP_LINK,  /* create the symbolic link @dst to @src */
	JAIL_OP_BIND,  /* mount the host's @src at @dst with mount attributes @arg */
	JAIL_OP_SELF,  /* mount the jail's own @src at @dst with mount attributes @arg */
	JAIL_OP_TMPFS, /* mount a tmpfs at @dst with options @src ("size=...,mode=...") */
	JAIL_OP_PROC,
	JAIL_OP_DEVPTS,
	/*
	 * Cover the directory @dst by an empty one, or the file @dst by an empty file without
	 * access rights.
	 */
	JAIL_OP_MASK,
	/* Create an empty file @dst to which only the supervisor can append, see JAIL_SEALED. */
	JAIL_OP_FEED,
	/* keep JAIL_OP_COUNT last */
	JAIL_OP_COUNT
};

enum jail_bind_flag {
	/* Skip the mount if @src (BIND, SELF) or @dst (MASK) does not exist. */
	JAIL_OPTIONAL = 1u << 0,
	JAIL_TARGET = 1u << 2, /* create the mount target, a file or a directory like the source */
	/* MASK, SELF: @dst is a name in procfs, where no user can create a link. */
	JAIL_KERNEL = 1u << 3,
};

struct jail_mount {
	uint16_t op;	/* enum jail_op */
	uint16_t flags; /* enum jail_bind_flag */
	uint32_t pad;
	struct jail_span src, dst;
	uint64_t arg;
};

/* A Landlock rule: grants @access below @path, a path inside the jail. */
struct jail_rule {
	struct jail_span path;
	uint64_t access;
	uint32_t flags; /* JAIL_OPTIONAL: skip the rule if @path does not exist; or 0 */
	/* Number of the ruleset; 0: the jail's own, 1 to jail_head.layers: a further one. */
	uint32_t layer;
};

struct jail_rlimit {
	uint32_t resource, pad;
	uint64_t value; /* value of both the soft and the hard limit */
};

/*
 * A socket that writ-init opens in the jail's network and sends to the supervisor. An IPv4 address
 * is in the first four bytes of addr.
 */
struct jail_listen {
	uint8_t addr[16];
	uint16_t port;
	uint8_t v6;
	uint8_t kind; /* enum jail_socket */
};
enum jail_socket {
	JAIL_STREAM = 0,
	JAIL_DATAGRAM,
	JAIL_DIALLER, /* an unbound socket that can connect to listeners inside the jail */
};

/*
 * Range of addresses that stand for allowed names: 198.18.0.0/15. The jail's own address is
 * 198.18.0.1. JAIL_SOCKETS_MAX is the maximum number of descriptors in one message.
 */
enum { JAIL_POOL_A = 198, JAIL_POOL_B = 18, JAIL_POOL_LEN = 15, JAIL_SOCKETS_MAX = 64 };

struct jail_instruction {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};

enum jail_flag {
	JAIL_OWN_NAMESPACES = 1u << 0, /* the jail has its own namespaces (tier A) */
	JAIL_LANDLOCK = 1u << 1,
	JAIL_TRAPS = 1u << 2, /* each command installs the trap filter and sends a listener */
	/* Execute programs by path: the base filter refuses AT_EMPTY_PATH. */
	JAIL_EXEC_BY_PATH = 1u << 3,
	/* Terminals of commands come from the supervisor, as descriptors. */
	JAIL_TTY_HOST = 1u << 4,
	JAIL_SEND_TRAPPED = 1u << 5, /* the trap filter traps sendmsg() */
	JAIL_POOL = 1u << 6,	     /* lo gets the addresses that stand for allowed names */
};

struct jail_head {
	uint32_t magic, version, size, flags;
	uint32_t uid, gid;	  /* ids that commands see */
	struct jail_span mounts;  /* table of struct jail_mount */
	struct jail_span rules;	  /* table of struct jail_rule */
	struct jail_span rlimits; /* table of struct jail_rlimit */
	struct jail_span listens; /* table of struct jail_listen: opened before any command runs */
	struct jail_span base; /* table of struct jail_instruction: the base filter (allow-list) */
	/* Table of struct jail_instruction: the trap filter (mediated calls). */
	struct jail_span traps;
	struct jail_span keeper; /* table of struct jail_instruction: the keeper's filter */
	/*
	 * Table of struct jail_probe: attempts made inside at the start and the end of the session.
	 */
	struct jail_span probes;
	struct jail_span hostname;
	/*
	 * Rights that the jail's own Landlock ruleset handles. The further rulesets handle
	 * landlock_fs without LL_READ_DIR, and nothing else.
	 */
	uint64_t landlock_fs, landlock_net, landlock_scope;
	uint32_t landlock_abi;
	uint32_t fail_at; /* enum jail_step that fails on purpose, for the fault suite; 0: none */
	/*
	 * Number of Landlock rulesets besides the jail's own: one for each capability set that must
	 * allow an access. These rulesets do not restrict listing directories, so that a program
	 * can still open the directories above a granted path.
	 */
	uint32_t layers;
	uint32_t pad;
	/* Most open files of a command; 0: no limit besides @rlimits. See rlimit_files_of(). */
	uint64_t files;
};

/* --- probes: attempts from inside that show what holds --- */

enum jail_probe_op {
	JAIL_PROBE_NONE = 0,
	/* Opens @path with flags @arg[0]; reports the identity of the file, or the error. */
	JAIL_PROBE_OPEN,
	/* Makes system call @number with arguments @arg, none of which is a pointer. */
	JAIL_PROBE_CALL,
	JAIL_PROBE_SOCKET, /* calls socket(@arg[0], @arg[1], @arg[2]) */
	/*
	 * Connects a socket of type @number to IPv4 @arg[0], port @arg[1]; sends @arg[2..3] unless
	 * @arg[2] is 0.
	 */
	JAIL_PROBE_CONNECT,
	JAIL_PROBE_RLIMIT,    /* tries to raise resource limit @arg[0] above the value @arg[1] */
	JAIL_PROBE_INHERITED, /* searches for a descriptor that an exec would pass on */
	/* keep JAIL_PROBE_COUNT last */
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

/*
 * Kinds of namespaces of the process that runs the probes. jail_probed.spaces holds inode numbers;
 * 0: not known.
 */
enum jail_space {
	JAIL_SPACE_MNT = 0,
	JAIL_SPACE_NET,
	JAIL_SPACE_PID,
	JAIL_SPACE_USER,
	/* keep JAIL_SPACES last */
	JAIL_SPACES
};

enum { JAIL_PROBES_MAX = 48 };

/* Payload of a JAIL_PROBED message. */
struct jail_probed {
	uint32_t n;
	/* 1: the process that ran the probes had restricted itself with Landlock. */
	uint32_t landlock;
	uint64_t spaces[JAIL_SPACES];
	struct jail_probe_result {
		uint64_t dev, ino; /* device and inode of the opened file */
		int32_t error;	   /* errno of the attempt; 0: the attempt succeeded */
		uint32_t pad;
	} of[JAIL_PROBES_MAX];
};

/* --- a command --- */

enum jail_command_flag {
	JAIL_COMMAND_PROBE = 1u << 0, /* run the probes of the jail program before the command */
	/*
	 * The command waits for a byte on the last descriptor of JAIL_SPAWN; at the end of file the
	 * command must not run. If exec is mediated, the command has no such descriptor: the
	 * command waits in its exec until the mediator answers.
	 */
	JAIL_COMMAND_GATE = 1u << 1,
};

struct jail_command {
	uint32_t magic, version, size, flags;
	struct jail_span args; /* argv: table of struct jail_span */
	struct jail_span env;  /* environment, each NAME=VALUE: table of struct jail_span */
	struct jail_span path; /* directories in which to search for argv[0], joined by colons */
	struct jail_span cwd;
	struct jail_span program; /* path of the program; empty: search for argv[0] */
	uint32_t umask;
	uint32_t pty; /* bits of 1 << fd: standard descriptors on the command's new terminal */
	/* Bits of 1 << fd: standard descriptors that JAIL_SPAWN carries, in this order. */
	uint32_t given;
	uint16_t rows, cols;
};

/* Steps of the start, in the order of execution: STEP_NAMESPACES ... STEP_EXEC. */
enum jail_step {
	STEP_NONE = 0,
#define ENUMERATOR(id, name, only, needs, run, what, why) STEP_##id,
	JAIL_STEPS(ENUMERATOR)
#undef ENUMERATOR
	/* keep STEP_COUNT last */
	STEP_COUNT
};

/* --- messages, one per packet --- */

enum jail_type {
	JAIL_NOTHING = 0,
	/* Messages from the supervisor. */
	/* Descriptor: a program; pid 1 performs only its mounts and waits for JAIL_BUILD. */
	JAIL_PREPARE,
	JAIL_BUILD, /* descriptor: the complete program; for pid 1 and for the keeper */
	/*
	 * Descriptors: the command, then its standard descriptors, then its gate if it has one. @id
	 * (not 0) names the command. If @value is not 0, the session ends with this command.
	 */
	JAIL_SPAWN,
	JAIL_SIGNAL, /* send signal @value to the process group of command @id; see JAIL_KILL_LED */
	JAIL_END,    /* kill all processes of the jail, then exit */
	/*
	 * Sent to a keeper that waits for this message before it creates pid 1. Descriptors:
	 * directories of the cgroups of pid 1; the first @value belong to the unified hierarchy.
	 */
	JAIL_JOIN,
	/* Messages from pid 1, or from a command before its exec. */
	JAIL_HELLO,   /* the namespaces exist; the credentials of the message carry pid 1's pid */
	JAIL_SOCKETS, /* descriptors: @value listeners, from number @id of the table of listeners */
	/* The jail is sealed; @value: a bit per completed jail_step; descriptor: denials.jsonl. */
	JAIL_SEALED,
	JAIL_LISTENER, /* descriptor: the seccomp listener of command @id */
	JAIL_STARTED,  /* a new terminal for command @id was opened; descriptor: its master */
	JAIL_FAILED,   /* step @step failed with the error @err */
	JAIL_EXITED,   /* command @id exited with wait status @value */
	JAIL_STOPPED,  /* command @id stopped itself; SIGCONT continues the command */
	JAIL_PROBED,   /* a struct jail_probed follows; @value: enum jail_phase; @id: the command */
	JAIL_EMPTY,    /* no process of the jail is left but pid 1 */
	/* Messages between the supervisor and the keeper. */
	/*
	 * To the supervisor: the keeper can now enter the jail's mount namespace. To pid 1: the new
	 * network namespace (descriptor), or the error.
	 */
	JAIL_KEEPER,
	/*
	 * Attach the host's path at the same path inside, as the mount of grant @id; @value: mount
	 * attributes. The text is a struct jail_object, followed by the path.
	 */
	JAIL_ATTACH,
	JAIL_DETACH, /* detach the mount of grant @id; the path in the text is for messages only */
	/*
	 * Bind the struct jail_listen that follows; the keeper answers JAIL_BOUND with the same
	 * @id.
	 */
	JAIL_LISTEN,
	JAIL_DONE,  /* answer to JAIL_ATTACH or JAIL_DETACH, with the error if it failed */
	JAIL_BOUND, /* answer to JAIL_LISTEN; descriptor: the socket, or none and the error */
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
 * Signal for a command with a terminal, instead of SIGKILL. SIGKILL would end only the process that
 * leads the terminal; with this signal the leader kills the command and then exits with the status
 * of the command.
 */
enum { JAIL_KILL_LED = 64 };

enum { JAIL_PATH = 4096 };
enum { JAIL_GRANTS_MAX = 256 }; /* ids of grants are 1 to this */
/* The object that must be at the path of JAIL_ATTACH; @ino 0: any object. */
struct jail_object {
	uint64_t dev, ino;
};
/* JAIL_ATTACH and JAIL_DETACH carry a NUL-terminated path of at most JAIL_PATH bytes. */

#endif
