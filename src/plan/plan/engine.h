/*
 * engine.h - the interface of an engine: what can enforce a policy on this machine
 *
 * Theory of operation
 *
 * An engine turns a plan into a running boundary. The host engine builds it from namespaces,
 * Landlock and seccomp; others may drive a container runtime or a virtual machine. This header has
 * types only. It is part of `plan` because the planner is the lowest layer that needs them; launch
 * hands the planner a const array of engines, so `plan` never calls into src/engine by name.
 *
 * The planner asks one engine what it can enforce:
 *
 *	facts of the machine + capabilities of the policy --able()--> struct engine_able
 *
 * able() answers for every guarantee, every limit and every single capability: the level that the
 * engine reaches on this machine, the mechanism, the price, and a remedy for a low level. The
 * planner does not change these levels. It takes the weakest part of each line of the policy,
 * compares it with `accept` and `require`, and refuses lines that do not hold.
 *
 * The session then runs the plan through a handle, struct engine_run. The session reads the members
 * of that struct; the engine keeps further members of its own behind them.
 *
 *	open      creates a handle; nothing runs yet
 *	prepare   starts the first process inside; possible before the policy is known
 *	furnish   builds the parts of the root that every session has, before the policy is known
 *	limit     sets the resource limits of the session
 *	compile   compiles plan and place into the sealed program, and fills .view for the session
 *	start     sends the program; the event ENGINE_SEALED reports that the boundary is complete
 *	exec      runs a command inside
 *	signal    sends a signal to one command; end kills all processes inside
 *	attach    grants a path to the running session; detach revokes it; listen adds a socket
 *	receive   receives one event from inside; receive_helper receives one answer of the helper
 *	          that carries out attach, detach and listen
 *	mediate   answers trapped calls, in a process that the session forks for this purpose
 *	readback  reads facts about the running boundary from the kernel, as evidence
 *	hits      counts how often the limits were reached
 *	kill      kills the processes inside and waits for the first process
 *	leave     releases the descriptors without waiting for the processes
 *	close     kills the first process, waits for it, and releases the descriptors
 *	release   removes the limits, and kills every process that is left within them
 *
 * Events carry a type and fields (struct engine_event). Events from inside are reports of the first
 * process, which is part of writ, but each statement in them about the agent is untrusted.
 *
 * Invariants
 *   - able() is a pure function of its arguments: no clock, no file, no environment. A plan can be
 *     replayed on another machine from recorded facts (`writ explain --facts FILE`), byte for byte.
 *   - Zero is the safe answer: a struct engine_able of zeros holds nothing.
 *   - An engine that is not built, not installed or not tested sets .lacks, and every guarantee,
 *     limit and rule of its plan is *none*. No table promises a level that no code enforces.
 *
 * Reads:  cap/set.h, facts/facts.h, plan/event.h
 * Writes: nothing
 * Next:   engine/engines lists the engines, engine/host/host is the first
 */
#ifndef WRIT_PLAN_ENGINE_H
#define WRIT_PLAN_ENGINE_H

#include <sys/types.h>

#include "facts/facts.h"
#include "plan/event.h"

enum plan_tier {
	TIER_NONE = 0, /* this machine can build no boundary */
	TIER_A,	       /* user namespaces: the session has its own mounts, processes and network */
	TIER_B,	       /* Landlock, seccomp and mediation in the host's namespaces */
};

/*
 * How well the engine enforces a rule or guarantee: the level, the mechanism (.by), the price
 * (.cost) and a remedy (.fix).
 */
struct hold {
	enum level level;
	const char *by;
	const char *cost; /* price for the agent: "none", "creates ~2x"; never NULL */
	const char *fix;  /* advice for a better level; NULL: none */
};

/* A weakness of this machine that no line of the plan shows, its reason and a remedy. */
struct engine_gap {
	const char *what, *why, *fix; /* object, reason and remedy; .fix may be NULL */
	bool tier;		      /* the gap is the reason why no stronger tier is used */
};
typedef VEC(struct engine_gap) engine_gaps;

/*
 * A step of building the boundary, described for people. Lists of steps are in the order of
 * execution.
 */
struct engine_step {
	const char *name, *what, *why;
};
typedef VEC(struct engine_step) engine_steps;

