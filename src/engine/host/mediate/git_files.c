#include "mediate/mediate_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mediate/git_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"
#include "vcs/gitattributes.h"
#include "vcs/gitconfig.h"

#include "base/banned.h"

/*
 * Files of git whose content decides which programs git runs. The mediator checks the content of
 * such a file and installs a new file with exactly the checked bytes by a rename. Moving the
 * caller's own file there would not be enough: the caller may still hold that file open and write
 * to it.
 */

/* --- Read and install --- */

/*
 * Reads the regular file @name in @dir without following links; -ENOENT if there is no such file.
 */
static int read_at(int dir, const char *name, struct buf *b, mode_t *ret_mode)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct writ_err err = { 0 };
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EACCES;
	*ret_mode = st.st_mode & 0777;
	return fd_read_all(fd, b, &err) < 0 ? -EFBIG : 0;
}

int mediate_git_install_bytes(struct mediator *m, int dir, const char *name, struct sv bytes,
			      mode_t mode, bool replace)
{
	struct writ_err err = { 0 };
	char temp[64];
	scoped_fd fd = -1;
	int r = 0;

	(void)snprintf(temp, sizeof(temp), ".writ-%d-%u", (int)m->pid, m->serial++);
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (fd_write_all(fd, bytes, &err) < 0 || fchmod(fd, mode) < 0)
		r = err.sys ? -err.sys : -EIO;
	if (r == 0 &&
	    syscall(SYS_renameat2, dir, temp, dir, name, replace ? 0 : RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temp, 0);
	return r;
}

/* --- Paths inside files of git --- */

/*
 * Makes @text, a path that a file in the directory @dir contains, absolute. Accepts ".." only at
 * the beginning of @text: after a name that is a link, ".." could lead anywhere. Returns false for
 * any other "." or "..".
 */
static bool resolve_relative(struct sv dir, struct sv text, char to[PATH_MAX], struct sv *ret)
{
	struct buf b = BUF_INIT(PATH_MAX - 1);
	bool good = true;

	if (sv_starts(text, SV("/"))) {
		dir = SV("");
		text = sv_skip(text, 1);
	}
	while (sv_starts(text, SV("../")) || sv_is(text, "..")) {
		const size_t slash = sv_rfind(dir, '/');

		text = sv_skip(text, 3);
		dir = sv_sub(dir, 0, slash == SIZE_MAX ? 0 : slash);
	}
	buf_sv(&b, dir);
	while (text.n && good) {
		const struct sv seg = sv_cut(&text, '/');

		good = !sv_is(seg, ".") && !sv_is(seg, "..") && seg.n > 0;
		buf_ch(&b, '/');
		buf_sv(&b, seg);
	}
	good = good && !b.failed && b.n > 0;
	if (good) {
		memcpy(to, b.p, b.n + 1);
		*ret = (struct sv){ to, b.n };
	}
	buf_clear(&b);
	return good;
}

static bool has_part(struct sv path, struct sv part)
{
	for (; path.n >= part.n; path = sv_skip(path, 1))
		if (sv_starts(path, part))
			return true;
	return false;
}

/*
 * True for .git/worktrees/NAME, where git keeps data of a linked worktree, and for
 * .git/modules/NAME/..., where git keeps repositories of submodules.
 */
static bool is_admin_dir(struct sv path)
{
	const struct sv work = SV("/.git/worktrees/"), mods = SV("/.git/modules/");

	for (; path.n; path = sv_skip(path, 1)) {
		if (sv_starts(path, work) && path.n > work.n &&
		    sv_find(sv_skip(path, work.n), '/') == SIZE_MAX)
			return true;
		if (sv_starts(path, mods) && path.n > mods.n)
			return true;
	}
	return false;
}

/*
 * True if every existing component of @path, looked up from @root, is a directory and no link.
 * Components in .git that do not exist yet can only become directories, since callers cannot create
 * links there.
 */
static bool is_real_dir(struct mediator *m, int root, struct sv path)
{
	char got[PATH_MAX];
	struct sv rest = sv_skip(path, 1);
	scoped_fd at = fcntl(root, F_DUPFD_CLOEXEC, 3);
	size_t n, good = 0;

	while (at >= 0 && rest.n) {
		char name[NAME_MAX + 1];
		const struct sv seg = sv_cut(&rest, '/');
		int next;

		if (seg.n > NAME_MAX)
			return false;
		memcpy(name, seg.p, seg.n);
		name[seg.n] = 0;
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT)
			break;
		fd_scope_close(&at);
		at = next;
		good = (size_t)(seg.p + seg.n - path.p);
	}
	return at >= 0 && mediate_path_of_fd(m, at, got, &n) &&
	       sv_eq((struct sv){ got, n }, sv_sub(path, 0, good));
}

