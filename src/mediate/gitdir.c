#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mediate/gitattributes.h"
#include "mediate/gitconfig.h"

#include "base/banned.h"

/*
 * Files of git that are checked by what they say. What was checked is written to
 * a file of our own and renamed into place, since the target may hold its own open.
 */

enum { GITFILE_MAX = 32768 };

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

/* --- Reading and installing --- */

/* The regular file @name in @dir; -ENOENT if there is none. */
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

static int install(struct mediator *m, int dir, const char *name, struct sv bytes, mode_t mode,
		   bool replace)
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

/* --- Paths that such files name --- */

/*
 * @text from a file in the directory @dir, made absolute. Only leading "../" are
 * understood: behind a name they could mean anything.
 */
static bool join(struct sv dir, struct sv text, char to[PATH_MAX], struct sv *ret)
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

/* One segment behind .git/worktrees, one or more behind .git/modules. */
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
 * A directory that is what its path says, without links. What is not there yet can
 * only become one: nobody makes links at such names.
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
		scope_close(&at);
		at = next;
		good = (size_t)(seg.p + seg.n - path.p);
	}
	return at >= 0 && path_of_fd(m, at, got, &n) &&
	       sv_eq((struct sv){ got, n }, sv_sub(path, 0, good));
}

/* What a checked file may not say; 0 or -errno. */
static int check_attributes(struct call *c, const struct place *to, struct sv bytes)
{
	char found[GITATTRIBUTES_WHY], why[GITATTRIBUTES_WHY + 64];

	if (gitattributes_check(bytes, found))
		return 0;
	(void)snprintf(why, sizeof(why), ".gitattributes is protected: %s", found);
	return deny(c, place_sv(to), RULE_NONE, why);
}

/* @dir and @name: what the file is called. */
static const char *pointer_wrong(struct mediator *m, int root, struct sv dir, const char *name,
				 struct sv bytes)
{
	char text[PATH_MAX];
	struct sv place, path;
	struct cap_verdict v;

	/* What a worktree has in common with others is above it, by git's own layout. */
	if (strcmp(name, "commondir") == 0)
		return sv_is(bytes, "../..\n") || sv_is(bytes, "../..")
			       ? NULL
			       : "commondir says only: ../..";
	if (!gitfile_parse(bytes, &place) || !join(dir, place, text, &path))
		return "a .git file says only: gitdir: PLACE";
	if (!is_admin_dir(path))
		return "a .git file may point into .git/worktrees or .git/modules only";
	if (is_private(m, path) || !may(m, WANT_WRITE, path, &v) || !is_real_dir(m, root, path))
		return "a .git file may point into a writable tree only";
	return NULL;
}

static bool worktree_is_fine(struct mediator *m, struct sv dir, const char *value)
{
	char text[PATH_MAX];
	struct cap_verdict v;
	struct sv path;

	return join(dir, sv_from(value), text, &path) && !is_private(m, path) &&
	       may(m, WANT_WRITE, path, &v) && !has_part(path, SV("/.git/")) &&
	       !sv_ends(path, SV("/.git")) && protected_at(m, -1, path).rel == PROTECT_CLEAR;
}

static struct sv up(struct sv path)
{
	return sv_sub(path, 0, sv_rfind(path, '/'));
}

static struct sv dir_of(const struct place *p)
{
	return up(place_sv(p));
}

/* --- Where a remote is --- */

struct remotes {
	const struct call *c;
	struct sv dir; /* of the configuration */
};

/* "%2f" as a slash, in what is a URL. */
static void decode(char *s)
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
 * SECURITY: in its own home the agent may make a repository with hooks, and a push to
 * it would run them outside. By ssh one may come to the same place.
 */
static bool remote_is_fine(void *arg, struct sv place)
{
	const struct remotes *r = arg;
	const struct mediate_options *opt = &r->c->m->opt;
	char text[GITCONFIG_VALUE + 1];
	struct sv s;

	(void)snprintf(text, sizeof(text), SV_FMT, SV_ARG(place));
	if (strstr(text, "://"))
		decode(text);
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
	/* A relative one counts from the worktree, or from where the configuration is. */
	return !leads_to_ours(r->c, r->dir, s.p) && !leads_to_ours(r->c, up(r->dir), s.p);
}

/* --- Configurations --- */

static int check_config(struct call *c, const struct place *to, struct sv bytes, bool module,
			bool replaces)
{
	scoped_buf old = BUF_INIT(GITCONFIG_MAX);
	struct gitconfig_answer a;
	mode_t mode = 0;
	char why[GITCONFIG_WHY + 64];
	int r = replaces ? read_at(to->dir, to->name, &old, &mode) : 0;

	if (r < 0 && r != -ENOENT)
		return deny(c, place_sv(to), RULE_NONE, "the old configuration cannot be read");
	if (!gitconfig_check(buf_view(&old), bytes, module, &a)) {
		(void)snprintf(why, sizeof(why), "git configuration: %s", a.why);
		return deny(c, place_sv(to), RULE_NONE, why);
	}
	if (a.has_worktree && !worktree_is_fine(c->m, dir_of(to), a.worktree))
		return deny(c, place_sv(to), RULE_NONE,
			    "git configuration: core.worktree leads out of the writable tree");
	if (!gitconfig_remotes(bytes, remote_is_fine, &(struct remotes){ c, dir_of(to) }))
		return deny(c, place_sv(to), RULE_NONE,
			    "git configuration: a remote leads to writ's own files");
	return 0;
}

static int check_pointer(struct call *c, int root, const struct place *to, const struct guarded *g,
			 struct sv bytes)
{
	const char *wrong;

