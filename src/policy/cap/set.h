/*
 * set.h - everything that a policy, token or agent may do, and where each rule came from
 *
 * Reads:  cap/cap.h
 * Writes: nothing
 * Next:   plan/ decides how to enforce a set; cap_set_decide() answers requests
 *
 * A zeroed set grants nothing, so `= {0}` is the safe default. A set borrows the memory of the
 * arena that its capabilities were parsed into.
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
	/* number of values; keep last */
	LIMIT_COUNT
};

enum cap_isolation { ISOLATION_PROCESS = 0, ISOLATION_GVISOR, ISOLATION_VM };
enum cap_workspace { WORKSPACE_DIRECT = 0, WORKSPACE_COW };
enum cap_net_level { NET_LEVEL_HOSTS = 0, NET_LEVEL_HOSTS_DNS, NET_LEVEL_SIGNED };

/* Kind of a policy rule, for code to which the capabilities of the rule do not tell enough. */
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

/*
 * A policy rule as the user wrote it. Capabilities refer to their rule by index, to name their
 * origin.
 */
struct cap_rule {
	struct sv file;	  /* source of the rule: "agent.writ", "--allow", "base", "token 2" */
	/* line of the rule in its source, or number of the rule in a token, from 1; 0: none */
	uint32_t line;
	struct sv text;	  /* text of the rule as the user wrote it, on one line */
	enum cap_rule_kind kind;
	/*
	 * the rule comes from the profile `base` or from writ or, in an agent's set, from the
	 * parent
	 */
	bool built_in;
	/* the rule comes from a shipped profile, or is for a git directory or the agent socket */
	bool shipped;
	bool optional; /* the path of the rule may be missing on this machine */
	bool missing;  /* the rule needs no path on this machine, or its path does not exist */
};

struct cap_entry {
	struct cap cap;
	uint32_t rule; /* index in cap_set.rules of the rule that made the capability */
};

struct cap_set {
	VEC(struct cap_rule) rules;
	VEC(struct cap_entry) caps; /* grants */
	VEC(struct cap_entry) nots; /* denials */
	/*
	 * Price entries: a price entry grants nothing, but a request that matches the entry must
	 * pay its price.
	 */
	VEC(struct cap_entry) prices;
	/* indexed by enum cap_limit; 0: the set has no such limit */
	uint64_t limits[LIMIT_COUNT];
	uint32_t limit_rule[LIMIT_COUNT];
	/* required level of each guarantee; LEVEL_NONE: no requirement */
	enum level require[G_COUNT];
	uint32_t require_rule[G_COUNT];
	bool accepts[G_COUNT]; /* the policy has `accept G=LEVEL` */
	enum level accept[G_COUNT];
	uint32_t accept_rule[G_COUNT];
	enum cap_isolation isolation;
	enum cap_workspace workspace;
	enum cap_net_level net_level;
	/* rules that made these settings; RULE_NONE: the default applies */
	uint32_t isolation_rule, workspace_rule, net_level_rule;
	/* grant of fs.write on the whole workspace; action CAP_NONE if the set has no workspace */
	struct cap root;
	struct digest rt; /* digest of the base profile that the set was made with */
	bool has_rt;
	/*
	 * Index that cap_set_index() makes: the hints of the grants in caps and of the denials in
	 * nots, in compact arrays; NULL without an index.
	 */
	const struct cap_index_entry *index_caps, *index_nots;
	size_t index_caps_n, index_nots_n;
	/* The entries of the index that can match a connection or an HTTP request. */
	const struct cap_index_entry *index_net_caps, *index_net_nots;
	size_t index_net_caps_n, index_net_nots_n;
	/*
	 * The sets that this set is the meet of (the hops of a token chain).
	 * SECURITY: cap_set_decide() also asks each hop, and a hop that refuses wins. A bug in the
	 * meet therefore cannot widen the set, and the denial can name the hop.
	 */
	const struct cap_set *hops;
	size_t hops_n;
	struct sv says; /* message for a request that this set refuses as a hop; NUL-terminated */
};

/* The part of a set's entry that cap_set_decide() reads before the entry itself. */
struct cap_index_entry {
	struct cap_hint hint;
	enum cap_action action;
	uint32_t at; /* index of the entry in cap_set.caps or cap_set.nots */
};

#define RULE_NONE UINT32_MAX

enum cap_answer { CAP_DENY = 0, CAP_ASK, CAP_ALLOW };

struct cap_verdict {
	enum cap_answer answer;
	/* rule that decided about the request; RULE_NONE: the default or a hop decided */
	uint32_t rule;
	/*
	 * entry that decided: index into nots if a rule denied the request, otherwise into caps;
	 * SIZE_MAX if no entry decided
	 */
	size_t entry;
	/* for a denial: 1 + the index of the first hop that refuses; 0: no hop refuses */
	size_t hop;
};

