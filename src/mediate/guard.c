#include "mediate/mediate_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Which of the names that other tools obey stands at a place, and what may still
 * be done there. Besides the table there is git's habit of taking any directory
 * with objects and refs in it for a repository, whatever it is called.
 */

/* clang-format off */
static const struct protect_name bare_config = { ".git/config", PROTECT_DEPTH, "can name programs git runs in this repository" };
static const struct protect_name bare_hooks = { ".git/hooks", PROTECT_DEPTH, "git runs these in this repository" };
static const struct protect_name bare_attributes = { ".git/info/attributes", PROTECT_DEPTH, "can attach filters that git runs" };
static const struct protect_name bare_remotes = { ".git/remotes/*", PROTECT_DEPTH, "can name programs git runs to reach a remote" };
static const struct protect_name staging = { ".writ-*", PROTECT_DEPTH, "writ's own, for a moment" };
static const struct protect_name common_dir = { ".git/commondir", PROTECT_DEPTH, "leads git to the settings of another repository" };
/* clang-format on */

static bool has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The four names by which git knows a repository or a worktree of one. */
struct marks {
	bool objects, refs, head, common;
};

static struct marks marks_in(int dir, bool above)
{
	return (struct marks){ has(dir, above ? "../objects" : "objects"),
			       has(dir, above ? "../refs" : "refs"),
			       has(dir, above ? "../HEAD" : "HEAD"),
			       has(dir, above ? "../commondir" : "commondir") };
}

static bool is_repository(const struct marks *k)
{
	return (k->objects && (k->refs || k->head)) || (k->head && k->common);
}

static bool looks_like_repository(int dir, bool above)
{
	const struct marks k = marks_in(dir, above);

	return is_repository(&k);
}

static bool is_open(const struct mediator *m, const struct protect_name *row)
{
	for (size_t i = 0; i < m->opt.opens_n; i++)
		if (sv_is(m->opt.opens[i], row->name))
			return true;
	return false;
}

/* The name of the directory that holds @path. */
static struct sv holder(struct sv path)
{
	const size_t slash = sv_rfind(path, '/');

	path = sv_sub(path, 0, slash == SIZE_MAX ? 0 : slash);
	return sv_skip(path, sv_rfind(path, '/') == SIZE_MAX ? 0 : sv_rfind(path, '/') + 1);
}

static struct guarded in_bare(const struct call *c, const struct place *p)
{
	const struct sv name = sv_from(p->name), up = holder(place_sv(p));
	const struct guarded none = { GUARD_FREE, NULL, false };
	const bool sample = sv_ends(name, SV(".sample"));

	if (sv_is(up, "hooks") && !is_open(c->m, &bare_hooks) &&
	    looks_like_repository(p->dir, true))
		return (struct guarded){ sample ? GUARD_SAMPLE : GUARD_SHUT, &bare_hooks, false };
	if (sv_is(up, "info") && sv_is(name, "attributes") && !is_open(c->m, &bare_attributes) &&
	    looks_like_repository(p->dir, true))
		return (struct guarded){ GUARD_SHUT, &bare_attributes, false };
	/* An old form of the settings of remotes, which git reads and writes no more. */
	if ((sv_is(up, "remotes") || sv_is(up, "branches")) && !is_open(c->m, &bare_remotes) &&
	    looks_like_repository(p->dir, true))
		return (struct guarded){ GUARD_SHUT, &bare_remotes, false };
	/* Written once, when git makes a worktree, and always the same. */
	if (sv_is(name, "commondir") && !is_open(c->m, &common_dir)) {
		const bool made = has(p->dir, "commondir") && looks_like_repository(p->dir, false);

		return (struct guarded){ made ? GUARD_ONCE : GUARD_POINTER, &common_dir, false };
	}
	if (!sv_is(name, "config") && !sv_is(name, "config.worktree") && !sv_is(name, "hooks") &&
	    !sv_is(name, "info"))
		return none;
	if (!looks_like_repository(p->dir, false))
		return none;
	if (sv_is(name, "info"))
		return (struct guarded){ GUARD_HOLDS, &bare_attributes, false };
	if (sv_is(name, "hooks"))
		return is_open(c->m, &bare_hooks)
			       ? none
			       : (struct guarded){ GUARD_HOOKS, &bare_hooks, false };
	return is_open(c->m, &bare_config) ? none
					   : (struct guarded){ GUARD_CONFIG, &bare_config, false };
}

static struct guarded in_table(const struct place *p, const struct protect_hit *hit)
{
	struct guarded g = { GUARD_SHUT, hit->row, false };
	const struct sv row = sv_from(hit->row->name);
	const struct sv last =
		sv_skip(row, sv_rfind(row, '/') == SIZE_MAX ? 0 : sv_rfind(row, '/') + 1);
	const bool git = sv_starts(row, SV(".git/"));

