#include "mediate/mediate_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/banned.h"

/*
 * Execs are let through: nobody can do one on behalf. What is noted is what the
 * target showed at that moment, for people to read.
 */

enum { ARGS_MAX = 64 };

static void note_args(struct call *c, uint64_t argv, struct mediate_event *e)
{
	size_t n = 0;

	for (unsigned i = 0; i < ARGS_MAX && n + 2 < sizeof(e->extra); i++) {
		uint64_t at = 0;
		int got;

		if (task_read(c, argv + 8u * i, &at, sizeof(at)) < 0 || at == 0)
			break;
		if (i > 0)
			e->extra[n++] = ' ';
		got = task_some(c, at, e->extra + n, sizeof(e->extra) - n);
		if (got < 0)
			break;
		n += (size_t)got;
	}
	e->extra[n] = 0;
}

static int exec_seen(struct call *c, int dirfd, unsigned i)
{
	struct mediate_event *e = &c->m->event;
	bool named = false;

	if (c->m->opt.no_exec && c->m->ran)
		return deny(c, SV(""), RULE_NONE, "no other program is run here");
	*e = (struct mediate_event){ .op = MEDIATE_EXEC, .rule = RULE_NONE, .pid = c->tid };
	named = task_some(c, c->arg[i], e->object, sizeof(e->object)) > 0;
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
		return writ_fail(err, WRIT_E_SYS, errno, "hear of the first program");
	exec = notify_is_ours(&req) && (req.data.nr == SYS_execve || req.data.nr == SYS_execveat);
	notify_answer(listener, req.id, 0, exec ? 0 : EPERM, exec);
	if (!exec)
		return writ_fail(err, WRIT_E_BUG, 0, "a call before the first program");
	*ret_event = (struct mediate_event){
		.op = MEDIATE_EXEC, .rule = RULE_NONE, .pid = (int32_t)req.pid, .comm = "writ-init"
	};
	return 0;
}

int op_exec(struct call *c)
{
	return exec_seen(c, -1, 0);
}

int op_execat(struct call *c)
{
	return exec_seen(c, (int)(uint32_t)c->arg[0], 1);
}
