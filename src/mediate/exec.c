#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Execs are let through: nobody can do one on behalf. What is noted is what the
 * target showed at that moment, for people to read.
 */

enum { ARGS_MAX = 64, PART = 64, PAGE = 4096 };

/* The arguments' addresses, in as few reads as page borders allow. */
static size_t read_argv(struct call *c, uint64_t argv, uint64_t ret[static ARGS_MAX])
{
	size_t n = 0;

	while (n < ARGS_MAX) {
		const uint64_t at = argv + 8 * n;
		size_t more = (PAGE - (size_t)(at & (PAGE - 1))) / 8;

		/* One that lies across a border is read alone. */
		more = more == 0 ? 1 : more < ARGS_MAX - n ? more : ARGS_MAX - n;
		if (task_read(c, at, ret + n, 8 * more) < 0)
			break;
		for (; more; more--, n++)
			if (ret[n] == 0)
				return n;
	}
	return n;
}

/* The beginning of each argument, all at once. */
struct parts {
	char text[ARGS_MAX * PART];
	size_t from[ARGS_MAX + 1]; /* where each begins; the last ends where the next would */
	size_t n;		   /* so many were read */
};

static void read_parts(struct call *c, const uint64_t *argv, size_t n, struct parts *ret)
{
	struct iovec its[ARGS_MAX];
	size_t got;

	ret->from[0] = 0;
	for (size_t i = 0; i < n; i++) {
		const size_t page = PAGE - (size_t)(argv[i] & (PAGE - 1));
		const size_t want = page < PART ? page : PART;

		its[i] = (struct iovec){ (void *)(uintptr_t)argv[i], want };
		ret->from[i + 1] = ret->from[i] + want;
	}
	got = task_gather(c, its, n, ret->text, ret->from[n]);
	for (ret->n = 0; ret->n < n && ret->from[ret->n + 1] <= got; ret->n++)
		;
}

/* What is there of argument @i, if that is all of it; else NULL. */
static const char *short_arg(const struct parts *p, size_t i, size_t *ret_n)
{
	const char *at, *end;

	if (i >= p->n)
		return NULL;
	at = p->text + p->from[i];
	end = memchr(at, 0, p->from[i + 1] - p->from[i]);
	*ret_n = end ? (size_t)(end - at) : 0;
	return end ? at : NULL;
}

static void note_args(struct call *c, uint64_t argv, struct mediate_event *e)
{
	uint64_t at[ARGS_MAX];
	const size_t args = read_argv(c, argv, at);
	struct parts parts;
	size_t n = 0;

	read_parts(c, at, args, &parts);
	for (size_t i = 0; i < args && n + 2 < sizeof(e->extra); i++) {
		size_t known = 0;
		const char *text = short_arg(&parts, i, &known);
		int got;

		if (i > 0)
			e->extra[n++] = ' ';
		if (text && known < sizeof(e->extra) - n) {
			memcpy(e->extra + n, text, known);
			n += known;
			continue;
		}
		got = task_some(c, at[i], e->extra + n, sizeof(e->extra) - n);
		if (got < 0)
			break;
		n += (size_t)got;
	}
	e->extra[n] = 0;
}

static int look_for(int root, const char *path, uint64_t resolve)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | resolve };
	scoped_fd fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : 0;
}

/*
 * Who looks for a program in one directory after the other asks for many that are not there.
 * Only what the kernel remembers counts, and what our own skeleton does not have: a file
 * system that nobody answers for must not hold us. Nor does what lies behind a link: in
 * /proc it is another one for everybody who looks.
 */
static bool is_missing(struct call *c, const char *path)
{
	const int root = path[0] == '/' ? task_root(c) : -1;
	scoped_as as = { 0 };
	int r;

	if (root < 0 || as_begin(c, &as) < 0)
		return false;
	r = look_for(root, path, RESOLVE_CACHED);
	if (r == -EAGAIN && c->m->opt.own_mounts)
		r = look_for(root, path, RESOLVE_NO_XDEV);
	return r == -ENOENT;
}

static int exec_seen(struct call *c, int dirfd, unsigned i)
{
	struct mediate_event *e = &c->m->event;
	bool named;
	int got;

	if (c->m->opt.no_exec && c->m->ran)
		return deny(c, SV(""), RULE_NONE, "no other program is run here");
	*e = (struct mediate_event){ .op = MEDIATE_EXEC, .rule = RULE_NONE, .pid = c->tid };
	got = task_some(c, c->arg[i], e->object, sizeof(e->object));
	named = got > 0;
	/* Not what was cut, nor where flags say something else. */
	if (named && (size_t)got < sizeof(e->object) - 1 && (i == 0 || c->arg[4] == 0) &&
	    is_missing(c, e->object))
		return -ENOENT;
	if (!named && i == 1) {
		scoped_fd fd = task_fd(c, dirfd);
		size_t n;

		if (fd >= 0 && path_of_fd(c->m, fd, c->text[0], &n)) {
			if (n > sizeof(e->object) - 1)
				n = sizeof(e->object) - 1;
			memcpy(e->object, c->text[0], n);
			e->object[n] = 0;
		}
	}
	note_args(c, c->arg[i + 1], e);
	task_comm(c, e->comm);
	if (c->m->opt.read_all) {
		const int r = behalf_exec(c, i == 1 ? dirfd : AT_FDCWD, named ? e->object : "");

		if (r < 0)
			return r;
	}
	if (!notify_valid(c->listener, c->id))
		return ANSWER_GONE;
	c->m->ran = true;
	c->m->has_event = true;
	return ANSWER_CONTINUE;
}

int mediate_first(int listener, struct mediate_event *ret_event, struct writ_err *err)
{
	struct seccomp_notif req;
	bool exec;

	notify_wake_here(listener);
	memset(&req, 0, sizeof(req));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
		return errno == ENOENT || errno == EINTR
			       ? 0
			       : writ_fail(err, WRIT_E_SYS, errno, "hear of the first program");
	exec = notify_is_ours(&req) && (req.data.nr == SYS_execve || req.data.nr == SYS_execveat);
	notify_answer(listener, req.id, 0, exec ? 0 : EPERM, exec);
	if (!exec)
		return writ_fail(err, WRIT_E_BUG, 0, "a call before the first program");
	*ret_event = (struct mediate_event){
		.op = MEDIATE_EXEC, .rule = RULE_NONE, .pid = (int32_t)req.pid, .comm = "writ-init"
	};
	return 1;
}

int op_exec(struct call *c)
{
	return exec_seen(c, -1, 0);
}

int op_execat(struct call *c)
{
	return exec_seen(c, reg_int(c->arg[0]), 1);
}
