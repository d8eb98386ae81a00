#include "facts/probe.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "facts/probe_tmp.h"

#include "base/banned.h"

static int try_nothing(const struct probe *p, int arg, struct report *r)
{
	(void)p, (void)arg, (void)r;
	return 0;
}

#define FILLS(member) offsetof(struct host_facts, member), NULL

/* clang-format off */
/* Trials that do not depend on p->userns. The rows are independent of each other. */
static const struct trial_row outside[] = {
	{ try_user_nested, FILLS(ns_user_nested) },
	{ try_landlock,	   0, facts_take_landlock },
	{ try_filter,	   FILLS(seccomp_filter) },
	{ try_notify,	   0, facts_take_notify },
	{ try_getfd,	   FILLS(pidfd_getfd) },
	{ try_reflink,	   FILLS(reflink) },
	{ try_fuse,	   FILLS(fuse) },
	{ try_kvm,	   FILLS(kvm) },
	{ try_openat2,	   FILLS(openat2) },
	{ try_io_uring,	   FILLS(io_uring) },
	{ try_compat32,	   FILLS(compat32) },
	{ try_systemd,	   0, facts_take_systemd },
};

/* Trials that enter namespaces. They need p->userns, the result of try_user(). */
static const struct trial_row inside[] = {
	{ try_all_ns,	     0, facts_take_all_ns },
	{ try_proc,	     FILLS(proc_mount) },
	{ try_pivot,	     FILLS(pivot_root) },
	{ try_mount_api,     FILLS(new_mount_api) },
	{ try_anyip,	     FILLS(anyip) },
	{ try_overlay,	     FILLS(overlay) },
	{ try_overlay_tmpfs, FILLS(overlay_tmpfs) },
	{ try_nproc,	     FILLS(rlimit_nproc_userns) },
};
/* clang-format on */
_Static_assert(ARRAY_LEN(outside) <= TRIALS_MAX && ARRAY_LEN(inside) <= TRIALS_MAX, "too many");

/*
 * Runs all trials in order: first facts about this process while it is unchanged, then whether user
 * namespaces work, then the trials that use user namespaces.
 */
static void probe_all(struct probe *p, struct host_facts *f)
{
	struct cgroup_trial cgroup;
	struct report user;

	probe_host(p, f);
	probe_sysctls(f);
	probe_cgroup_start(p, f, &cgroup);
	f->ns_user = p->userns = trial_run(p, try_user, 0, &user) == 0;
	facts_trials_run(p, outside, ARRAY_LEN(outside), f);
	/* Without user namespaces or CAP_SYS_ADMIN no trial of the table `inside` can succeed. */
	if (f->ns_user || f->caps_sys_admin)
		facts_trials_run(p, inside, ARRAY_LEN(inside), f);
	if ((f->ns_user || f->caps_sys_admin) && !f->ns_mount)
		probe_each_ns(p, f);
	if (!f->ns_user)
		facts_set_text(f->userns_limit, sv_from(facts_why_no_userns(p, f, &user)));
	f->subids = probe_subids(f);
	probe_cgroup_finish(p, &cgroup, f);
}

int facts_probe(struct host_facts *ret_f, struct writ_err *err)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct host_facts f = { 0 };
	struct probe p = { .deadline_ms = clock_monotonic_ms() + PROBE_TOTAL_MS,
			   .transient = &f.transient_failure };
	struct sigaction caller;
	struct janitor janitor;
	bool can;

	/*
	 * Reset SIGCHLD: if the caller ignores SIGCHLD, the kernel reaps children itself, and a pid
	 * still in use here could belong to another process.
	 */
	(void)sigaction(SIGCHLD, &dfl, &caller);
	(void)snprintf(p.cgroup_name, sizeof(p.cgroup_name), "writ-probe-%d", (int)getpid());
	facts_janitor_start(&p, &janitor);
	can = trial_ok(&p, try_nothing, 0);
	if (!can) {
		/*
		 * The janitor process may have taken the last process slot of this user. Retry
		 * without the janitor.
		 */
		facts_janitor_end(&janitor);
		p.dir[0] = 0;
		can = trial_ok(&p, try_nothing, 0);
	}
	if (can)
		probe_all(&p, &f);
	facts_janitor_end(&janitor);
	(void)sigaction(SIGCHLD, &caller, NULL);
	if (!can)
		return writ_fail(err, WRIT_E_SYS, 0, "cannot start a child process to probe with");
	*ret_f = f;
	return 0;
}
