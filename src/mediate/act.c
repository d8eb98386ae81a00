#include "mediate/mediate_priv.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/* --- As whom we act: the target's user, and never with more than it could have --- */

/*
 * Of this thread only: libc would set them for all. The permitted set stays, so
 * as_end() can take everything back.
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

bool as_ids(const struct mediator *m, uid_t uid, gid_t gid, struct as *ret)
{
	static const uint32_t none[2] = { 0, 0 };

	*ret = (struct as){ 0 };
	if (!m->is_root)
		return true;
	if (!set_caps(NULL, ret->caps))
		return false;
	ret->on = true;
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	/* SECURITY: if it did not work we would act as root. */
	if (set_caps(none, NULL) && setfsgid((gid_t)-1) == (int)gid &&
	    setfsuid((uid_t)-1) == (int)uid)
		return true;
	as_end(ret);
	return false;
}

int as_begin(struct call *c, struct as *ret)
{
	int r;

	*ret = (struct as){ 0 };
	if (!c->m->is_root)
		return 0;
	r = task_status(c);
	if (r < 0)
		return r;
	return as_ids(c->m, c->task->uid, c->task->gid, ret) ? 0 : -EACCES;
}

int as_mask(struct call *c, struct as *a)
{
	const int r = task_status(c);

	if (r < 0)
		return r;
	a->old_mask = umask((mode_t)c->task->mask);
	a->masked = true;
	return 0;
}

void as_end(struct as *a)
{
	if (a->masked)
		(void)umask(a->old_mask);
	if (a->on) {
		(void)setfsuid(geteuid());
		(void)setfsgid(getegid());
		(void)set_caps(a->caps, NULL);
	}
	*a = (struct as){ 0 };
}
