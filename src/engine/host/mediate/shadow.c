#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/git_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

enum { GITFILE_MAX = 32768 };

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

void shadow_clear(struct mediator *m, struct shadow *s)
{
	if (!s->used)
		return;
	if (m->inotify >= 0 && s->watch >= 0)
		(void)inotify_rm_watch(m->inotify, s->watch);
	fd_scope_close(&s->bytes);
	fd_scope_close(&s->dir);
	fd_scope_close(&s->root);
	*s = (struct shadow){ 0 };
}

static int memory_file(void)
{
	int fd = (int)syscall(SYS_memfd_create, "git", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, "git", MFD_CLOEXEC);
	return fd;
}

/*
 * Takes the slot of a new shadow. The counter of names of temporary files selects the slot, and a
 * shadow that still uses the slot is dropped without installing its content.
 */
static struct shadow *shadow_new(struct mediator *m)
{
	struct shadow *s = &m->shadows[m->serial++ % SHADOWS];

	shadow_clear(m, s);
	return s;
}

/*
 * Watches the memory file @bytes. The mediator opens its inotify instance here, at the first
 * shadow: the kernel counts instances per user, so the user's other programs may have used up all
 * of them. Then only this open fails, and the next one tries again. Returns -1 on failure.
 */
static int watch_bytes(struct mediator *m, int bytes)
{
	char path[40];

	if (m->inotify < 0)
		m->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (m->inotify < 0 || bytes < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", bytes);
	return inotify_add_watch(m->inotify, path, IN_CLOSE_WRITE);
}

int shadow_open(struct call *c, const struct place *p, unsigned mode, unsigned flags)
{
	struct mediator *m = c->m;
	struct shadow *s = shadow_new(m);
	const int root = task_root(c);
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
	s->watch = watch_bytes(m, s->bytes);
	c->fd = s->watch < 0 ? -1
			     : mediate_reopen(m, s->bytes, (int)(flags & (O_ACCMODE | O_APPEND)));
	/*
	 * Without the inotify watch, which reports that the caller closed the shadow, the mediator
	 * would never install the content. Refuse the open.
	 */
	if (s->bytes < 0 || s->dir < 0 || s->root < 0 || c->fd < 0) {
		shadow_clear(m, s);
		return -EACCES;
	}
	c->fd_flags = flags & O_CLOEXEC;
	return ANSWER_FD;
}

/*
 * Checks the content of a closed shadow and installs it with the ids of the thread that opened the
 * file. This thread waits in no call of the mediator, so a denial is only recorded.
 */
static void shadow_finish(struct mediator *m, struct shadow *s)
{
	struct call c = { .m = m, .tid = s->pid, .op = MEDIATE_WRITE, .fd = -1 };
	scoped_place p = PLACE_NONE;
	char bytes[GITFILE_MAX];
	const ssize_t n = pread(s->bytes, bytes, sizeof(bytes), 0);
	const struct sv text = { bytes, n < 0 ? 0 : (size_t)n };
	struct guard g;
	struct creds creds;

	if (place_child(&c, s->dir, s->name, &p) < 0 || !creds_enter_ids(m, s->uid, s->gid, &creds))
		return;
	/*
	 * SECURITY: the directory may have become a git repository since the caller opened the
	 * shadow. Classify the name again.
	 */
	g = guard_classify(&c, &p);
	if (g.kind != GUARD_POINTER)
		(void)mediate_deny(&c, place_sv(&p), RULE_NONE, CAUSE_NEW_REPOSITORY);
	else if (n < 0 || n >= GITFILE_MAX)
		(void)mediate_deny(&c, place_sv(&p), RULE_NONE, CAUSE_TOO_LARGE);
	else if (mediate_git_check_pointer(&c, s->root, &p, &g, text) == 0 &&
		 guard_check_completion(&c, &p) == 0)
		(void)mediate_git_install_bytes(m, p.dir, p.name, text, s->mode, true);
	creds_leave(&creds);
}

void shadow_handle_closed(struct mediator *m)
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
				shadow_finish(m, &m->shadows[i]);
				shadow_clear(m, &m->shadows[i]);
			}
	}
}