/* Class of a denial, for code. The text of a denial is for people, and no code parses that text. */
enum cap_reason {
	CAP_REASON_OTHER = 0, /* no live grant and no policy rule lifts the denial */
	CAP_REASON_NO_RULE,   /* no rule allows the request; a grant lifts the denial */
	CAP_REASON_RULE,      /* a deny rule matches the request; no grant lifts the denial */
	CAP_REASON_TOKEN,     /* a hop of a token chain does not allow the request */
	CAP_REASON_AGENT,     /* a hop that is an agent block does not allow the request */
	CAP_REASON_PROTECTED, /* the request concerns a protected name */
	CAP_REASON_SOCKET,    /* the request concerns a UNIX socket that a rule could allow */
};
enum { CAP_REASONS = CAP_REASON_SOCKET + 1 };

const char *cap_reason_name(enum cap_reason r);
enum cap_reason cap_reason_parse(struct sv name); /* returns CAP_REASON_OTHER for an unknown name */

const char *cap_limit_name(enum cap_limit l);
must_check bool cap_limit_parse(struct sv s, enum cap_limit *ret_l);

/*
 * Builds an index that makes decisions on @s faster. Callers may still add entries afterwards:
 * cap_set_decide() ignores an index whose size no longer fits the set.
 */
must_check bool cap_set_index(struct arena *a, struct cap_set *s);
/*
 * Copies the session's grants with a count or a byte limit to the prices, because requests of
 * agents use these grants up as well.
 */
must_check int cap_set_price_uses(struct arena *a, struct cap_set *s, struct writ_err *err);

/*
 * Decides about the request @req, which was parsed as CAP_REQUEST (docs/capabilities.md, section
 * 7). Never allocates or fails.
 */
struct cap_verdict cap_set_decide(const struct cap_set *s, const struct cap *req);
/*
 * Returns the message of the hop that refused the request, for example "hop 2 of 2 dropped it", or
 * NULL if no hop refused.
 */
const char *cap_set_hop_message(const struct cap_set *s, const struct cap_verdict *v);
enum cap_reason cap_set_reason(const struct cap_set *s, const struct cap_verdict *v);

/*
 * Is every grant of @child within a grant of @parent, and every limit of @parent kept
 * (docs/capabilities.md, section 4)? If not, *@ret_culprit is the index in child->caps of the first
 * grant that no parent grant covers, or SIZE_MAX if a limit is wider.
 */
bool cap_set_within(const struct cap_set *child, const struct cap_set *parent,
		    size_t *ret_culprit);

/*
 * Computes the meet of two sets (docs/capabilities.md, section 5) into the empty *@ret. Rules of @x
 * keep their indices and the rules of @y follow. A met capability refers to @y's rule, because @y
 * is the set that narrows. Every grant with a price is also kept in prices. For the other members
 * the stronger side wins: the stronger require, isolation and net level, and cow; accept only if
 * both sides accept.
 */
must_check
int cap_set_meet(struct arena *a, const struct cap_set *x, const struct cap_set *y,
		 struct cap_set *ret, struct writ_err *err);

/* Computes the digest of the canonical JSON of @s (docs/capabilities.md, section 9). */
must_check
int cap_set_digest(const struct cap_set *s, struct digest *ret_digest,
		   struct writ_err *err);

/* Does @s have a grant of @action? */
bool cap_set_has(const struct cap_set *s, enum cap_action action);
/* Does @s grant the kernel feature @name, such as "io_uring"? */
bool cap_set_kernel(const struct cap_set *s, const char *name);

/*
 * Does @e, by a built-in rule, grant reading outside the workspace, as base does for system
 * directories?
 */
bool cap_set_is_base_tree(const struct cap_set *s, const struct cap_entry *e);
/*
 * Does the wildcard denial @d leave the system directories of base readable? A user who denies
 * reading of every "secret*" at any depth means the user's own files. A denial with a wildcard
 * therefore leaves system directories readable, unless the literal prefix of the denial leads into
 * one of them.
 */
bool cap_set_spares_base(const struct cap_set *s, const struct cap *d);
/*
 * Is @req readable only through the base profile, and does every denial that matches @req leave
 * system directories alone? Sets *@ret_rule to the rule of base.
 */
bool cap_set_base_only(const struct cap_set *s, const struct cap *req, uint32_t *ret_rule);

/* Appends the canonical JSON text of the set that cap_set_digest() hashes. */
must_check int cap_set_encode(const struct cap_set *s, struct buf *b, struct writ_err *err);

#endif
