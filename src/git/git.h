/*
 * git.h - repositories of `allow git`: a helper outside fetches and pushes for the session
 *
 * Reads:  a policy's grants, what git inside says over a socket
 * Writes: mirrors and push quarantines in writ's own state
 * Next:   session/gitnet.c starts the helper and keeps the record
 *
 * Inside, every spelling of a granted URL is rewritten to git's own protocol at an
 * address of the session. The helper serves fetches from a mirror that it brings up
 * to date with the operator's own git, and pushes from a quarantine that it checks
 * first. Keys and credential helpers are only ever used outside.
 */
#ifndef WRIT_GIT_GIT_H
#define WRIT_GIT_GIT_H

#include "cap/set.h"
#include "reach/quota.h"

#define GIT_ADDRESS "198.18.0.1" /* inside; REACH_OWN as text */
enum { GIT_PORT = 9418, GIT_REQUEST_MAX = 4096, GIT_SPELLINGS = 3 };

/* One granted repository, and all that people call it. */
struct git_repo {
	struct sv name; /* as in a capability */
	struct sv dial; /* what the operator's git is told */
	struct sv spell[GIT_SPELLINGS];
	size_t spell_n;
};
typedef VEC(struct git_repo) git_repos;

must_check int git_repos_find(struct arena *a, const struct cap_set *set, git_repos *ret,
			      struct writ_err *err);
/* The repository whose spelling is @path, of which git has undone %XX; NULL: none. */
const struct git_repo *git_repo_at(const git_repos *repos, struct sv path);

/* What a client asks first. */
struct git_request {
	struct sv path; /* without its first slash */
	bool push;
	unsigned version; /* of the protocol: 0, 1 or 2 */
};

/* The length of a whole request from its first four bytes; 0: it is none. */
size_t git_request_length(const char head[static 4]);
must_check bool git_request_parse(struct sv bytes, struct git_request *ret);

/* One line of a push, "OLD NEW REF". False: not as git writes it, or a name we do not take. */
struct git_update {
	struct sv old, new, ref;
	bool create, remove;
};
must_check bool git_update_parse(struct sv line, struct git_update *ret);

/* SECURITY: only such names are ever put on a command line. */
bool git_ref_is_fine(struct sv ref);

/* What one use came to. */
struct git_event {
	uint32_t push;	 /* else fetch */
	uint32_t answer; /* enum cap_answer */
	uint32_t rule;
	uint32_t done; /* allowed, and it happened */
	uint64_t us;
	char repo[512];
	char ref[256], old[68], new[68]; /* of a push */
	char why[256];			 /* what kept it from happening */
	char said[1024];		 /* what git said about it; not for inside */
};

struct git_options {
	const struct cap_set *set;
	struct sv realm;
	struct sv state;     /* mirrors go below it */
	struct sv run;	     /* of the session: quarantines */
	struct sv workspace; /* no program of it is run; may be empty */
	char *const *environ;
	struct quota_total *totals; /* what the session's bytes are counted in; NULL: no limit */
	struct quota_shared shared; /* limits of several sessions together */
	bool handed; /* connections are not accepted but come over the listener, one by one */
};

enum { GIT_HOPELESS = 3 }; /* its status if it is no use to start it again */

/* Serves @listener, and tells @boss of each use. Ends with @boss. */
_Noreturn void git_main(const struct git_options *opt, int boss, int listener);

#endif