/* Arguments of engine.able(). */
struct engine_ask {
	const struct host_facts *facts;
	const struct cap_set *set;
	enum plan_tier tier;   /* tier to plan for; TIER_NONE: the engine chooses */
	bool overlay_advisory; /* overlayfs has an open advisory on this kernel */
	bool whole;	       /* plan as if this version of writ lacked no feature; for tests */
};

struct engine_able {
	/* Reason why the engine enforces nothing; NULL: the members below are valid. */
	const char *lacks;
	enum cap_isolation isolation;
	enum plan_tier tier;
	const char *tier_why; /* reason for choosing a tier other than A; NULL for tier A */
	struct hold guarantees[G_COUNT];
	struct hold limits[LIMIT_COUNT];
	/*
	 * Two arrays in the order of the set: @caps has an entry for each capability in set->caps,
	 * @nots one for each denial in set->nots.
	 */
	struct hold *caps, *nots;
	struct hold workspace, net_level;
	/* Bits of 1 << enum cap_limit: limits that a scope of the user's systemd enforces. */
	uint32_t scoped;
	engine_gaps gaps;
	engine_steps steps;
};

struct plan;
struct policy;
struct reach;
struct reach_listener;

/* --- place and view: the session's directories on the host, and inside the boundary --- */

enum engine_boundary {
	ENGINE_FILESYSTEM = 0,
	ENGINE_NETWORK,
	ENGINE_PROCESS,
	ENGINE_RESOURCES,
	ENGINE_CREDENTIALS,
	/* keep ENGINE_BOUNDARIES last */
	ENGINE_BOUNDARIES
};

/* Objects outside the boundary that probes try to reach from inside, and facts about them. */
struct engine_bait {
	struct sv record;  /* path of the session's record, which no process inside may see */
	struct sv person;  /* HOME of the user who runs the session; may be empty */
	uint16_t port;	   /* TCP port of a listener on the host's loopback; 0: none */
	uint64_t nonce[2]; /* bytes that a probe sends to this listener, to be recognised */
	int32_t pid;	   /* pid of the supervisor */
};

/* A probe of the jail program. The rows are in the order of the program. */
struct engine_probe {
	enum engine_boundary boundary;
	const char *name; /* name of the kind of probe, never of an object of this machine */
	/* True: a control attempt, which must succeed; false: the attempt must be refused. */
	bool works;
	bool identity; /* opening another file of the same name counts as a refusal */
	/* The object must exist outside the boundary, or the attempt proves nothing. */
	bool outside;
	bool canary; /* the probe fails its check if the listener outside received its bytes */
	/* Probe only at the start: the object may disappear legitimately during the session. */
	bool once;
	struct sv path;
};

/*
 * The session's directories on the host, and other names that the engine needs. Each directory or
 * file named here exists, unless its member is empty.
 */
struct engine_place {
	struct sv home;	 /* private HOME of the agent, kept per workspace */
	struct sv tmp;	 /* temporary directory of the session in tier B; empty in tier A */
	struct sv shm;	 /* tier B: directory that the mediator substitutes for /dev/shm */
	struct sv info;	 /* tier B: directory of the files that tier A has in /run/writ */
	struct sv rules; /* text (not a path) that describes the policy in force to the agent */
	/*
	 * Path of the socket on which `writ spawn` inside asks for a new agent; NUL-terminated;
	 * empty: none.
	 */
	struct sv spawn;
	struct sv state; /* directory that contains one directory per `state NAME` line */
	struct sv user;	 /* login name that programs inside see */
	struct sv workspace, realm;
	/* Directory with the files of the session's certificate authority; may be empty. */
	struct sv trust;
	struct sv java; /* path of the user's JDK, if the user named one; NUL-terminated */
	struct sv git_name, git_email; /* the user's name and email for commits; empty: not known */
	struct sv own[2]; /* directories of writ's state and policies, never shown inside */
	const struct engine_bait *bait; /* objects for probes; NULL: run no probes */
	/*
	 * Two members that the engine sets itself. @furnished: furnish() has built the parts that
	 * every root has. @cgroup: the directory of a cgroup that enforces the session's limits;
	 * may be empty.
	 */
	bool furnished;
	struct sv cgroup;
};

typedef VEC(struct sv) engine_paths;