	if (hit->rel == PROTECT_AT && sv_is(row, ".gitattributes")) {
		g.kind = GUARD_POINTER;
	} else if (hit->rel == PROTECT_ABOVE) {
		g.kind = git && strcasecmp(p->name, ".git") == 0 ? GUARD_POINTER : GUARD_HOLDS;
	} else if (git && hit->rel == PROTECT_AT) {
		g.module = sv_starts(row, SV(".git/modules/"));
		if (sv_is(last, "config") || sv_is(last, "config.worktree"))
			g.kind = GUARD_CONFIG;
		else if (sv_is(last, "hooks"))
			g.kind = GUARD_HOOKS;
	} else if (git && sv_is(last, "hooks") && sv_is(holder(place_sv(p)), "hooks") &&
		   sv_ends(sv_from(p->name), SV(".sample"))) {
		g.kind = GUARD_SAMPLE;
	}
	return g;
}

struct guarded guard_look(struct call *c, const struct place *p)
{
	const struct protect_hit hit = protected_at(c->m, p->dir, place_sv(p));
	struct guarded g;

	/* SECURITY: where a mediator, ours or another session's, puts what it has checked. */
	if (strncmp(p->name, ".writ-", 6) == 0)
		return (struct guarded){ GUARD_SHUT, &staging, false };
	if (hit.rel == PROTECT_CLEAR)
		return in_bare(c, p);
	g = in_table(p, &hit);
	/* A name that may hold protected ones can also be one itself, in a repository. */
	if (g.kind == GUARD_HOLDS) {
		const struct guarded bare = in_bare(c, p);

		if (bare.kind != GUARD_FREE && bare.kind != GUARD_HOLDS)
			return bare;
	}
	return g;
}

int guard_refuse(struct call *c, const struct place *p, const struct guarded *g)
{
	return deny_row(c, place_sv(p), g->row);
}

/* --- Becoming a repository --- */

/*
 * What was laid out before anybody could know what it is. True if all names in the
 * directory @name end in @end, or if there are none at all and it says nothing.
 */
static bool holds_only(int dir, const char *name, struct sv end)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool fine = true;
	DIR *d;

	if (fd < 0)
		return errno == ENOENT;
	d = fdopendir(fd);
	if (!d)
		return false;
	(void)take_fd(&fd);
	for (const struct dirent *e = readdir(d); e && fine; e = readdir(d))
		fine = sv_is(sv_from(e->d_name), ".") || sv_is(sv_from(e->d_name), "..") ||
		       (end.n && (e->d_name[0] == '.' || sv_ends(sv_from(e->d_name), end)));
	(void)closedir(d);
	return fine;
}

/* Or not there. A link would give what is in it another name. */
static bool is_directory(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return S_ISDIR(st.st_mode);
}

/* The settings beside @p: none, or checked and in a file that nobody holds open. */
static int settle_config(struct call *c, const struct place *p, const char *name)
{
	scoped_place config = PLACE_NONE;
	int r;

	if (!has(p->dir, name))
		return 0;
	r = place_in(c, p->dir, name, &config);
	return r < 0 ? r : git_renew(c, &config, false);
}

int guard_complete(struct call *c, const struct place *p)
{
	struct marks k;
	scoped_place config = PLACE_NONE;
	int r;

	if (strcmp(p->name, "objects") != 0 && strcmp(p->name, "refs") != 0 &&
	    strcmp(p->name, "HEAD") != 0 && strcmp(p->name, "commondir") != 0)
		return 0;
	k = marks_in(p->dir, false);
	if (is_repository(&k))
		return 0;
	k.objects = k.objects || p->name[0] == 'o';
	k.refs = k.refs || p->name[0] == 'r';
	k.head = k.head || p->name[0] == 'H';
	k.common = k.common || p->name[0] == 'c';
	if (!is_repository(&k) || is_open(c->m, &bare_config) || is_open(c->m, &bare_hooks))
		return 0;
	if (!is_open(c->m, &bare_remotes) &&
	    (!holds_only(p->dir, "remotes", SV("")) || !holds_only(p->dir, "branches", SV(""))))
		return deny_row(c, place_sv(p), &bare_remotes);
	r = place_in(c, p->dir, "config", &config);
	if (r < 0)
		return r;
	/* In a .git they were guarded from the start. */
	if (protected_at(c->m, p->dir, place_sv(&config)).rel >= PROTECT_AT)
		return 0;
	if (!holds_only(p->dir, "hooks", SV(".sample")))
		return deny_row(c, place_sv(p), &bare_hooks);
	if (has(p->dir, "info/attributes") || !is_directory(p->dir, "info"))
		return deny_row(c, place_sv(p), &bare_attributes);
	r = settle_config(c, p, "config");
	return r < 0 ? r : settle_config(c, p, "config.worktree");
}
