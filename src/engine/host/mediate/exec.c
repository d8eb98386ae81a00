#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "mediate/creds_priv.h"
#include "mediate/op_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * execve and execveat. The kernel must run these calls itself, since no process can exec for
 * another. The mediator records path and arguments, for people to read. The kernel reads them
 * again, so they may differ from the record. Only `shell none` is enforced here;
 * mediate_check_exec() stops mistakes, and not an attack.
 */

enum { ARGS_MAX = 64, PART = 64, PAGE = 4096 };

/*
 * Copies the addresses of the arguments in as few reads as page boundaries allow: the page after
 * the last pointer may not be mapped.
 */
static size_t read_argv(struct call *c, uint64_t argv, uint64_t ret[static ARGS_MAX])
{
	size_t n = 0;

	while (n < ARGS_MAX) {
		const uint64_t at = argv + 8 * n;
		size_t more = (PAGE - (size_t)(at & (PAGE - 1))) / 8;

		/* Read an address that crosses a page boundary alone. */
		more = more == 0 ? 1 : more < ARGS_MAX - n ? more : ARGS_MAX - n;
		if (task_read(c, at, ret + n, 8 * more) < 0)
			break;
		for (; more; more--, n++)
			if (ret[n] == 0)
				return n;
	}
	return n;
}

/* The first bytes of each argument, all copied by one system call. */
struct parts {
	char text[ARGS_MAX * PART];
	/* from[i]: offset of argument i in @text; from[n]: end of the last argument */
	size_t from[ARGS_MAX + 1];
	size_t n; /* number of arguments that were copied */
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
	got = task_read_iov(c, its, n, ret->text, ret->from[n]);
	for (ret->n = 0; ret->n < n && ret->from[ret->n + 1] <= got; ret->n++)
		;
}

/* Returns argument @i if the copied bytes contain the whole string; else NULL. */
static const char *whole_arg(const struct parts *p, size_t i, size_t *ret_n)
{
	const char *at, *end;

	if (i >= p->n)
		return NULL;
	at = p->text + p->from[i];
	end = memchr(at, 0, p->from[i + 1] - p->from[i]);
	*ret_n = end ? (size_t)(end - at) : 0;
	return end ? at : NULL;
}

/*
 * Joins the arguments with blanks in the event. Takes short arguments from the bytes that
 * read_parts() copied, and reads long arguments again, one by one.
 */
static void record_args(struct call *c, uint64_t argv, struct mediate_event *e)
{
	uint64_t at[ARGS_MAX];
	const size_t args = read_argv(c, argv, at);
	struct parts parts;
	size_t n = 0;

	read_parts(c, at, args, &parts);
	for (size_t i = 0; i < args && n + 2 < sizeof(e->extra); i++) {
		size_t known = 0;
		const char *text = whole_arg(&parts, i, &known);
		int got;

		if (i > 0)
			e->extra[n++] = ' ';
		if (text && known < sizeof(e->extra) - n) {
			memcpy(e->extra + n, text, known);
			n += known;
			continue;
		}
		got = task_read_prefix(c, at[i], e->extra + n, sizeof(e->extra) - n);
		if (got < 0)
			break;
		n += (size_t)got;
	}
	e->extra[n] = 0;
}

static int probe_path(int root, const char *path, uint64_t resolve)
{
	scoped_fd fd = mediate_openat2(root, path, O_PATH,
				       RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | resolve);

	return fd < 0 ? fd : 0;
}

/*
 * True if the program certainly does not exist. A shell that searches PATH execs many missing
 * names; answering such a call here avoids an event for each name. Only absolute paths are looked
 * up. The lookup must not block on a file system that does not respond, so it uses entries that the
 * kernel has cached. If these do not suffice and the session has a root of its own, a second lookup
 * stays on the file system of that root, which writ made. No lookup follows links, because a link
 * in /proc resolves differently for each process.
 */
static bool is_missing(struct call *c, const char *path)
{
	const int root = path[0] == '/' ? task_root(c) : -1;
	scoped_creds creds = { 0 };
	int r;

	if (root < 0 || creds_enter(c, &creds) < 0)
		return false;
	r = probe_path(root, path, RESOLVE_CACHED);
	if (r == -EAGAIN && c->m->opt.own_mounts)
		r = probe_path(root, path, RESOLVE_NO_XDEV);
	return r == -ENOENT;
}

int op_exec(struct call *c)
{
	struct mediate_event *e = &c->m->event;
	bool named;
	int got;

	if (c->m->opt.no_exec && c->m->ran)
		return mediate_deny(c, SV(""), RULE_NONE, CAUSE_NO_EXEC);
	*e = (struct mediate_event){ .op = MEDIATE_EXEC, .rule = RULE_NONE, .pid = c->tid };
	got = task_read_prefix(c, c->arg[0], e->object, sizeof(e->object));
	named = got > 0;
	/*
	 * Do not answer ENOENT for a truncated path, or if flags of execveat() change its meaning.
	 */
	if (named && (size_t)got < sizeof(e->object) - 1 && c->flags == 0 &&
	    is_missing(c, e->object))
		return -ENOENT;
	/*
	 * execveat() with an empty path: record the path of the file that the descriptor refers to.
	 */
	if (!named && c->row->form == OP_AT) {
		scoped_fd fd = task_open_fd(c, c->dir);
		size_t n;

		if (fd >= 0 && mediate_path_of_fd(c->m, fd, c->text[0], &n)) {
			if (n > sizeof(e->object) - 1)
				n = sizeof(e->object) - 1;
			memcpy(e->object, c->text[0], n);
			e->object[n] = 0;
		}
	}
	record_args(c, c->arg[1], e);
	task_read_comm(c, e->comm);
	if (c->m->opt.read_all) {
		/* SECURITY: the record cuts long paths, so the decision needs a copy of its own. */
		int r = task_read_path(c, c->arg[0], c->text[0]);

		if (r >= 0)
			r = mediate_check_exec(c);
		/*
		 * SECURITY: the operator names the program of the first exec, which writ-init
		 * makes. A later caller that cannot be inspected runs nothing.
		 */
		if (r < 0 && (c->started || c->inspected))
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

	notify_sync_wakeup(listener);
	memset(&req, 0, sizeof(req));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
		return errno == ENOENT || errno == EINTR
			       ? 0
			       : writ_fail(err, WRIT_E_SYS, errno, "hear of the first program");
	exec = notify_arch_ok(&req) && (req.data.nr == SYS_execve || req.data.nr == SYS_execveat);
	notify_answer(listener, req.id, 0, exec ? 0 : EPERM, exec);
	if (!exec)
		return writ_fail(err, WRIT_E_BUG, 0, "a call before the first program");
	*ret_event = (struct mediate_event){
		.op = MEDIATE_EXEC, .rule = RULE_NONE, .pid = (int32_t)req.pid, .comm = "writ-init"
	};
	return 1;
}
