#include "mediate/mediate_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "mediate/git_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * Classifies a place: do programs outside the session obey its name, and which changes of the place
 * are still harmless? Most protected names come from the table in lang/protect. In addition, git
 * treats any directory that contains objects and refs as a repository, whatever its name. This file
 * finds such directories by their content.
 */

/* clang-format off */
static const struct protect_name bare_config = { ".git/config", PROTECT_DEPTH, "can name programs git runs in this repository" };
static const struct protect_name bare_hooks = { ".git/hooks", PROTECT_DEPTH, "git runs these in this repository" };
static const struct protect_name bare_attributes = { ".git/info/attributes", PROTECT_DEPTH, "can attach filters that git runs" };
static const struct protect_name bare_remotes = { ".git/remotes/*", PROTECT_DEPTH, "can name programs git runs to reach a remote" };
static const struct protect_name staging = { ".writ-*", PROTECT_DEPTH, "writ's own, for a moment" };
static const struct protect_name git_links = { ".git", PROTECT_DEPTH, "git writes through links in its own directory" };
static const struct protect_name common_dir = { ".git/commondir", PROTECT_DEPTH, "leads git to the settings of another repository" };
/* clang-format on */

/*
 * SECURITY: only a clear answer means that a name does not exist. The session can make a directory
 * unsearchable and reach its subdirectories by descriptors, so that each lookup fails.
 */
static bool exists_in(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR);
}

/* Existence of the four names by which git recognises a repository or a linked worktree. */
struct marks {
	bool objects, refs, head, common;
};

static struct marks marks_in(int dir, bool above)
{
	return (struct marks){ exists_in(dir, above ? "../objects" : "objects"),
			       exists_in(dir, above ? "../refs" : "refs"),
			       exists_in(dir, above ? "../HEAD" : "HEAD"),
			       exists_in(dir, above ? "../commondir" : "commondir") };
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

/* True if the policy lifts the protection of this name (mediate_options.opens). */
static bool is_lifted(const struct mediator *m, const struct protect_name *row)
{
	for (size_t i = 0; i < m->opt.opens_n; i++)
		if (sv_is(m->opt.opens[i], row->name))
			return true;
	return false;
}

/* Returns the name of the directory that contains @path, without the path of that directory. */
static struct sv parent_name(struct sv path)
{
	const size_t slash = sv_rfind(path, '/');

	path = sv_sub(path, 0, slash == SIZE_MAX ? 0 : slash);
	return sv_skip(path, sv_rfind(path, '/') + 1);
}

/*
 * Classifies a name in a repository that is found by its content. Used where the table of protected
 * names has no stricter answer.
 */
static struct guard classify_bare(const struct call *c, const struct place *p)
{
	const struct sv name = sv_from(p->name), up = parent_name(place_sv(p));
	const struct guard none = { GUARD_FREE, NULL, false };
	const bool sample = sv_ends(name, SV(".sample"));

	if (sv_is(up, "hooks") && !is_lifted(c->m, &bare_hooks) &&
	    looks_like_repository(p->dir, true))
		return (struct guard){ sample ? GUARD_SAMPLE : GUARD_CLOSED, &bare_hooks, false };
	if (sv_is(up, "info") && sv_is(name, "attributes") && !is_lifted(c->m, &bare_attributes) &&
	    looks_like_repository(p->dir, true))
		return (struct guard){ GUARD_CLOSED, &bare_attributes, false };
	/*
	 * The directories remotes and branches hold remotes in old formats. git still reads such
	 * files but does not write them, so no legitimate program needs to create one.
	 */
	if ((sv_is(up, "remotes") || sv_is(up, "branches")) && !is_lifted(c->m, &bare_remotes) &&
	    looks_like_repository(p->dir, true))
		return (struct guard){ GUARD_CLOSED, &bare_remotes, false };
	/* git writes commondir once, when it creates a linked worktree, with a fixed content. */
	if (sv_is(name, "commondir") && !is_lifted(c->m, &common_dir)) {
		const bool made =
			exists_in(p->dir, "commondir") && looks_like_repository(p->dir, false);

		return (struct guard){ made ? GUARD_WRITE_ONCE : GUARD_POINTER, &common_dir,
				       false };
	}
	if (!sv_is(name, "config") && !sv_is(name, "config.worktree") && !sv_is(name, "hooks") &&
	    !sv_is(name, "info"))
		return none;
	if (!looks_like_repository(p->dir, false))
		return none;
	if (sv_is(name, "info"))
		return (struct guard){ GUARD_ANCESTOR, &bare_attributes, false };
	if (sv_is(name, "hooks"))
		return is_lifted(c->m, &bare_hooks)
			       ? none
			       : (struct guard){ GUARD_HOOKS, &bare_hooks, false };
	return is_lifted(c->m, &bare_config) ? none
					     : (struct guard){ GUARD_CONFIG, &bare_config, false };
}

/*
 * Classifies a name that the table of protected names matched. Every change is denied, except the
 * few changes that git itself needs and changes of names that are only above a protected name.
 */
static struct guard classify_table_hit(const struct place *p, const struct protect_hit *hit)
{
	struct guard g = { GUARD_CLOSED, hit->row, false };
	const struct sv row = sv_from(hit->row->name);
	const struct sv last = sv_skip(row, sv_rfind(row, '/') + 1);
	const bool git = sv_starts(row, SV(".git/"));

