/*
 * host.h - the host adapter: a plan becomes a jail program
 *
 * Reads:  plan/plan.h, policy/policy.h, names in the host's file system
 * Writes: one sealed jail program
 * Next:   session/ hands it to writ-init and runs commands in it
 *
 * What the policy asks for and this adapter cannot carry out is refused here,
 * before anything starts.
 */
#ifndef WRIT_ADAPTER_HOST_H
#define WRIT_ADAPTER_HOST_H

#include "jail/jail.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "reach/reach.h"

/* Where a session's own things lie on the host. All exist. */
struct host_place {
	struct sv home;	 /* the private HOME, kept per workspace */
	struct sv tmp;	 /* tier B: the session's own temporary directory; else empty */
	struct sv shm;	 /* tier B: stands for /dev/shm, by the mediator */
	struct sv info;	 /* tier B: what /run/writ is in tier A; else empty */
	struct sv rules; /* text for the agent: what it may do */
	struct sv spawn; /* socket that agents are asked for over; with a NUL; empty: none */
	struct sv state; /* directory that holds one per `state NAME` */
	struct sv user;	 /* login name to show inside */
	struct sv workspace, realm;
	struct sv trust;  /* has the files of trust.c for programs inside; or empty */
	struct sv java;	  /* the person's JDK, if they name one; with a NUL behind it */
	struct sv git_name, git_email; /* the person's, for commits; empty: not known */
	struct sv own[2]; /* where writ keeps state and policies; never shown */
	const struct host_bait *bait; /* what probes look for; NULL: nothing is tried */
	bool prepared;	  /* writ-init has what host_prepare() made */
};

/* --- probes.c: what is tried inside, at the start and at the end --- */

enum host_boundary {
	HOST_FILESYSTEM = 0,
	HOST_NETWORK,
	HOST_PROCESS,
	HOST_RESOURCES,
	HOST_CREDENTIALS,
	/* keep last */
	HOST_BOUNDARIES
};

/* What stands outside, for probes to find. */
struct host_bait {
	struct sv record;  /* the session's own record: a file nobody inside can know or open */
	struct sv person;  /* the HOME of whoever runs it; may be empty */
	struct sv cgroup;  /* directory with the session's limits; may be empty */
	uint16_t port;	   /* on the host's loopback somebody listens; 0: nobody */
	uint64_t nonce[2]; /* what a probe says there */
	int32_t pid;	   /* of the supervisor */
};

/* One row per probe of the program, in its order. */
struct host_probe {
	enum host_boundary boundary;
	const char *name; /* a kind, never what it is called here */
	bool works;	  /* a control: it must work. Else it must be refused */
	bool identity;	  /* opening something else of that name is as good as a refusal */
	bool outside;	  /* the same must be there outside, or nothing was shown */
	bool canary;	  /* the listener outside must not have heard of it */
	bool once;	  /* at the start only: what it is about may go away by right */
	struct sv path;
};

/* What the rest of a session needs to know about the jail that was made. */
struct host_view {
	struct sv home, tmp, info, state; /* the same as seen inside */
	VEC(struct sv) private_dirs;	  /* where the session may write by itself */
	/*
	 * Its own too, but with something of the host's mounted below: Landlock cannot
	 * tell these apart, so the mediator writes there.
	 */
	VEC(struct sv) shared_dirs, host_roots;
	struct sv shm; /* one of those, and what /dev/shm means; empty: that is a directory */
	size_t mounted; /* of host_roots, the first: those that are there */
	VEC(struct sv) read_roots; /* every open is mediated */
	bool read_all; /* and Landlock lets read there: no open for reading is let through */
	VEC(struct sv) read_fixed; /* tier B: what may be read without a rule */
	struct reach reach;	   /* names and their addresses inside */
	reach_listeners listeners; /* in the order of the program's table; none: no network */
	bool git; /* in tier A one listener more than @listeners: the last, for git */
	uint32_t traps;		   /* enum filter_trap; 0: nothing is mediated */
	VEC(struct host_probe) probes;
	uint32_t probes_known[HOST_BOUNDARIES]; /* how many there are, wherever it runs */
	VEC(struct jail_rlimit) rlimits;
	bool landlock;
	bool own_mounts;
};

/* Tier A: is a file of ours there, whatever the policy says? */
bool host_makes(struct sv path);

/*
 * What every root has on this machine, whatever the policy: a program that writ-init
 * may carry out while the policy is still read. host_compile() then leaves it out.
 */
must_check int host_prepare(struct arena *a, const struct host_facts *facts, struct sv user,
			    int *ret_program, struct writ_err *err);

/*
 * The program for @plan, as a sealed memfd. Fails with WRIT_E_UNENFORCEABLE if
 * a rule cannot be carried out; the text names it.
 */
must_check int host_compile(struct arena *a, const struct plan *plan, const struct policy *policy,
			    const struct host_place *place, uint32_t fail_at,
			    struct host_view *ret_view, int *ret_program, struct writ_err *err);

#endif