	if (sv_is(sv_from(g->row->name), ".gitattributes"))
		return check_attributes(c, to, bytes);
	wrong = pointer_wrong(c->m, root, dir_of(to), to->name, bytes);
	return wrong ? deny(c, place_sv(to), RULE_NONE, wrong) : 0;
}

int git_install(struct call *c, int from, const struct place *to, const struct guarded *g,
		bool replace)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	struct writ_err err = { 0 };
	struct stat st;
	int r;

	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return guard_refuse(c, to, g);
	if (fd_read_all(from, &b, &err) < 0)
		return deny(c, place_sv(to), RULE_NONE, "too large to be checked");
	r = g->kind == GUARD_CONFIG ? check_config(c, to, buf_view(&b), g->module, replace)
				    : check_pointer(c, task_root(c), to, g, buf_view(&b));
	if (r < 0 || only_watching(c))
		return r;
	return install(c->m, to->dir, to->name, buf_view(&b), st.st_mode & 0777, replace);
}

int git_may_unlink(struct call *c, const struct place *p, const struct guarded *g)
{
	return check_config(c, p, SV(""), g->module, true);
}

int git_renew(struct call *c, const struct place *config, bool module)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	mode_t mode = 0;
	int r = read_at(config->dir, config->name, &b, &mode);

	if (r < 0)
		return deny(c, place_sv(config), RULE_NONE,
			    "would become the configuration of a repository");
	r = check_config(c, config, buf_view(&b), module, false);
	if (r < 0 || only_watching(c))
		return r;
	return install(c->m, config->dir, config->name, buf_view(&b), mode, true);
}

/* --- Pointers that are written in place --- */

void shadow_drop(struct mediator *m, struct shadow *s)
{
	if (!s->used)
		return;
	(void)inotify_rm_watch(m->inotify, s->watch);
	scope_close(&s->bytes);
	scope_close(&s->dir);
	scope_close(&s->root);
	*s = (struct shadow){ 0 };
}

static int memory_file(void)
{
	int fd = (int)syscall(SYS_memfd_create, "git", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, "git", MFD_CLOEXEC);
	return fd;
}

/* A free one, or the oldest: they are used in a ring. */
static struct shadow *shadow_new(struct mediator *m)
{
	struct shadow *s = &m->shadows[m->serial++ % SHADOWS];

	shadow_drop(m, s);
	return s;
}

int shadow_open(struct call *c, const struct place *p, unsigned mode, unsigned flags)
{
	struct mediator *m = c->m;
	struct shadow *s = shadow_new(m);
	const int root = task_root(c);
	char path[40];
	int r;

	r = task_status(c);
	if (r < 0 || root < 0)
		return -EACCES;
	*s = (struct shadow){ .used = true,
			      .bytes = memory_file(),
			      .dir = fcntl(p->dir, F_DUPFD_CLOEXEC, 3),
			      .root = fcntl(root, F_DUPFD_CLOEXEC, 3),
			      .mode = (mode_t)(mode & ~c->task->mask & 0777),
			      .pid = c->tid,
			      .uid = c->task->uid,
			      .gid = c->task->gid };
	memcpy(s->name, p->name, strlen(p->name) + 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s->bytes);
	s->watch = inotify_add_watch(m->inotify, path, IN_CLOSE_WRITE);
	c->fd = s->watch < 0 ? -1 : reopen(m, s->bytes, (int)(flags & (O_ACCMODE | O_APPEND)));
	if (s->bytes < 0 || s->dir < 0 || s->root < 0 || c->fd < 0) {
		shadow_drop(m, s);
		return -EACCES;
	}
	c->fd_flags = flags & O_CLOEXEC;
	return ANSWER_FD;
}

static void shadow_done(struct mediator *m, struct shadow *s)
{
	struct call c = { .m = m, .tid = s->pid, .op = MEDIATE_WRITE, .fd = -1 };
	scoped_place p = PLACE_NONE;
	char bytes[GITFILE_MAX];
	const ssize_t n = pread(s->bytes, bytes, sizeof(bytes), 0);
	const struct sv text = { bytes, n < 0 ? 0 : (size_t)n };
	struct guarded g;
	struct as as;

	if (place_in(&c, s->dir, s->name, &p) < 0 || !as_ids(m, s->uid, s->gid, &as))
		return;
	/* SECURITY: since it was opened, what lies around it may have become a repository. */
	g = guard_look(&c, &p);
	if (g.kind != GUARD_POINTER)
		(void)deny(&c, place_sv(&p), RULE_NONE,
			   "its directory became a repository meanwhile");
	else if (n < 0 || n >= GITFILE_MAX)
		(void)deny(&c, place_sv(&p), RULE_NONE, "too large to be checked");
	else if (check_pointer(&c, s->root, &p, &g, text) == 0 && guard_complete(&c, &p) == 0)
		(void)install(m, p.dir, p.name, text, s->mode, true);
	as_end(&as);
}

void shadow_run(struct mediator *m)
{
	_Alignas(struct inotify_event) char raw[4096];
	const ssize_t n = read(m->inotify, raw, sizeof(raw));

	for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
		struct inotify_event e;

		memcpy(&e, raw + at, sizeof(e));
		at += (ssize_t)(sizeof(e) + e.len);
		if (!(e.mask & IN_CLOSE_WRITE))
			continue;
		for (size_t i = 0; i < SHADOWS; i++)
			if (m->shadows[i].used && m->shadows[i].watch == e.wd) {
				shadow_done(m, &m->shadows[i]);
				shadow_drop(m, &m->shadows[i]);
			}
	}
}
