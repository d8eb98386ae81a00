#include "mediate/mediate_priv.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mediate/creds_priv.h"

#include "base/banned.h"

/* --- Take the ids of the caller, and never more rights than the caller could have --- */

/*
 * Reads the effective capabilities of the calling thread into *@ret_was and sets them to @to;
 * either may be NULL. Uses the system call, because libc would change all threads. The permitted
 * set stays, so creds_leave() can restore the capabilities.
 */
static bool set_caps(const uint32_t *to, uint32_t *ret_was)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	if (syscall(SYS_capget, &h, d) < 0)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		if (ret_was)
			ret_was[i] = d[i].effective;
		if (to)
			d[i].effective = to[i];
	}
	return !to || syscall(SYS_capset, &h, d) == 0;
}

bool creds_enter_ids(const struct mediator *m, uid_t uid, gid_t gid, struct creds *ret)
{
	static const uint32_t none[2] = { 0, 0 };

	*ret = (struct creds){ 0 };
	if (!m->is_root)
		return true;
	if (!set_caps(NULL, ret->caps))
		return false;
	ret->on = true;
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	/*
	 * SECURITY: setfsuid() reports no errors. Read the ids back: after an unnoticed failure the
	 * operation would run as root.
	 */
	if (set_caps(none, NULL) && setfsgid((gid_t)-1) == (int)gid &&
	    setfsuid((uid_t)-1) == (int)uid)
		return true;
	creds_leave(ret);
	return false;
}

int creds_enter(struct call *c, struct creds *ret)
{
	int r;

	*ret = (struct creds){ 0 };
	if (!c->m->is_root)
		return 0;
	r = task_status(c);
	if (r < 0)
		return r;
	return creds_enter_ids(c->m, c->task->uid, c->task->gid, ret) ? 0 : -EACCES;
}

int creds_set_umask(struct call *c, struct creds *a)
{
	const int r = task_status(c);

	if (r < 0)
		return r;
	a->old_mask = umask((mode_t)c->task->mask);
	a->masked = true;
	return 0;
}

void creds_leave(struct creds *a)
{
	if (a->masked)
		(void)umask(a->old_mask);
	if (a->on) {
		(void)setfsuid(geteuid());
		(void)setfsgid(getegid());
		(void)set_caps(a->caps, NULL);
	}
	*a = (struct creds){ 0 };
}