/*
 * Checks the content of a .gitattributes file. Returns 0, or records a denial and returns -EACCES.
 */
static int check_attributes(struct call *c, const struct place *to, struct sv bytes)
{
	char found[GITATTRIBUTES_WHY];
	const struct protect_name row = { ".gitattributes", PROTECT_DEPTH, found };

	if (gitattributes_check(bytes, found))
		return 0;
	return mediate_deny_protected(c, place_sv(to), &row);
}

/*
 * Checks the content of a .git file or a commondir file called @name in @dir. Returns the reason
 * for a denial, or CAUSE_NONE.
 */
static enum cap_cause pointer_error(struct mediator *m, int root, struct sv dir,
				    const char *name, struct sv bytes)
{
	char text[PATH_MAX];
	struct sv place, path;
	struct cap_verdict v;

	/* A linked worktree has its common directory two levels above. Accept no other value. */
	if (strcmp(name, "commondir") == 0)
		return sv_is(bytes, "../..\n") || sv_is(bytes, "../..")
			       ? CAUSE_NONE
			       : CAUSE_COMMONDIR;
	if (!gitfile_parse(bytes, &place) || !resolve_relative(dir, place, text, &path))
		return CAUSE_GITFILE;
	if (!is_admin_dir(path))
		return CAUSE_GITFILE_PLACE;
	if (mediate_is_private(m, path) || !mediate_may(m, WANT_WRITE, path, &v) ||
	    !is_real_dir(m, root, path))
		return CAUSE_GITFILE_TREE;
	return CAUSE_NONE;
}

/* --- Worktrees of submodules --- */

/* Limits of the search for configurations of submodules, which each new link causes. */
enum { MODULE_ENTRIES = 4096, MODULE_DEPTH = 32 };

/*
 * Names of large directories in a git directory. No configuration below one may set core.worktree,
 * so that the search for such configurations may leave these directories out.
 */
static bool is_left_out(struct sv name)
{
	return sv_is(name, "objects") || sv_is(name, "refs") || sv_is(name, "logs") ||
	       sv_is(name, "hooks") || sv_is(name, "info") || sv_is(name, "rr-cache");
}

/*
 * Returns the directory that holds the .git directory in whose modules @dir lies; empty: no such
 * directory, or the search for configurations would not find one in @dir.
 */
static struct sv super_top(struct sv dir)
{
	const struct sv mods = SV("/.git/modules/");
	struct sv top = SV(""), rest = SV("");

	for (size_t i = 0; i < dir.n; i++) {
		if (!sv_starts(sv_skip(dir, i), mods))
			continue;
		top = sv_sub(dir, 0, i);
		rest = sv_skip(dir, i + mods.n);
	}
	while (rest.n)
		if (is_left_out(sv_cut(&rest, '/')))
			return SV("");
	return top;
}

/*
 * Checks core.worktree, which decides where git writes. Accepts a directory that the session may
 * write and that is neither private, nor protected, nor in a .git directory. SECURITY: no part of
 * the path may be a link, now or later: the directory is in the tree of the superproject, where
 * mediate_git_is_worktree() finds the configuration before a link is created.
 */
static bool worktree_is_fine(struct mediator *m, int root, struct sv dir, const char *value)
{
	const struct sv top = super_top(dir);
	char text[PATH_MAX];
	struct cap_verdict v;
	struct sv path;

	return resolve_relative(dir, sv_from(value), text, &path) && !mediate_is_private(m, path) &&
	       top.n && mediate_is_below(path, top) && is_real_dir(m, root, path) &&
	       mediate_may(m, WANT_WRITE, path, &v) && !has_part(path, SV("/.git/")) &&
	       !sv_ends(path, SV("/.git")) &&
	       mediate_protected_at(m, -1, path).rel == PROTECT_CLEAR;
}