/* Properties of the boundary that the rest of the session needs. */
struct engine_view {
	struct sv home, tmp, info, state; /* directories of the session, as paths inside */
	/* Directories of the session, which it may write without a rule. */
	engine_paths private_dirs;
	/*
	 * @shared_dirs: directories of the session that contain a mount of the host further below.
	 * Landlock cannot distinguish the directory from the mount, so the mediator performs writes
	 * in these directories. @host_roots: the paths of the host that rules, or single hops of a
	 * token, grant.
	 */
	engine_paths shared_dirs, host_roots;
	struct sv shm;	/* member of shared_dirs that replaces /dev/shm inside; empty: none */
	size_t mounted; /* number of leading host_roots that are mounted inside */
	engine_paths read_roots; /* trees in which the mediator decides every open */
	/*
	 * Landlock allows reading in at least one of @read_roots. So the mediator must not let an
	 * open for reading continue in the kernel.
	 */
	bool read_all;
	engine_paths read_fixed; /* tier B: paths that the session may read without a rule */
	/* Allowed names and the addresses that stand for these names inside. */
	const struct reach *reach;
	/* Listeners, in the order of ENGINE_SOCKETS; none: no network. */
	VEC(struct reach_listener) listeners;
	bool git;	/* tier A: one more listener, for git, follows @listeners */
	uint32_t traps; /* bits of enum filter_trap; 0: nothing is mediated */
	VEC(struct engine_probe) probes;
	/*
	 * Number of attempts per boundary that writ knows, tried in this session or not; controls
	 * excluded.
	 */
	uint32_t probes_known[ENGINE_BOUNDARIES];
	VEC(struct engine_rlimit {
		uint32_t resource;
		uint64_t value;
	})
	rlimits;
	bool landlock;
	bool own_mounts;
};

/* --- a running boundary --- */

enum {
	ENGINE_PATH = 4096,	       /* maximum size of a path in bytes, with its NUL */
	ENGINE_COMMAND_MAX = 16 << 20, /* maximum size of a command with its environment in bytes */
	ENGINE_FDS_MAX = 64,	       /* maximum number of descriptors of an event */
	ENGINE_PROBES_MAX = 48,
	/*
	 * Signal for a command with a terminal: the process that leads the terminal kills the
	 * command and exits with the command's status.
	 */
	ENGINE_KILL_LED = 64,
	/* Grants of one session that may have a mount; ids of attach() are 1 to this. */
	ENGINE_GRANTS_MAX = 256,
};

/* Identity of an object of the host; @ino 0: any object. */
struct engine_object {
	uint64_t dev, ino;
};

/* Kinds of namespaces of the process that runs the probes. */
enum engine_space {
	ENGINE_SPACE_MNT = 0,
	ENGINE_SPACE_NET,
	ENGINE_SPACE_PID,
	ENGINE_SPACE_USER,
	/* keep ENGINE_SPACES last */
	ENGINE_SPACES
};

enum engine_phase { ENGINE_PHASE_START = 0, ENGINE_PHASE_END };

/* Results of the probes, in the order of engine_view.probes. */
struct engine_probed {
	uint32_t n;
	bool landlock; /* the process that ran the probes had restricted itself with Landlock */
	/* Inode numbers of the namespaces of that process; 0: unknown. */
	uint64_t spaces[ENGINE_SPACES];
	struct engine_probe_result {
		uint64_t dev, ino; /* device and inode of the opened file */
		int32_t error;	   /* errno of the attempt; 0: the attempt succeeded */
	} of[ENGINE_PROBES_MAX];
};

enum { ENGINE_READBACK_MAX = 48 };

/*
 * State of the running boundary. The wanted and found values are texts, as the record stores them.
 */
struct engine_readback {
	size_t n;
	struct engine_readback_row {
		enum engine_boundary boundary;
		bool said; /* the probing process reported the value, because the kernel does not */
		char name[24], want[24], found[44]; /* .found is "?" if it cannot be read */
	} rows[ENGINE_READBACK_MAX];
	char spaces[ENGINE_SPACES][32]; /* kind and inode of each namespace, as text; "": tier B */
	bool mounts_known;
	struct digest mounts; /* digest of the mount list inside */
};

struct engine_hits {
	uint64_t oom;  /* number of processes that the kernel killed for lack of memory */
	uint64_t pids; /* number of forks that the kernel refused */
};

