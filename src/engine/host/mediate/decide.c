#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mediate/place_priv.h"

#include "base/banned.h"

enum { SCRATCH_KEPT = 64 * 1024 };

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif

bool mediate_is_below(struct sv path, struct sv dir)
{
	if (dir.n == 1)
		return true;
	return sv_starts(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

static bool in_any(struct sv path, const struct sv *dirs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mediate_is_below(path, dirs[i]))
			return true;
	return false;
}

bool mediate_is_private(const struct mediator *m, struct sv path)
{
	return in_any(path, m->opt.private_dirs, m->opt.private_dirs_n);
}

bool mediate_is_read_root(const struct mediator *m, struct sv path)
{
	return in_any(path, m->opt.read_roots, m->opt.read_roots_n);
}

bool mediate_is_read_fixed(const struct mediator *m, struct sv path)
{
	return in_any(path, m->opt.read_fixed, m->opt.read_fixed_n);
}

/* True if @path is at or below the directory that @seq names before its first wildcard. */
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

/*
 * A shared directory belongs to the session, except for the files of the host that are mounted
 * below it. Landlock cannot express this exception. So the mediator performs operations in a shared
 * directory itself, but needs no rule for them.
 */
bool mediate_is_shared(const struct mediator *m, struct sv path)
{
	if (m->opt.shm.n && mediate_is_below(path, m->opt.shm))
		return true;
	if (!in_any(path, m->opt.shared_dirs, m->opt.shared_dirs_n) ||
	    in_any(path, m->opt.host_roots, m->opt.host_roots_n))
		return false;
	/* A tree of the host that a live grant mounts is not the session's own either. */
	for (size_t i = m->rules.policy_caps; i < m->rules.set.caps.n; i++)
		if (starts_with(&m->rules.set.caps.v[i].cap.path, path))
			return false;
	return true;
}

bool mediate_is_left_to_kernel(const struct mediator *m, const struct place *p)
{
	return mediate_is_private(m, place_sv(p)) || mediate_is_below(place_sv(p), SV("/proc"));
}

/* --- Denials --- */

static void copy_text(char *to, size_t room, struct sv s)
{
	if (s.n > room - 1)
		s.n = room - 1;
	/* Do not cut a UTF-8 character in half. */
	if (s.n == room - 1)
		while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
			s.n--;
	memcpy(to, s.p, s.n);
	to[s.n] = 0;
}

/*
 * Records which object @path names now. SECURITY: a person may grant the denied operation later, by
 * its number. Device and inode then tell whether the path still names the object that was denied.
 * An object of the jail's own root, such as a mask or the directory of a mount target, is not the
 * one that the host has at this path, so it counts as unknown.
 */
static void identify(struct call *c, const char *path, struct mediate_event *e)
{
	const int root = path[0] == '/' ? task_root(c) : -1;
	scoped_fd fd = root < 0 ? -1
				: mediate_openat2(root, path[1] ? path + 1 : ".", O_PATH,
						  RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stat st, top;

	if (fd < 0 || fstat(fd, &st) < 0 || fstat(root, &top) < 0 ||
	    (c->m->opt.own_mounts && st.st_dev == top.st_dev))
		return;
	e->dev = st.st_dev;
	e->ino = st.st_ino;
}

int mediate_deny_because(struct call *c, struct sv object, uint32_t rule, enum cap_reason reason,
			 enum cap_cause cause, const char *detail)
{
	struct mediate_event *e = &c->m->event;

	*e = (struct mediate_event){ .op = c->op,
				     .denied = true,
				     .reason = (uint8_t)reason,
				     .cause = (uint16_t)cause,
				     .sys = EACCES,
				     .rule = rule,
				     .pid = c->tid };
	task_read_comm(c, e->comm);
	copy_text(e->object, sizeof(e->object), object);
	copy_text(e->extra, sizeof(e->extra), sv_from(detail));
	if (c->op == MEDIATE_READ || c->op == MEDIATE_WRITE || c->op == MEDIATE_META)
		identify(c, e->object, e);
	c->m->has_event = true;
	return -EACCES;
}

int mediate_deny_detail(struct call *c, struct sv object, uint32_t rule, enum cap_cause cause,
			const char *detail)
{
	return mediate_deny_because(c, object, rule,
				    rule == RULE_NONE ? CAP_REASON_OTHER : CAP_REASON_RULE, cause,
				    detail);
}

int mediate_deny(struct call *c, struct sv object, uint32_t rule, enum cap_cause cause)
{
	return mediate_deny_detail(c, object, rule, cause, NULL);
}

int mediate_deny_protected(struct call *c, struct sv object, const struct protect_name *row)
{
	/*
	 * @row may be a variant of a row of protect_names, with a reason of its own. The event
	 * names the row of the table.
	 */
	const struct protect_name *listed = protect_find(sv_from(row->name));
	const int r = mediate_deny_because(c, object, RULE_NONE, CAP_REASON_PROTECTED,
					   CAUSE_PROTECTED, row->why);

	c->m->event.protect = listed ? (uint8_t)(listed - protect_names + 1) : 0;
	return r;
}

/* --- Questions to the policy --- */

static bool parse_request(struct mediator *m, const char *action, struct sv resource, bool path,
			  const char *params, struct cap *ret)
{
	struct writ_err err = { 0 };

	/*
	 * Requests accumulate in the arena. Free them only when they use more than SCRATCH_KEPT
	 * bytes: freeing and allocating memory for each request would cost time.
	 */
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

/*
 * True if the number or rate of uses is limited by the grant that matches the request, or by a
 * price that applies to the request. The mediator keeps no counters, so such a grant does not allow
 * the request.
 */
static bool is_counted(const struct mediator *m, const struct cap *req, size_t entry)
{
	const struct cap *c = &m->rules.set.caps.v[entry].cap;

	if (c->n || c->rate_n)
		return true;
	for (size_t i = 0; i < m->rules.set.prices.n; i++) {
		const struct cap *price = &m->rules.set.prices.v[i].cap;

		if ((price->n || price->rate_n) && cap_matches(price, req))
			return true;
	}
	return false;
}

/*
 * Asks the policy about a request. A pattern that denies reading does not apply to the system trees
 * that every session sees through the base profile (cap_set_base_only()). There a denial by a
 * pattern becomes CAP_ALLOW. The permission of a counted grant becomes CAP_ASK.
 */
static struct cap_verdict decide(struct mediator *m, const struct cap *req)
{
	struct cap_verdict v = cap_set_decide(&m->rules.set, req);

	if (v.answer == CAP_DENY && v.rule != RULE_NONE && req->action == CAP_FS_READ &&
	    cap_set_base_only(&m->rules.set, req, &v.rule))
		v.answer = CAP_ALLOW;
	if (v.answer == CAP_ALLOW && v.entry < m->rules.set.caps.n && is_counted(m, req, v.entry))
		v.answer = CAP_ASK;
	return v;
}

struct cap_verdict mediate_decide_text(struct mediator *m, const char *action, struct sv resource)
{
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
	struct cap req;

	if (parse_request(m, action, resource, resource.n && resource.p[0] == '/', "", &req))
		v = decide(m, &req);
	return v;
}

bool mediate_may_read_device(struct mediator *m, struct sv path)
{
	struct cap req;

	return parse_request(m, "dev.use", path, true, ";o=r", &req) &&
	       decide(m, &req).answer == CAP_ALLOW;
}

/* SECURITY: no rule opens the directories where writ keeps its keys and records. */
static bool is_writ_dir(const struct mediator *m, struct sv path)
{
	return in_any(path, m->opt.closed_dirs, m->opt.closed_dirs_n);
}

bool mediate_may(struct mediator *m, enum want want, struct sv path, struct cap_verdict *ret_v)
{
	static const char *const actions[] = {
		[WANT_WRITE] = "fs.write", [WANT_PUT] = "fs.put", [WANT_READ] = "fs.read"
	};

	if (is_writ_dir(m, path)) {
		*ret_v = (struct cap_verdict){ CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
		return false;
	}
	*ret_v = mediate_decide_text(m, actions[want], path);
	if (ret_v->answer != CAP_ALLOW)
		return false;
	/* A rule that denies creating (fs.put) also denies fs.write, which includes creating. */
	if (want == WANT_WRITE && m->rules.put_nots)
		*ret_v = mediate_decide_text(m, actions[WANT_PUT], path);
	return ret_v->answer == CAP_ALLOW;
}

static enum cap_cause cause_of(const struct cap_verdict *v, const char *hop)
{
	if (hop)
		return CAUSE_HOP;
	if (v->answer == CAP_ASK)
		return CAUSE_APPROVAL;
	return v->rule == RULE_NONE ? CAUSE_NO_RULE : CAUSE_RULE;
}

int mediate_decide_path(struct call *c, enum want want, struct sv path)
{
	struct cap_verdict v;
	const char *hop;

	if (mediate_is_private(c->m, path) || mediate_is_shared(c->m, path) ||
	    (want == WANT_READ && mediate_is_read_fixed(c->m, path)) ||
	    mediate_may(c->m, want, path, &v))
		return 0;
	if (is_writ_dir(c->m, path))
		return mediate_deny(c, path, v.rule, CAUSE_OWN_FILES);
	hop = v.rule == RULE_NONE ? cap_set_hop_message(&c->m->rules.set, &v) : NULL;
	return mediate_deny_because(c, path, v.rule, cap_set_reason(&c->m->rules.set, &v),
				    cause_of(&v, hop), hop);
}

/* --- Writable trees, and protected names in them --- */

static struct sv parent_of(struct sv path)
{
	const size_t slash = sv_rfind(path, '/');

	return slash == 0 || slash == SIZE_MAX ? SV("/") : sv_sub(path, 0, slash);
}

/*
 * Adds the directory from which protected names are matched for the grant @cap. For a grant of the
 * whole workspace this is the workspace. For any other grant it is the parent of the granted path,
 * so that granting ".vscode" itself does not lift the protection of that name.
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
	more = reallocarray(m->rules.roots, m->rules.roots_n + 1, sizeof(*more));
	if (!more || b.failed)
		return false;
	m->rules.roots = more;
	more[m->rules.roots_n] = (struct write_root){ strndup(path.p, path.n), path.n, cap };
	if (!more[m->rules.roots_n].path)
		return false;
	m->rules.roots_n++;
	return true;
}

static bool is_file_action(enum cap_action a)
{
	return a == CAP_FS_READ || a == CAP_FS_WRITE || a == CAP_FS_PUT;
}

static bool is_finer_than_tree(const struct cap *c)
{
	bool star = false;

	for (size_t i = 0; i < c->path.n; i++)
		star = star || c->path.segs[i].star;
	return star || !c->path.tail || c->approve_n || c->n || c->rate_n;
}

int mediate_index_roots(struct mediator *m, struct writ_err *err)
{
	for (size_t i = 0; i < m->rules.roots_n; i++)
		free(m->rules.roots[i].path);
	m->rules.roots_n = 0;
	m->rules.globs = m->rules.read_nots = m->rules.put_nots = false;
	for (size_t i = 0; i < m->rules.set.caps.n; i++) {
		const struct cap *c = &m->rules.set.caps.v[i].cap;

		if (!is_file_action(c->action))
			continue;
		m->rules.globs = m->rules.globs || is_finer_than_tree(c);
		if (c->action != CAP_FS_READ && !add_root(m, c))
			return writ_nomem(err);
	}
	for (size_t i = 0; i < m->rules.set.nots.n; i++) {
		const enum cap_action a = m->rules.set.nots.v[i].cap.action;

		m->rules.globs = m->rules.globs || is_file_action(a);
		m->rules.read_nots = m->rules.read_nots || a == CAP_FS_READ;
		m->rules.put_nots = m->rules.put_nots || a == CAP_FS_PUT;
	}
	return 0;
}

/*
 * True if the pattern @c can match a path below @path, which is absolute and contains no link. If
 * @path reaches a double star of @c, below which @c matches at any depth, sets *@ret_deep to the
 * length of the part of @path before the double star; else to SIZE_MAX.
 */
static bool names_below(struct sv path, const struct cap_seq *c, size_t *ret_deep)
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

void mediate_link_strip_dotdot(struct sv *dir, struct sv *text)
{
	while (sv_starts(*text, SV("../")) || sv_is(*text, "..")) {
		*dir = parent_of(*dir);
		*text = sv_skip(*text, text->n > 2 ? 3 : 2);
	}
}

/*
 * True if a link in the directory @from with the target @text leads to a path at or below @top,
 * even if components of @text are links. A ".." after a name could leave @top, because the name may
 * be a link; so such a target does not count as below @top.
 */
static bool stays_below(struct sv top, struct sv from, struct sv text)
{
	if (sv_starts(text, SV("/")))
		return mediate_is_below(text, top) && !sv_has_word(text, '/', SV(".."));
	mediate_link_strip_dotdot(&from, &text);
	return mediate_is_below(from, top) && !sv_has_word(text, '/', SV(".."));
}

uint32_t mediate_rule_bypassed(const struct mediator *m, struct sv path, struct sv text)
{
	for (size_t i = 0; i < m->rules.set.nots.n; i++) {
		const struct cap_entry *e = &m->rules.set.nots.v[i];
		size_t deep;

		if ((e->cap.action == CAP_FS_WRITE || e->cap.action == CAP_FS_PUT) &&
		    names_below(path, &e->cap.path, &deep) &&
		    (deep == SIZE_MAX ||
		     !stays_below(deep ? sv_sub(path, 0, deep) : SV("/"), parent_of(path), text)))
			return e->rule;
	}
	return RULE_NONE;
}

static struct sv below(struct sv path, const struct write_root *r)
{
	if (!mediate_is_below(path, (struct sv){ r->path, r->n }))
		return SV("");
	return sv_skip(path, r->n == 1 ? 1 : r->n + 1);
}

/*
 * True if @dir (the directory that holds @path) or a directory above it treats other spellings of a
 * name as the same name. FAT, exFAT, NTFS, SMB, 9p and HFS+ do, recognised by their magic numbers;
 * other file systems set a case-folding flag on the directory.
 */
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
		fd_scope_close(&at);
		at = up;
	}
	/* Assume case folding if a directory cannot be inspected. */
	return at < 0;
}

/*
 * Matches the exact spelling first. Other spellings count only where the file system folds case.
 * Ask the file system last, and only if the answer matters, because asking is slow.
 */
static struct protect_hit match_protected(struct mediator *m, int dir, struct sv path,
					  struct sv rel)
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

struct protect_hit mediate_protected_at(struct mediator *m, int dir, struct sv path)
{
	struct protect_hit hit = { PROTECT_CLEAR, NULL };
	const struct write_root *outer = NULL;
	struct cap req;
	size_t around = 0;

	for (size_t i = 0; i < m->rules.roots_n; i++) {
		const struct write_root *r = &m->rules.roots[i];

		if (!mediate_is_below(path, (struct sv){ r->path, r->n }))
			continue;
		around += !outer || r->n != outer->n;
		if (!outer || r->n < outer->n)
			outer = r;
	}
	if (outer)
		hit = match_protected(m, dir, path, below(path, outer));
	if (around < 2)
		return hit;
	/*
	 * Several nested trees may contain @path. The outer tree may be a grant with a pattern that
	 * does not match @path, and some names are protected only at the top of a tree. Match
	 * against each tree whose grant covers @path and keep the strictest result.
	 */
	if (!parse_request(m, "fs.put", path, true, "", &req))
		return hit;
	hit = (struct protect_hit){ PROTECT_CLEAR, NULL };
	for (size_t i = 0; i < m->rules.roots_n; i++) {
		struct protect_hit h;

		if (!cap_matches(m->rules.roots[i].cap, &req))
			continue;
		h = match_protected(m, dir, path, below(path, &m->rules.roots[i]));
		if (h.rel > hit.rel)
			hit = h;
	}
	return hit;
}

/* --- File systems whose files are only files --- */

bool mediate_device_is_plain(struct mediator *m, int fd, dev_t dev)
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