/*
 * True if the configuration in the directory @dir sets core.worktree to @link or to a directory
 * below it, or cannot be read.
 */
static bool config_leads_past(int dir, struct sv path, const char *name, struct sv link)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	char value[GITCONFIG_VALUE], text[PATH_MAX];
	struct sv place;
	mode_t mode;
	const int r = read_at(dir, name, &b, &mode);

	if (r < 0)
		return r != -ENOENT && r != -ENOTDIR;
	/* Text that git itself refuses, or that came there without the mediator, leads nowhere. */
	return gitconfig_get(buf_view(&b), "core", "worktree", value) &&
	       (!resolve_relative(path, sv_from(value), text, &place) ||
		mediate_is_below(place, link));
}

/* Searches the directory @fd, whose path is @path and which this function takes, and below it. */
static bool module_leads_past(int fd, char path[PATH_MAX], struct sv link, unsigned depth,
			      unsigned *seen)
{
	const size_t n = strlen(path);
	scoped_list *d = fdopendir(fd);
	bool found = false;

	if (!d) {
		fd_scope_close(&fd);
		return true;
	}
	found = depth > MODULE_DEPTH ||
		config_leads_past(fd, (struct sv){ path, n }, "config", link) ||
		config_leads_past(fd, (struct sv){ path, n }, "config.worktree", link);
	while (!found) {
		const struct dirent *e = readdir(d);
		int next;

		if (!e)
			break;
		if (sv_is(sv_from(e->d_name), ".") || sv_is(sv_from(e->d_name), "..") ||
		    is_left_out(sv_from(e->d_name)))
			continue;
		if (++*seen > MODULE_ENTRIES || n + strlen(e->d_name) + 2 > PATH_MAX)
			return true;
		next = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0) {
			found = errno != ENOTDIR && errno != ELOOP && errno != ENOENT;
			continue;
		}
		(void)snprintf(path + n, PATH_MAX - n, "/%s", e->d_name);
		found = module_leads_past(next, path, link, depth + 1, seen);
		path[n] = 0;
	}
	return found;
}

bool mediate_git_is_worktree(struct call *c, const struct place *at, struct sv link)
{
	scoped_fd dir = fcntl(at->dir, F_DUPFD_CLOEXEC, 3);
	struct sv path = place_parent(at);
	unsigned seen = 0;

	for (;;) {
		char mods[PATH_MAX];
		int fd, up;

		fd = openat(dir, ".git/modules", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0) {
			const int n = snprintf(mods, sizeof(mods), SV_FMT "/.git/modules",
					       SV_ARG(path));

			if (n < 0 || (size_t)n >= sizeof(mods)) {
				fd_scope_close(&fd);
				return true;
			}
			if (module_leads_past(fd, mods, link, 0, &seen))
				return true;
		} else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP &&
			   !mediate_is_below(c->m->opt.workspace, path.n ? path : SV("/"))) {
			return true;
		}
		if (path.n == 0)
			return false;
		up = openat(dir, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* The session cannot change who may search the directories above the workspace. */
		if (up < 0)
			return !mediate_is_below(c->m->opt.workspace, path);
		fd_scope_close(&dir);
		dir = up;
		path = sv_sub(path, 0, sv_rfind(path, '/'));
	}
}

/* --- Locations of remotes --- */

struct remotes {
	struct call *c;
	struct sv dir; /* path of the directory that contains the configuration */
};

/* Decodes "%2f" and the like in place. git decodes URLs before it uses them. */
static void percent_decode(char *s)
{
	char *to = s;

	for (; *s; s++) {
		const int high = s[0] == '%' ? sv_hex(s[1]) : -1;
		const int low = high >= 0 ? sv_hex(s[2]) : -1;

		*to++ = low >= 0 ? (char)(high * 16 + low) : *s;
		s += low >= 0 ? 2 : 0;
	}
	*to = 0;
}

/*
 * Checks the location of a remote. SECURITY: the agent may create a repository with hooks in its
 * private home, where the mediator checks nothing. If the user pushed to this repository, git would
 * run the hooks outside the session. So no remote may lead into a directory of writ, not even
 * through ssh, which may lead to the same machine.
 */