enum engine_event_type {
	ENGINE_UNKNOWN = 0,
	/*
	 * The first process inside runs; .pid: its pid; .err: set if it could not be put within its
	 * limits.
	 */
	ENGINE_HELLO,
	ENGINE_SOCKETS,	 /* .fds: listeners, from number .id of engine_view.listeners */
	ENGINE_SEALED,	 /* the boundary holds; .value: bits 1 << step; .fds: the feed of denials */
	ENGINE_LISTENER, /* .fds: the seccomp listener of command .id */
	ENGINE_STARTED,	 /* a new terminal for command .id was opened; .fds: its master */
	ENGINE_FAILED,	 /* .stage, .step and .err describe a failure; .id: the command, or 0 */
	ENGINE_EXITED,	 /* command .id exited with wait status .value */
	ENGINE_STOPPED,	 /* command .id stopped itself; SIGCONT continues the command */
	/* .probed: results; .value: enum engine_phase; .id: the command; .pid: the prober. */
	ENGINE_PROBED,
	ENGINE_EMPTY, /* no process inside is left but the first process */
	/* Events of receive_helper(). */
	/* Answer to attach() or detach() number .id; .err: set if it failed. */
	ENGINE_DONE,
	/* Answer to listen() number .id; .fds: the socket; on failure none, and .err is set. */
	ENGINE_BOUND,
};

/* Stage of the start at which a failure occurred. */
enum engine_stage {
	ENGINE_STAGE_NONE = 0, /* the failure belongs to no step of the engine */
	ENGINE_STAGE_STEP,     /* a step of building the boundary failed */
	ENGINE_STAGE_EXEC,     /* a command could not be executed */
};

struct engine_event {
	enum engine_event_type type;
	uint32_t id;
	int64_t value;
	enum engine_stage stage;
	const char *step; /* name of the failed step in records */
	struct writ_err err;
	pid_t pid; /* pid of the sender in the supervisor's pid namespace; 0: not known */
	int fds[ENGINE_FDS_MAX]; /* descriptors; the receiver of the event owns them */
	size_t fds_n;
	struct engine_probed probed;
};

struct engine_env {
	struct sv name, value;
};

struct engine_command {
	uint32_t id; /* identifies the command in events; not 0 */
	bool last;   /* the session ends with this command */
	bool probe;  /* run the probes before this command */
	char *const *argv;
	const struct engine_env *env;
	size_t env_n;
	struct sv path; /* directories to search for argv[0], joined by colons */
	struct sv cwd;
	struct sv program; /* path of the program; empty: search for argv[0] */
	uint32_t umask;
	/* Bits of 1 << fd: standard descriptors that are the command's new terminal. */
	uint32_t pty;
	uint32_t given; /* bits of 1 << fd: standard descriptors that are taken from .fds */
	const int *fds; /* array of three standard descriptors */
	/*
	 * The command waits for a byte on this descriptor; at the end of file the command must not
	 * run. -1: do not wait.
	 */
	int gate;
	uint16_t rows, cols;
};

struct engine_listen {
	uint32_t id;
	uint8_t addr[16]; /* an IPv4 address is in the first four bytes */
	uint16_t port;
	bool v6;
	bool dial; /* do not listen: return an unbound socket that can connect inside */
};

/*
 * A handle of one boundary. The session reads these members; the engine keeps more members after
 * this struct.
 */
struct engine_run {
	bool started; /* the first process was started */
	bool waits;   /* the engine starts the first process inside only after limit() */
	bool limited; /* limits of the whole session exist, which release() removes */
	bool scoped;  /* systemd enforces these limits: reap the first process before release() */
	/* Pid of the first process in the supervisor's pid namespace; 0 until ENGINE_HELLO. */
	pid_t init;
	int fd; /* descriptor, readable if receive() has an event; -1: closed */
	/*
	 * Descriptor, readable if receive_helper() has an event; -1: the engine cannot attach
	 * mounts.
	 */
	int helper_fd;
	struct engine_view view; /* properties of the boundary; compile() sets them */
};

struct engine_prepare {
	bool own_namespaces; /* give the session its own namespaces (tier A) */
	uint32_t fail_at;    /* step that must fail, for the fault suite; 0: none */
};

/*
 * A message of the session to the process in mediate(): a seccomp listener, whose descriptor comes
 * with the message, or the capability of a live grant to add or to revoke. The process sends
 * encoded events (plan/event.h) to the session.
 */
struct engine_mediate_message {
	enum { ENGINE_MEDIATE_LISTENER = 1, ENGINE_MEDIATE_GRANT, ENGINE_MEDIATE_REVOKE } type;
	char cap[CAP_TEXT_MAX];
};

