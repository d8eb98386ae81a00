/*
 * git.h - fetch from and push to the repositories of `allow git`, outside the session
 *
 * Theory of operation
 *
 * A session with `allow git URL` gets neither the operator's keys nor a connection to the
 * git server. Inside, git is configured to rewrite every spelling of a granted URL to git's
 * own protocol at an address of the session. The helper, a process outside, serves that
 * address, one child process per connection (serve.c):
 *
 *   fetch  The helper updates a mirror of the repository with the operator's own git, keys
 *          and credential helpers (mirror.c), then runs upload-pack on the mirror.
 *   push   The helper runs receive-pack on a quarantine, an empty repository that borrows the
 *          mirror's objects. A pre-receive hook reports the refs; the helper decides about
 *          each of them, pushes the new objects to the real repository with the operator's
 *          git, and only then lets the hook succeed.
 *
 * Git processes that parse bytes of the agent run confined: no network, no home directory,
 * no configuration of the operator, Landlock rules for the repository at hand (run.c). If the
 * session has a limit of bytes, another process relays and counts them (meter.c).
 *
 * Invariants
 *   - Credentials are used only by git processes that read no bytes of the agent, except
 *     objects that git has verified (receive.fsckObjects) and refs that the helper checked.
 *   - A push is never forced, deletes nothing, and is all or nothing.
 *   - Nothing that the quarantined git reports is trusted; the helper validates it again.
 *   - Messages of the operator's git go to the record, not into the session.
 *
 * Common mistakes
 *   - PATH must not contain a directory that the agent can write: git would run its ssh.
 *   - A ref's name becomes a command-line argument; check it with gitnet_ref_is_fine() first.
 *
 * Reads:  a policy's grants, requests of git inside
 * Writes: mirrors and push quarantines in writ's own state
 * Next:   session/ starts the helper and keeps the record
 */
#ifndef WRIT_GITNET_GIT_H
#define WRIT_GITNET_GIT_H

#include "cap/set.h"
#include "reach/quota.h"

#define GIT_ADDRESS "198.18.0.1" /* the session's own address (REACH_OWN) as text */
enum { GIT_PORT = 9418, GIT_REQUEST_MAX = 4096, GIT_SPELLINGS = 3 };

/* A granted repository, and the spellings of its URL that git in the session may use. */
struct git_repo {
	struct sv name; /* the repository's name, as in a capability */
	struct sv dial; /* the URL from which the operator's git fetches and to which it pushes */
	struct sv spell[GIT_SPELLINGS];
	size_t spell_n;
};
typedef VEC(struct git_repo) git_repos;

must_check int gitnet_repos_find(struct arena *a, const struct cap_set *set, git_repos *ret,
				 struct writ_err *err);
/*
 * Finds the repository that @path spells; git has decoded each %XX in @path. NULL: the repository
 * is not granted.
 */
const struct git_repo *gitnet_repo_at(const git_repos *repos, struct sv path);

/* The first packet that a git client sends. */
struct git_request {
	struct sv path; /* path of the repository, without the leading slash */
	bool push;
	unsigned version; /* version of git's protocol: 0, 1 or 2 */
};

/* Returns the length of the request, read from its first four bytes; 0: invalid. */
size_t gitnet_request_length(const char head[static 4]);
must_check bool gitnet_request_parse(struct sv bytes, struct git_request *ret);

/*
 * A ref that a push changes, parsed from a line "OLD NEW REF". Parsing fails if the line is
 * malformed or the name of the ref is not accepted.
 */
struct git_update {
	struct sv old, new, ref;
	bool create, remove;
};
must_check bool gitnet_update_parse(struct sv line, struct git_update *ret);

/*
 * Tests a ref name against rules stricter than git's. SECURITY: only names that pass the test
 * become command-line arguments.
 */
bool gitnet_ref_is_fine(struct sv ref);

/* The result of one fetch or push, for the record. */
struct git_event {
	uint32_t push;	 /* 1: push; 0: fetch */
	uint32_t answer; /* enum cap_answer */
	uint32_t rule;
	uint32_t done; /* 1: the fetch or push was allowed and has completed */
	uint64_t us;
	char repo[512];
	/* for a push: the updated ref, its old id and its new id */
	char ref[256], old[68], new[68];
	struct cap_why why; /* reason why the fetch or push did not complete */
	/* output of the operator's git, which never enters the session */
	char said[1024];
};

struct git_options {
	const struct cap_set *set;
	struct sv realm;
	struct sv state;     /* state directory, which contains the mirrors */
	struct sv run;	     /* the session's run directory, for quarantines */
	struct sv workspace; /* the helper runs no program below this directory; may be empty */
	char *const *environ;
	/* totals of the session's bytes; NULL: the policy has no limit */
	struct quota_total *totals;
	struct quota_shared shared; /* limits shared with other sessions */
	/* the @listener of gitnet_main() receives accepted connections as descriptors */
	bool handed;
};

/* Exit status of a helper that cannot start, and could not on another try either. */
enum { GIT_HOPELESS = 3 };

/*
 * Runs the git helper: serves connections of @listener and reports each fetch and push to
 * @supervisor. Exits when @supervisor closes.
 */
_Noreturn void gitnet_main(const struct git_options *opt, int supervisor, int listener);

#endif