static bool remote_is_fine(void *arg, struct sv place)
{
	const struct remotes *r = arg;
	const struct mediate_options *opt = &r->c->m->opt;
	char text[GITCONFIG_VALUE + 1];
	struct sv s;

	(void)snprintf(text, sizeof(text), SV_FMT, SV_ARG(place));
	if (strstr(text, "://"))
		percent_decode(text);
	s = sv_from(text);
	if (has_part(s, SV("/writ/homes")) || has_part(s, SV("/writ/kept")))
		return false;
	for (size_t i = 0; i < opt->closed_dirs_n; i++)
		if (has_part(s, opt->closed_dirs[i]))
			return false;
	if (sv_starts(s, SV("file://")))
		s = sv_skip(s, 7);
	else if (sv_find(s, ':') < sv_find(s, '/'))
		return true;
	/*
	 * git resolves a relative remote from the worktree or from the directory of the
	 * configuration. Check both directories.
	 */
	return !mediate_reaches_writ(r->c, r->dir, s.p) &&
	       !mediate_reaches_writ(r->c, sv_sub(r->dir, 0, sv_rfind(r->dir, '/')), s.p);
}

/* --- Configurations --- */

static int check_config(struct call *c, const struct place *to, struct sv bytes, bool module,
			bool replaces)
{
	scoped_buf old = BUF_INIT(GITCONFIG_MAX);
	struct gitconfig_answer a;
	mode_t mode = 0;
	int r = replaces ? read_at(to->dir, to->name, &old, &mode) : 0;

	if (r < 0 && r != -ENOENT)
		return mediate_deny(c, place_sv(to), RULE_NONE, CAUSE_CONFIG_OLD);
	if (!gitconfig_check(buf_view(&old), bytes, module, &a))
		return mediate_deny_detail(c, place_sv(to), RULE_NONE, CAUSE_CONFIG, a.why);
	if (a.has_worktree && !worktree_is_fine(c->m, task_root(c), place_parent(to), a.worktree))
		return mediate_deny(
			c, place_sv(to), RULE_NONE, CAUSE_CONFIG_WORKTREE);
	if (!gitconfig_remotes(bytes, remote_is_fine, &(struct remotes){ c, place_parent(to) }))
		return mediate_deny(c, place_sv(to), RULE_NONE, CAUSE_CONFIG_REMOTE);
	return 0;
}

int mediate_git_check_pointer(struct call *c, int root, const struct place *to,
			      const struct guard *g, struct sv bytes)
{
	enum cap_cause wrong;

	if (sv_is(sv_from(g->row->name), ".gitattributes"))
		return check_attributes(c, to, bytes);
	wrong = pointer_error(c->m, root, place_parent(to), to->name, bytes);
	return wrong != CAUSE_NONE ? mediate_deny(c, place_sv(to), RULE_NONE, wrong) : 0;
}

int mediate_git_install(struct call *c, int from, const struct place *to, const struct guard *g,
			bool replace)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	struct writ_err err = { 0 };
	struct stat st;
	int r;

	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return guard_deny(c, to, g);
	if (fd_read_all(from, &b, &err) < 0)
		return mediate_deny(c, place_sv(to), RULE_NONE, CAUSE_TOO_LARGE);
	r = g->kind == GUARD_CONFIG
		    ? check_config(c, to, buf_view(&b), g->module, replace)
		    : mediate_git_check_pointer(c, task_root(c), to, g, buf_view(&b));
	if (r < 0 || is_observing(c))
		return r;
	return mediate_git_install_bytes(c->m, to->dir, to->name, buf_view(&b), st.st_mode & 0777,
					 replace);
}

/*
 * Checks the removal of a configuration like its replacement by an empty configuration: settings
 * that may not change may not vanish either.
 */
int mediate_git_may_unlink(struct call *c, const struct place *p, const struct guard *g)
{
	return check_config(c, p, SV(""), g->module, true);
}

int mediate_git_reinstall_config(struct call *c, const struct place *config, bool module)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	mode_t mode = 0;
	int r = read_at(config->dir, config->name, &b, &mode);

	if (r < 0)
		return mediate_deny(c, place_sv(config), RULE_NONE, CAUSE_CONFIG_NEW);
	r = check_config(c, config, buf_view(&b), module, false);
	if (r < 0 || is_observing(c))
		return r;
	return mediate_git_install_bytes(c->m, config->dir, config->name, buf_view(&b), mode, true);
}
