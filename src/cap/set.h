/*
 * set.h - everything one policy, token or agent may do, with where it came from
 *
 * Reads:  cap/cap.h
 * Writes: nothing
 * Next:   plan/ decides how to enforce a set; cap_set_decide() answers requests
 *
 * Zero grants nothing, so `= {0}` is the safe default. A set borrows its arena.
 */
#ifndef WRIT_CAP_SET_H
#define WRIT_CAP_SET_H

#include "base/id.h"
#include "cap/cap.h"
#include "cap/guarantee.h"

enum cap_limit {
	LIMIT_COMMAND = 0,
	LIMIT_CPU,
	LIMIT_DISK,
	LIMIT_DOWN,
	LIMIT_FILES,
	LIMIT_IDLE,
	LIMIT_MEMORY,
	LIMIT_OUTPUT,
	LIMIT_PIDS,
	LIMIT_REQUESTS,
	LIMIT_SESSION,
	LIMIT_UP,
	/* keep last */
	LIMIT_COUNT
};

enum cap_isolation { ISOLATION_PROCESS = 0, ISOLATION_GVISOR, ISOLATION_VM };
enum cap_workspace { WORKSPACE_DIRECT = 0, WORKSPACE_COW };
enum cap_net_level { NET_LEVEL_HOSTS = 0, NET_LEVEL_HOSTS_DNS, NET_LEVEL_SIGNED };

/* What kind of line a rule is, where that matters beyond its capabilities. */
enum cap_rule_kind {
	RULE_GRANTS = 0,
	RULE_ENV,
	RULE_OPEN,
	RULE_ACCEPT,
	RULE_REQUIRE,
	RULE_DANGER,
	RULE_LIMIT,
	RULE_SHELL,
	RULE_SHELL_NONE,
	RULE_SHELL_FULL,
};

/* One written rule: where it stands and how it reads. Caps point here by index. */
struct cap_rule {
	struct sv file;	  /* "agent.writ", "--allow", "base", "token 2" */
	uint32_t line;	  /* 1-based; 0 if it has none */
	struct sv text;	  /* as a person wrote it, in one line */
	enum cap_rule_kind kind;
	bool built_in;	  /* from base: nobody wrote or chose it */
	bool shipped;	  /* from a shipped profile, base included */
	bool optional;	  /* its path may be missing */
	bool missing;	  /* its path does not exist here */
};

struct cap_entry {
	struct cap cap;
	uint32_t rule; /* index into rules */
};

struct cap_set {
	VEC(struct cap_rule) rules;
	VEC(struct cap_entry) caps; /* grants */
	VEC(struct cap_entry) nots; /* denials */
	VEC(struct cap_entry) prices; /* grant nothing; what they match costs this too */
	uint64_t limits[LIMIT_COUNT];	    /* 0: absent */
	uint32_t limit_rule[LIMIT_COUNT];
	enum level require[G_COUNT];	    /* LEVEL_NONE: nothing asked */
	uint32_t require_rule[G_COUNT];
	bool accepts[G_COUNT];		    /* accept G=LEVEL was written */
	enum level accept[G_COUNT];
	uint32_t accept_rule[G_COUNT];
	enum cap_isolation isolation;
	enum cap_workspace workspace;
	enum cap_net_level net_level;
	uint32_t isolation_rule, workspace_rule, net_level_rule; /* RULE_NONE: default */
	struct cap root; /* fs.write on the whole workspace; action CAP_NONE: there is none */
	struct digest rt; /* of the base profile */
	bool has_rt;
	/* cap_set_index(): the hints of caps and nots close together; NULL if there is none. */
	const struct cap_look *look_caps, *look_nots;
	size_t look_caps_n, look_nots_n;
	/* Only what can reach a connection or a request. */
	const struct cap_look *look_net_caps, *look_net_nots;
	size_t look_net_caps_n, look_net_nots_n;
	/*
	 * What this set is the meet of: each decides too, and must not refuse. So a mistake
	 * in the meet widens nothing, and it can be said who refused.
	 */
	const struct cap_set *hops;
	size_t hops_n;
	struct sv says; /* of a hop: what to say when it refuses; NUL-terminated */
};

/* What cap_set_decide() reads of an entry before it looks at it. */
struct cap_look {
	struct cap_hint hint;
	enum cap_action action;
	uint32_t at; /* which entry */
};

#define RULE_NONE UINT32_MAX

enum cap_answer { CAP_DENY = 0, CAP_ASK, CAP_ALLOW };

struct cap_verdict {
	enum cap_answer answer;
	uint32_t rule; /* the rule that decided; RULE_NONE: the default */
	size_t entry;  /* index into nots (denied by rule) or caps */
	size_t hop;    /* of a denial: 1 + the index of the first hop that refuses; 0: none */
};

const char *cap_limit_name(enum cap_limit l);
must_check bool cap_limit_parse(struct sv s, enum cap_limit *ret_l);

/*
 * Makes decisions on @s quicker. Entries may still be added afterwards: an index
 * that does not fit any more is not used.
 */
must_check bool cap_set_index(struct arena *a, struct cap_set *s);

/* Section 7. @req was parsed as CAP_REQUEST. No allocation, no failure. */
struct cap_verdict cap_set_decide(const struct cap_set *s, const struct cap *req);
/* "hop 2 of 2 dropped it", or NULL if no hop is why @v denies. */
const char *cap_set_says(const struct cap_set *s, const struct cap_verdict *v);

/*
 * Section 4 on sets. On false, *@ret_culprit is the first child grant (index
 * into child->caps) that no parent grant covers, or SIZE_MAX if a limit widens.
 */
bool cap_set_within(const struct cap_set *child, const struct cap_set *parent,
		    size_t *ret_culprit);

/*
 * Section 5 on sets, into the empty *@ret. Rules of @x keep their indices and
 * @y's follow; a met capability belongs to @y's rule, since y is the one that
 * narrows. Whatever had a price on either side is kept among the prices.
 * require takes the stronger level, accept only what both accept,
 * isolation the stronger, cow and the higher net level win.
 */
must_check
int cap_set_meet(struct arena *a, const struct cap_set *x, const struct cap_set *y,
		 struct cap_set *ret, struct writ_err *err);

/* Section 9. */
must_check
int cap_set_digest(const struct cap_set *s, struct digest *ret_digest,
		   struct writ_err *err);

/* Does some grant have @action? */
bool cap_set_has(const struct cap_set *s, enum cap_action action);
/* Does some grant ask for the kernel switch @name, "io_uring" say? */
bool cap_set_kernel(const struct cap_set *s, const char *name);

/* Is @e a system tree that base shows, outside the workspace? */
bool cap_set_of_base(const struct cap_set *s, const struct cap_entry *e);
/*
 * Does the denial @d match in such trees and leave them alone? A pattern takes
 * nothing from them unless its literal beginning leads into one.
 */
bool cap_set_passes_over(const struct cap_set *s, const struct cap *d);
/* Is @req shown by base alone, and does every denial of it pass over that? */
bool cap_set_passed_over(const struct cap_set *s, const struct cap *req, uint32_t *ret_rule);

/* The canonical JSON text that cap_set_digest() hashes. */
must_check int cap_set_encode(const struct cap_set *s, struct buf *b, struct writ_err *err);

#endif