	if (hit->rel == PROTECT_AT && sv_is(row, ".gitattributes")) {
		g.kind = GUARD_POINTER;
	} else if (hit->rel == PROTECT_ABOVE) {
		g.kind = git && strcasecmp(p->name, ".git") == 0 ? GUARD_POINTER : GUARD_ANCESTOR;
	} else if (git && hit->rel == PROTECT_AT) {
		g.module = sv_starts(row, SV(".git/modules/"));
		if (sv_is(last, "config") || sv_is(last, "config.worktree"))
			g.kind = GUARD_CONFIG;
		else if (sv_is(last, "hooks"))
			g.kind = GUARD_HOOKS;
	} else if (git && sv_is(last, "hooks") && sv_is(parent_name(place_sv(p)), "hooks") &&
		   sv_ends(sv_from(p->name), SV(".sample"))) {
		g.kind = GUARD_SAMPLE;
	}
	return g;
}

struct guard guard_classify(struct call *c, const struct place *p)
{
	const struct protect_hit hit = mediate_protected_at(c->m, p->dir, place_sv(p));
	struct guard g;

	/*
	 * SECURITY: mediators write checked content to a temporary file with this prefix before
	 * they rename it. A caller that could write such a file would change content after the
	 * check.
	 */
	if (strncmp(p->name, ".writ-", 6) == 0)
		return (struct guard){ GUARD_CLOSED, &staging, false };
	if (hit.rel == PROTECT_CLEAR)
		return classify_bare(c, p);
	g = classify_table_hit(p, &hit);
	/*
	 * A directory that may contain protected names can itself be special in a repository that
	 * is found by content. That classification is stricter.
	 */
	if (g.kind == GUARD_ANCESTOR) {
		const struct guard bare = classify_bare(c, p);

		if (bare.kind != GUARD_FREE && bare.kind != GUARD_ANCESTOR)
			return bare;
	}
	return g;
}

int guard_deny(struct call *c, const struct place *p, const struct guard *g)
{
	return mediate_deny_protected(c, place_sv(p), g->row);
}

/* True if creating @p turns its directory, which is no repository yet, into one. */
static bool completes_repository(const struct place *p)
{
	struct marks k;

	if (strcmp(p->name, "objects") != 0 && strcmp(p->name, "refs") != 0 &&
	    strcmp(p->name, "HEAD") != 0 && strcmp(p->name, "commondir") != 0)
		return false;
	k = marks_in(p->dir, false);
	if (is_repository(&k))
		return false;
	k.objects = k.objects || p->name[0] == 'o';
	k.refs = k.refs || p->name[0] == 'r';
	k.head = k.head || p->name[0] == 'H';
	k.common = k.common || p->name[0] == 'c';
	return is_repository(&k);
}

/* --- Links in git directories --- */

enum { LINKS_SEEN = 65536, LINKS_DEPTH = 64 };

/* True if a directory above the last name of @path is called ".git", in any spelling. */
static bool is_below_dot_git(struct sv path)
{
	path = sv_sub(path, 0, sv_rfind(path, '/'));
	while (path.n) {
		const struct sv name = sv_cut(&path, '/');

		if (name.n == 4 && strncasecmp(name.p, ".git", 4) == 0)
			return true;
	}
	return false;
}

/*
 * SECURITY: git outside the session opens reflogs, messages and the like without O_NOFOLLOW, so a
 * link in a git directory makes git write the agent's text to any file. Finds git directories by
 * their name and, from @p->dir upwards, by their content. The search by content ends at the
 * workspace: the user chose it as a working tree, even if a bare repository contains it.
 */
bool guard_is_in_git(const struct call *c, const struct place *p)
{
	const struct sv workspace = c->m->opt.workspace;
	scoped_fd at = fcntl(p->dir, F_DUPFD_CLOEXEC, 3);
	struct sv path = place_parent(p);

	if (is_below_dot_git(place_sv(p)) || completes_repository(p))
		return true;
	for (;;) {
		int up;

		if (at < 0 || looks_like_repository(at, false))
			return true;
		if (path.n == 0 || (workspace.n && sv_eq(path, workspace)))
			return false;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd_scope_close(&at);
		at = up;
		path = sv_sub(path, 0, sv_rfind(path, '/'));
	}
}

int guard_deny_link(struct call *c, const struct place *p)
{
	return mediate_deny_protected(c, place_sv(p), &git_links);
}

/*
 * True if no link is in the directory @name in @dir or below it. A directory that cannot be listed,
 * or is too large or too deep to search, counts as one with a link. *@seen counts the entries.
 */
static bool has_no_link(int dir, const char *name, unsigned depth, size_t *seen)
{
	scoped_list *d = depth < LINKS_DEPTH ? fd_open_list(dir, name) : NULL;
	bool fine = d != NULL;

	while (fine) {
		const struct dirent *e = readdir(d);
		unsigned type;
		struct stat st;

		if (!e)
			break;
		type = e->d_type;
		if (sv_is(sv_from(e->d_name), ".") || sv_is(sv_from(e->d_name), ".."))
			continue;
		if (type == DT_UNKNOWN &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			type = IFTODT(st.st_mode);
		fine = ++*seen <= LINKS_SEEN && type != DT_LNK && type != DT_UNKNOWN &&
		       (type != DT_DIR || has_no_link(dirfd(d), e->d_name, depth + 1, seen));
	}
	return fine;
}

/* --- Completing a repository --- */

/*
 * True if the directory @name does not exist or holds only harmless entries: with @end, every
 * visible name ends in @end; with an empty @end, there is no entry at all. The session may have
 * written entries before the parent directory became a repository, when the mediator did not check
 * them.
 */
static bool holds_only(int dir, const char *name, struct sv end)
{
	scoped_list *d = fd_open_list(dir, name);
	bool fine = true;

	if (!d)
		return errno == ENOENT;
	for (const struct dirent *e = readdir(d); e && fine; e = readdir(d))
		fine = sv_is(sv_from(e->d_name), ".") || sv_is(sv_from(e->d_name), "..") ||
		       (end.n && (e->d_name[0] == '.' || sv_ends(sv_from(e->d_name), end)));
	return fine;
}

/*
 * True if @name is a directory or does not exist. A link called @name would give protected names
 * below it a second path.
 */
static bool is_directory(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return S_ISDIR(st.st_mode);
}

/*
 * Replaces the configuration @name next to @p, if there is one, by a checked copy, which no process
 * holds open for writing. Returns 0 or -errno.
 */
static int reinstall_config(struct call *c, const struct place *p, const char *name)
{
	scoped_place config = PLACE_NONE;
	int r;

	if (!exists_in(p->dir, name))
		return 0;
	r = place_child(c, p->dir, name, &config);
	return r < 0 ? r : mediate_git_reinstall_config(c, &config, false);
}

int guard_check_completion(struct call *c, const struct place *p)
{
	size_t seen = 0;
	scoped_place config = PLACE_NONE;
	int r;

	if (!completes_repository(p))
		return 0;
	if (!has_no_link(p->dir, ".", 0, &seen))
		return guard_deny_link(c, p);
	if (is_lifted(c->m, &bare_config) || is_lifted(c->m, &bare_hooks))
		return 0;
	if (!is_lifted(c->m, &bare_remotes) &&
	    (!holds_only(p->dir, "remotes", SV("")) || !holds_only(p->dir, "branches", SV(""))))
		return mediate_deny_protected(c, place_sv(p), &bare_remotes);
	r = place_child(c, p->dir, "config", &config);
	if (r < 0)
		return r;
	/*
	 * If `config` is a protected name here, this directory is a .git directory. Its hooks, its
	 * attributes and its configuration were checked whenever they were written.
	 */
	if (mediate_protected_at(c->m, p->dir, place_sv(&config)).rel >= PROTECT_AT)
		return 0;
	if (!holds_only(p->dir, "hooks", SV(".sample")))
		return mediate_deny_protected(c, place_sv(p), &bare_hooks);
	if (exists_in(p->dir, "info/attributes") || !is_directory(p->dir, "info"))
		return mediate_deny_protected(c, place_sv(p), &bare_attributes);
	r = reinstall_config(c, p, "config");
	return r < 0 ? r : reinstall_config(c, p, "config.worktree");
}