struct engine_mediate {
	const struct policy *policy;
	struct sv realm, workspace;
	struct sv state, config; /* directories of writ's own files; @config may be empty */
	int socket;		 /* socket to the session */
	/* Socket to egress, for connections that the mediator redirects; 0: none. */
	int route;
	/* Function that gives memory back; called when no trapped call has come for a while. */
	void (*rest)(void);
};

struct engine {
	const char *name; /* name of the engine in --adapter, records and statements: "host" */
	/* Text for engine_able.lacks, if this version of writ cannot drive the engine. */
	const char *absent;
	/* SHA-256 of the program that runs the probes inside; 32 bytes. */
	const unsigned char *prober;
	/* Fills *@ret, which the caller has set to zero. Allocates from @a. */
	must_check int (*able)(const struct engine *e, struct arena *a,
			       const struct engine_ask *ask, struct engine_able *ret,
			       struct writ_err *err);
	/* Can the engine provide a file of its own at @path, whatever the policy grants? */
	bool (*provides)(struct sv path);

	must_check int (*open)(struct arena *a, struct engine_run **ret, struct writ_err *err);
	must_check int (*prepare)(struct engine_run *run, const struct engine_prepare *how,
				  struct writ_err *err);
	must_check int (*furnish)(struct engine_run *run, struct arena *a,
				  const struct host_facts *facts, struct sv user, const char *id,
				  struct writ_err *err);
	/* Sets the limits of session @id that hold for all its processes together. */
	must_check int (*limit)(struct engine_run *run, const struct plan *plan,
				const uint64_t limits[LIMIT_COUNT], const char *id,
				struct writ_err *err);
	must_check int (*compile)(struct engine_run *run, struct arena *a, const struct plan *plan,
				  const struct policy *policy, const struct engine_place *place,
				  uint32_t fail_at, struct writ_err *err);
	must_check int (*start)(struct engine_run *run, struct writ_err *err);

	must_check int (*exec)(struct engine_run *run, struct arena *a,
			       const struct engine_command *c, struct writ_err *err);
	must_check int (*signal)(struct engine_run *run, uint32_t id, int number,
				 struct writ_err *err);
	must_check int (*end)(struct engine_run *run, struct writ_err *err);
	/*
	 * Attaches the host's @path at the same path inside, if the object there is @expected. The
	 * engine answers with the event
	 * ENGINE_DONE and the same @id; so it does for detach().
	 */
	must_check int (*attach)(struct engine_run *run, uint32_t id, const char *path,
				 const struct engine_object *expected, bool write,
				 struct writ_err *err);
	must_check int (*detach)(struct engine_run *run, uint32_t id, const char *path,
				 struct writ_err *err);
	must_check int (*listen)(struct engine_run *run, const struct engine_listen *l,
				 struct writ_err *err);
	/* Receives one event. Returns 1, 0 at the end of file, or an error. */
	must_check int (*receive)(struct engine_run *run, struct engine_event *ret,
				  struct writ_err *err);
	must_check int (*receive_helper)(struct engine_run *run, struct engine_event *ret,
					 struct writ_err *err);

	/*
	 * Lets the exec that waits at @listener through: the first exec of a command. Returns 1
	 * with *@ret set, 0 if the caller has died, or an error.
	 */
	must_check int (*mediate_first)(int listener, struct mediate_event *ret,
					struct writ_err *err);
	/*
	 * Answers trapped calls until the session closes its end of how->socket. Returns an exit
	 * code.
	 */
	int (*mediate)(const struct engine_run *run, struct arena *a,
		       const struct engine_mediate *how);
	/*
	 * Adds to *@ret the state of the first process if @probed is NULL; call it so once
	 * ENGINE_SEALED has arrived. Otherwise adds the state of process @pid, which has sent
	 * @probed and is about to become a command.
	 */
	void (*readback)(struct engine_run *run, pid_t pid, const struct engine_probed *probed,
			 struct engine_readback *ret);
	must_check int (*hits)(const struct engine_run *run, struct engine_hits *ret,
			       struct writ_err *err);
	/* Removes objects that killed sessions have left on the machine, such as cgroups. */
	void (*sweep)(const struct host_facts *facts);

	void (*kill)(struct engine_run *run);
	void (*leave)(struct engine_run *run);
	void (*close)(struct engine_run *run); /* does nothing if the handle is closed */
	void (*release)(struct engine_run *run);
};

#endif
