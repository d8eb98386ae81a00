/*
 * decide_priv.h - questions to the policy, and the denials that follow
 *
 * The policy is asked about physical paths of objects that are already open, never about text that
 * the caller supplied.
 */
#ifndef WRIT_MEDIATE_DECIDE_PRIV_H
#define WRIT_MEDIATE_DECIDE_PRIV_H

#include <stdbool.h>
#include <sys/types.h>

#include "cap/cause.h"
#include "cap/set.h"
#include "lang/protect.h"

struct call;
struct mediator;
struct place;

enum want { WANT_WRITE = 0, WANT_PUT, WANT_READ };

/*
 * Directory from which protected names are matched: the workspace for a grant @cap of the
 * workspace, else the parent of the path that @cap grants.
 */
struct write_root {
	char *path;
	size_t n;
	const struct cap *cap;
};

/* The policy and the live grants, with facts that the mediator computed from them. */
struct rules {
	struct cap_set set;
	/* copy of set.caps, owned by the mediator: the policy's entries, then the live grants */
	struct cap_entry *caps;
	size_t policy_caps; /* number of entries in @caps that come from the policy */
	/* A grant was revoked: callers may still hold directories of the detached mount. */
	bool revoked;
	struct write_root *roots;
	size_t roots_n;
	/*
	 * A rule about files does not simply grant a whole tree: it denies, has a pattern, names
	 * one file, needs approval or limits uses.
	 */
	bool globs;
	bool read_nots; /* some rule denies reading */
	bool put_nots;	/* some rule denies creating */
};

bool mediate_is_below(struct sv path, struct sv dir); /* true if @path is @dir or below it */
bool mediate_is_private(const struct mediator *m, struct sv path);
/* True if @path is in a shared directory, and not in a tree of the host mounted below it. */
bool mediate_is_shared(const struct mediator *m, struct sv path);
bool mediate_is_read_root(const struct mediator *m, struct sv path);
bool mediate_is_read_fixed(const struct mediator *m, struct sv path);
/*
 * True if @p is in a private directory or in /proc: Landlock decides there, and the mediator lets
 * most calls through to the kernel.
 */
bool mediate_is_left_to_kernel(const struct mediator *m, const struct place *p);

/*
 * Decides about @path: private and shared directories need no rule, other paths do. Returns 0, or
 * records a denial and returns -EACCES.
 */
int mediate_decide_path(struct call *c, enum want want, struct sv path);
bool mediate_may(struct mediator *m, enum want want, struct sv path, struct cap_verdict *ret_v);
/*
 * True if a rule denies reading @path, or if no request about @path can be made. False also where
 * nothing grants @path.
 */
bool mediate_read_denied(struct mediator *m, struct sv path);
bool mediate_may_read_device(struct mediator *m, struct sv path);
struct cap_verdict mediate_decide_text(struct mediator *m, const char *action, struct sv resource);

/* mediate_deny*() record the event of a denial and return -EACCES. @detail may be NULL. */
int mediate_deny(struct call *c, struct sv object, uint32_t rule, enum cap_cause cause);
int mediate_deny_detail(struct call *c, struct sv object, uint32_t rule, enum cap_cause cause,
			const char *detail);
int mediate_deny_because(struct call *c, struct sv object, uint32_t rule, enum cap_reason reason,
			 enum cap_cause cause, const char *detail);
int mediate_deny_protected(struct call *c, struct sv object, const struct protect_name *row);

/*
 * Returns how @path relates to protected names: at, above or below one. @dir is the directory that
 * holds @path, to learn whether its file system folds case; -1: unknown, assume folding.
 */
struct protect_hit mediate_protected_at(struct mediator *m, int dir, struct sv path);
/*
 * False if the object @fd on the device @dev is in procfs, sysfs or another file system whose files
 * are interfaces of the kernel.
 */
bool mediate_device_is_plain(struct mediator *m, int fd, dev_t dev);
/*
 * SECURITY: returns the rule that a symbolic link at @path with the target @text would bypass, or
 * RULE_NONE. A rule that denies writing below @path matches paths below @path. Behind the link
 * these paths lead to other files, and the mediator decides about the physical paths of those
 * files, which the rule does not match.
 */
uint32_t mediate_rule_bypassed(const struct mediator *m, struct sv path, struct sv text);
/* Removes each leading ".." of @text together with the last component of @dir. */
void mediate_link_strip_dotdot(struct sv *dir, struct sv *text);
/*
 * Recomputes the roots and flags of struct rules. Call after the set of capabilities has changed.
 */
int mediate_index_roots(struct mediator *m, struct writ_err *err);

#endif
