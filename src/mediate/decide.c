#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/banned.h"

enum { SCRATCH_KEPT = 64 * 1024 };

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif

bool is_below(struct sv path, struct sv dir)
{
	if (dir.n == 1)
		return true;
	return sv_starts(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

static bool in_any(struct sv path, const struct sv *dirs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_below(path, dirs[i]))
			return true;
	return false;
}

bool is_private(const struct mediator *m, struct sv path)
{
	return in_any(path, m->opt.private_dirs, m->opt.private_dirs_n);
}

bool is_read_fixed(const struct mediator *m, struct sv path)
{
	return in_any(path, m->opt.read_fixed, m->opt.read_fixed_n);
}

/* Is @path at or below what the literal segments of @seq name? */
static bool starts_with(const struct cap_seq *seq, struct sv path)
{
	for (size_t i = 0; i < seq->n && !seq->segs[i].star; i++) {
		if (path.n == 0 || path.p[0] != '/')
			return false;
		path = sv_skip(path, 1);
		if (!sv_starts(path, seq->segs[i].pre))
			return false;
		path = sv_skip(path, seq->segs[i].pre.n);
	}
	return path.n == 0 || path.p[0] == '/';
}

/* The session's own, though it cannot be left to the kernel. */
bool is_shared(const struct mediator *m, struct sv path)
{
	if (m->opt.shm.n && is_below(path, m->opt.shm))
		return true;
	if (!in_any(path, m->opt.shared_dirs, m->opt.shared_dirs_n) ||
	    in_any(path, m->opt.host_roots, m->opt.host_roots_n))
		return false;
	/* What was granted since is the host's as well. */
	for (size_t i = m->policy_caps; i < m->set.caps.n; i++)
		if (starts_with(&m->set.caps.v[i].cap.path, path))
			return false;
	return true;
}

bool is_left_to_kernel(const struct mediator *m, const struct place *p)
{
	return is_private(m, place_sv(p)) || is_below(place_sv(p), SV("/proc"));
}

/* --- Refusing --- */

static void copy_text(char *to, size_t room, struct sv s)
{
	if (s.n > room - 1)
		s.n = room - 1;
	/* Never half a character. */
	if (s.n == room - 1)
		while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
			s.n--;
	memcpy(to, s.p, s.n);
	to[s.n] = 0;
}

int deny(struct call *c, struct sv object, uint32_t rule, const char *why)
{
	struct mediate_event *e = &c->m->event;

	*e = (struct mediate_event){
		.op = c->op, .denied = true, .sys = EACCES, .rule = rule, .pid = c->tid
	};
	task_comm(c, e->comm);
	copy_text(e->object, sizeof(e->object), object);
	copy_text(e->extra, sizeof(e->extra), sv_from(why));
	c->m->has_event = true;
	return -EACCES;
}

int deny_row(struct call *c, struct sv object, const struct protect_name *row)
{
	char why[256];

	(void)snprintf(why, sizeof(why), "%s is protected: %s", row->name, row->why);
	return deny(c, object, RULE_NONE, why);
}

/* --- Asking the policy --- */

static bool request(struct mediator *m, const char *action, struct sv resource, bool path,
		    const char *params, struct cap *ret)
{
	struct writ_err err = { 0 };

	/* Chunks stay until they are worth a free(). */
	if (m->scratch.used > SCRATCH_KEPT)
		arena_clear(&m->scratch);
	m->text.n = 0;
	m->text.failed = false;
	buf_str(&m->text, action);
	buf_ch(&m->text, ':');
	buf_sv(&m->text, m->opt.realm);
	buf_ch(&m->text, ':');
	if (path && cap_put_path(&m->text, resource, &err) < 0)
		return false;
	if (!path)
		buf_sv(&m->text, resource);
	buf_str(&m->text, params);
	return !m->text.failed &&
	       cap_parse(&m->scratch, CAP_REQUEST, buf_view(&m->text), ret, &err) == 0;
}

/* Uses that are counted need somebody who counts. */
static bool is_counted(const struct mediator *m, const struct cap *req, size_t entry)
{
	const struct cap *c = &m->set.caps.v[entry].cap;

	if (c->n || c->rate_n)
		return true;
	for (size_t i = 0; i < m->set.prices.n; i++) {
		const struct cap *price = &m->set.prices.v[i].cap;

		if ((price->n || price->rate_n) && cap_matches(price, req))
			return true;
	}
	return false;
}

static struct cap_verdict ask(struct mediator *m, const struct cap *req)
{
	struct cap_verdict v = cap_set_decide(&m->set, req);

	if (v.answer == CAP_DENY && v.rule != RULE_NONE && req->action == CAP_FS_READ &&
	    cap_set_passed_over(&m->set, req, &v.rule))
		v.answer = CAP_ALLOW;
	if (v.answer == CAP_ALLOW && v.entry < m->set.caps.n && is_counted(m, req, v.entry))
		v.answer = CAP_ASK;
	return v;
}

struct cap_verdict decide_text(struct mediator *m, const char *action, struct sv resource)
{
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
	struct cap req;

	if (request(m, action, resource, resource.n && resource.p[0] == '/', "", &req))
		v = ask(m, &req);
	return v;
}

bool may_read_device(struct mediator *m, struct sv path)
{
	struct cap req;

	return request(m, "dev.use", path, true, ";o=r", &req) && ask(m, &req).answer == CAP_ALLOW;
}

/* SECURITY: keys and records of writ itself are out of reach, whatever a rule says. */
static bool is_ours(const struct mediator *m, struct sv path)
{
	return in_any(path, m->opt.closed_dirs, m->opt.closed_dirs_n);
}

bool may(struct mediator *m, enum want want, struct sv path, struct cap_verdict *ret_v)
{
	static const char *const actions[] = {
		[WANT_WRITE] = "fs.write", [WANT_PUT] = "fs.put", [WANT_READ] = "fs.read"
	};

	if (is_ours(m, path)) {
		*ret_v = (struct cap_verdict){ CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
		return false;
	}
	*ret_v = decide_text(m, actions[want], path);
	if (ret_v->answer != CAP_ALLOW)
		return false;
	/* Whoever may not even put may not write. */
	if (want == WANT_WRITE && m->put_nots)
		*ret_v = decide_text(m, actions[WANT_PUT], path);
	return ret_v->answer == CAP_ALLOW;
}

static const char *reason(const struct mediator *m, const struct cap_verdict *v)
{
	const char *hop = v->rule == RULE_NONE ? cap_set_says(&m->set, v) : NULL;

	if (hop)
		return hop;
	if (v->answer == CAP_ASK)
		return "needs an approval, or uses that are counted: neither is possible here yet";
	return v->rule == RULE_NONE ? "no rule allows it" : "a rule denies it";
}

int decide_path(struct call *c, enum want want, struct sv path)
{
	struct cap_verdict v;

	if (is_private(c->m, path) || is_shared(c->m, path) ||
	    (want == WANT_READ && is_read_fixed(c->m, path)) || may(c->m, want, path, &v))
		return 0;
	return deny(c, path, v.rule,
		    is_ours(c->m, path) ? "writ keeps its own files there" : reason(c->m, &v));
}

/* --- Writable trees and the names that hold in them --- */

static struct sv parent_of(struct sv path)
{
	const size_t slash = sv_rfind(path, '/');

	return slash == 0 || slash == SIZE_MAX ? SV("/") : sv_sub(path, 0, slash);
}

/*
 * Where names begin to count: at the workspace, and above any other thing that
 * was granted, so that granting ".vscode" itself does not lift its protection.
 */
static bool add_root(struct mediator *m, const struct cap *cap)
{
	scoped_buf b = BUF_INIT(PATH_MAX);
	struct write_root *more;
	struct sv path;

	for (size_t i = 0; i < cap->path.n && !cap->path.segs[i].star; i++) {
		buf_ch(&b, '/');
		buf_sv(&b, cap->path.segs[i].pre);
	}
	path = b.n ? buf_view(&b) : SV("/");
	if (!sv_eq(path, m->opt.workspace))
		path = parent_of(path);
	more = reallocarray(m->roots, m->roots_n + 1, sizeof(*more));
	if (!more || b.failed)
		return false;
	m->roots = more;
	more[m->roots_n] = (struct write_root){ strndup(path.p, path.n), path.n, cap };
	if (!more[m->roots_n].path)
		return false;
	m->roots_n++;
	return true;
}

static bool is_file_action(enum cap_action a)
{
	return a == CAP_FS_READ || a == CAP_FS_WRITE || a == CAP_FS_PUT;
}

static bool is_fine(const struct cap *c)
{
	bool star = false;

	for (size_t i = 0; i < c->path.n; i++)
		star = star || c->path.segs[i].star;
	return star || !c->path.tail || c->approve_n || c->n || c->rate_n;
}

int roots_find(struct mediator *m, struct writ_err *err)
{
	for (size_t i = 0; i < m->roots_n; i++)
		free(m->roots[i].path);
	m->roots_n = 0;
	m->globs = m->read_nots = m->put_nots = false;
	for (size_t i = 0; i < m->set.caps.n; i++) {
		const struct cap *c = &m->set.caps.v[i].cap;

		if (!is_file_action(c->action))
			continue;
		m->globs = m->globs || is_fine(c);
		if (c->action != CAP_FS_READ && !add_root(m, c))
			return writ_nomem(err);
	}
	for (size_t i = 0; i < m->set.nots.n; i++) {
		const enum cap_action a = m->set.nots.v[i].cap.action;

		m->globs = m->globs || is_file_action(a);
		m->read_nots = m->read_nots || a == CAP_FS_READ;
		m->put_nots = m->put_nots || a == CAP_FS_PUT;
	}
	return 0;
}

/*
 * Does @c name something below @path, which is absolute and has no link in it? *@ret_deep
 * is SIZE_MAX, or it does so at any depth below the first so many bytes of @path.
 */
static bool is_above(struct sv path, const struct cap_seq *c, size_t *ret_deep)
{
	struct sv rest = sv_skip(path, 1);
	size_t n = 0;

	*ret_deep = SIZE_MAX;
	while (rest.n) {
		const size_t at = path.n - rest.n;
		const struct sv name = sv_cut(&rest, '/');

		if (n == c->hole) {
			*ret_deep = at - 1;
			return true;
		}
		if (n >= c->n || !cap_seg_matches(&c->segs[n], name))
			return false;
		n++;
	}
	return n < c->n;
}

void link_climb(struct sv *dir, struct sv *text)
{
	while (sv_starts(*text, SV("../")) || sv_is(*text, "..")) {
		*dir = parent_of(*dir);
		*text = sv_skip(*text, text->n > 2 ? 3 : 2);
	}
}

/* Does a link in @from that says @text lead nowhere but below @top, whatever else is a link? */
static bool stays_below(struct sv top, struct sv from, struct sv text)
{
	if (sv_starts(text, SV("/")))
		return is_below(text, top) && !sv_has_word(text, '/', SV(".."));
	link_climb(&from, &text);
	return is_below(from, top) && !sv_has_word(text, '/', SV(".."));
}

uint32_t denied_behind(const struct mediator *m, struct sv path, struct sv text)
{
	for (size_t i = 0; i < m->set.nots.n; i++) {
		const struct cap_entry *e = &m->set.nots.v[i];
		size_t deep;

		if ((e->cap.action == CAP_FS_WRITE || e->cap.action == CAP_FS_PUT) &&
		    is_above(path, &e->cap.path, &deep) &&
		    (deep == SIZE_MAX ||
		     !stays_below(deep ? sv_sub(path, 0, deep) : SV("/"), parent_of(path), text)))
			return e->rule;
	}
	return RULE_NONE;
}

static struct sv below(struct sv path, const struct write_root *r)
{
	if (!is_below(path, (struct sv){ r->path, r->n }))
		return SV("");
	return sv_skip(path, r->n == 1 ? 1 : r->n + 1);
}

/* Does a directory from @dir up take other spellings of a name for the name? */
static bool folds_case(int dir, struct sv path)
{
	static const long kinds[] = { 0x4d44,	  0x2011BAB0, 0x5346544e, 0x7366746e,
				      0xFF534D42, 0xFE534D42, 0x01021997, 0x482b };
	scoped_fd at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);

	for (size_t i = 0; i <= path.n && at >= 0; i++) {
		struct statfs fs;
		int flags = 0;
		int up;

		if (fstatfs(at, &fs) < 0)
			return true;
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			if ((long)fs.f_type == kinds[k])
				return true;
		if (ioctl(at, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL))
			return true;
		if (sv_find(path, '/') == SIZE_MAX)
			return false;
		path = parent_of(path);
		if (path.n == 1)
			return false;
		up = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
		scope_close(&at);
		at = up;
	}
	/* What cannot be looked at may fold. */
	return at < 0;
}

static struct protect_hit look(struct mediator *m, int dir, struct sv path, struct sv rel)
{
	const struct protect_open open = { m->opt.opens, m->opt.opens_n };
	struct protect_hit hit = protect_match(rel, false, &open);

	if (hit.rel > PROTECT_ABOVE || !protect_may_fold(rel))
		return hit;
	hit = protect_match(rel, true, &open);
	if (hit.rel > PROTECT_CLEAR && dir >= 0 && !folds_case(dir, path))
		hit = protect_match(rel, false, &open);
	return hit;
}

struct protect_hit protected_at(struct mediator *m, int dir, struct sv path)
{
	struct protect_hit hit = { PROTECT_CLEAR, NULL };
	const struct write_root *outer = NULL;
	struct cap req;
	size_t around = 0;

	for (size_t i = 0; i < m->roots_n; i++) {
		const struct write_root *r = &m->roots[i];

		if (!is_below(path, (struct sv){ r->path, r->n }))
			continue;
		around += !outer || r->n != outer->n;
		if (!outer || r->n < outer->n)
			outer = r;
	}
	if (outer)
		hit = look(m, dir, path, below(path, outer));
	if (around < 2)
		return hit;
	/*
	 * The outer tree may be a grant that does not reach this far, and some names count
	 * at the top of a tree only: ask those that do.
	 */
	if (!request(m, "fs.put", path, true, "", &req))
		return hit;
	hit = (struct protect_hit){ PROTECT_CLEAR, NULL };
	for (size_t i = 0; i < m->roots_n; i++) {
		struct protect_hit h;

		if (!cap_matches(m->roots[i].cap, &req))
			continue;
		h = look(m, dir, path, below(path, &m->roots[i]));
		if (h.rel > hit.rel)
			hit = h;
	}
	return hit;
}

/* --- File systems that hold files and nothing else --- */

bool device_is_plain(struct mediator *m, int fd, dev_t dev)
{
	static const unsigned kinds[] = {
		0x9fa0,	    /* proc */
		0x62656572, /* sysfs */
		0x27e0eb,   /* cgroup */
		0x63677270, /* cgroup2 */
		0x64626720, /* debugfs */
		0x74726163, /* tracefs */
		0x73636673, /* securityfs */
		0x62656570, /* configfs */
		0xcafe4a11, /* bpf */
		0xde5e81e4, /* efivarfs */
		0xf97cff8c, /* selinux */
		0x6e736673, /* nsfs */
		0x42494e4d, /* binfmt_misc */
		0x1cd1,	    /* devpts */
		0x19800202, /* mqueue */
		0x6165676c, /* pstore */
	};
	struct statfs fs;

	for (size_t i = 0; i < m->devices_n; i++)
		if (m->devices[i] == dev)
			return true;
	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if ((unsigned)fs.f_type == kinds[i])
			return false;
	m->devices[m->devices_n < DEVICES ? m->devices_n++ : DEVICES - 1] = dev;
	return true;
}
