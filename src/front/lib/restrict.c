#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "engines/engines.h"
#include "base/landlock.h"
#include "compile/compile.h"
#include "lib/restrict_priv.h"

#include "base/banned.h"

/* --- guarantees without a supervisor --- */

/*
 * Finds the facts that apply to a process that confines itself: Landlock and seccomp filters, but
 * no mediator, no cgroup and no namespace.
 */
static int own_facts(struct host_facts *f, struct writ_err *err)
{
	const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_VERSION);
	struct utsname u;

	memset(f, 0, sizeof(*f));
	if (uname(&u) == 0) {
		facts_set_text(f->kernel, sv_from(u.release));
		facts_set_text(f->arch, sv_from(u.machine));
	}
	f->uid = geteuid();
	f->root = geteuid() == 0;
	f->landlock_abi = abi > 0 ? (uint64_t)abi : 0;
	f->seccomp_filter = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
	return f->landlock_abi ? 0 : writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "no Landlock here");
}

/* Guarantees that only a supervisor can give. A process that restricts itself has no supervisor. */
static const struct {
	enum guarantee g;
	const char *why;
} nobody[] = {
	{ G_AUDIT, "nobody outside records" },
	{ G_CRED, "what this process holds and its environment stay" },
	{ G_RES_TIME, "nobody outside looks at the clock" },
	{ G_RES_OUTPUT, "nobody outside counts output" },
};

static bool is_accepted(const struct cap_set *set, enum guarantee g)
{
	return set->accepts[g] && set->accept[g] == LEVEL_NONE;
}

static int check_nobody(const struct cap_set *set, struct writ_err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(nobody); i++)
		if (set->require[nobody[i].g] > LEVEL_NONE)
			return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
					 "%s is required and none here: %s",
					 guarantee_name(nobody[i].g), nobody[i].why);
	for (unsigned l = 0; l < LIMIT_COUNT; l++) {
		const uint32_t rule = set->limit_rule[l];
		const bool time = l == LIMIT_COMMAND || l == LIMIT_SESSION || l == LIMIT_IDLE;

		if (!set->limits[l] || rule == RULE_NONE || set->rules.v[rule].shipped ||
		    (!time && l != LIMIT_OUTPUT) ||
		    is_accepted(set, time ? G_RES_TIME : G_RES_OUTPUT))
			continue;
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, SV_FMT ": %s",
				 SV_ARG(sv_sub(set->rules.v[rule].text, 0, 60)),
				 nobody[time ? 2 : 3].why);
	}
	return 0;
}

/* Returns why a process that restricts itself cannot enforce a grant of this action, or NULL. */
static const char *cannot(enum cap_action action)
{
	static const char *const why[CAP_ACTION_COUNT] = {
		[CAP_UNIX_CONNECT] = "connections cannot be told apart inside a process",
		[CAP_KERNEL_USE] = "a process that confines itself gets no kernel features",
		[CAP_STATE_USE] = "there is no session whose state this could be",
		[CAP_FS_PUT] = "a drop box needs somebody outside",
	};

	return why[action];
}

static int check_policy(const struct policy *p, struct writ_err *err)
{
	const struct cap_set *set = &p->set;

	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap_rule *rule = &set->rules.v[set->caps.v[i].rule];
		const char *why = cannot(set->caps.v[i].cap.action);

		if (why && !rule->built_in)
			return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, SV_FMT ": %s",
					 SV_ARG(sv_sub(rule->text, 0, 60)), why);
	}
	for (size_t i = 0; i < p->envs.n; i++)
		if (!set->rules.v[p->envs.v[i].rule].shipped && !is_accepted(set, G_CRED))
			return writ_fail(
				err, WRIT_E_UNENFORCEABLE, 0, SV_FMT ": %s",
				SV_ARG(sv_sub(set->rules.v[p->envs.v[i].rule].text, 0, 60)),
				"the environment of this process stays as it is");
	return check_nobody(set, err);
}

/* --- this process --- */

static int count_threads(struct writ_err *err)
{
	scoped_list *d = opendir("/proc/self/task");
	const struct dirent *e;
	int n = 0;

	if (!d)
		return writ_fail(err, WRIT_E_SYS, errno, "/proc/self/task");
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	return n;
}

/*
 * Tests whether the open socket @fd reaches destinations that a socket created after the
 * restriction could not reach.
 */
static bool reaches_out(int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof(int), m = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) < 0)
		return true;
	return domain != AF_UNIX || type == SOCK_DGRAM;
}

static int check_sockets(struct writ_err *err)
{
	scoped_list *d = opendir("/proc/self/fd");
	const struct dirent *e;
	uint64_t fd;

	if (!d)
		return writ_fail(err, WRIT_E_SYS, errno, "/proc/self/fd");
	while ((e = readdir(d)))
		if (sv_to_u64(sv_from(e->d_name), INT32_MAX, &fd) && reaches_out((int)fd))
			return writ_fail(
				err, WRIT_E_UNENFORCEABLE, 0,
				"descriptor %s is a socket that reaches out: close it first",
				e->d_name);
	return 0;
}

static int check_process(uint32_t flags, struct writ_err *err)
{
	const int threads = count_threads(err);

	if (threads < 0)
		return threads;
	if (threads != 1)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "this process has %d threads, and only one could be confined",
				 threads);
	return flags & WRIT_RESTRICT_KEEP_SOCKETS ? 0 : check_sockets(err);
}

/* --- the jail program --- */

/*
 * Compiles the jail program that a sandbox of tier B gets, without the parts that need a session.
 */
static int compile(struct arena *a, struct writ_policy *p, const struct plan *plan, int *ret,
		   struct writ_err *err)
{
	const struct engine_place place = { .home = SV_INIT(""),
					    .tmp = SV_INIT(""),
					    .info = SV_INIT(""),
					    .state = SV_INIT(""),
					    .user = SV_INIT("agent"),
					    .workspace = p->in.where.workspace };
	struct engine_view view;

	return compile_program(a, plan, p->policy, &place, 0, &view, ret, err);
}

static int map(int fd, struct restrict_work *w, struct writ_err *err)
{
	struct stat st;
	void *at = MAP_FAILED;

	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(*w->program))
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return writ_fail(err, WRIT_E_SYS, errno, "map the program");
	w->program = at;
	w->size = (size_t)st.st_size;
	/*
	 * SECURITY: refuse a jail program without Landlock rules or without a filter: such a
	 * program would restrict nothing.
	 */
	if (!(w->program->flags & JAIL_LANDLOCK) || w->program->base.n == 0)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "no file rules or no filter");
	return 0;
}

/*
 * SECURITY: refuses a grant to write files of writ itself, because a process that can write such
 * files controls every later session. In a session the mediator excludes these files from every
 * grant; a process that restricts itself has no mediator.
 */
static int check_own(const struct restrict_work *w, struct arena *a, struct sv own,
		     struct writ_err *err)
{
	/* Landlock access rights that write nothing: execute, read files, read directories */
	enum { READING = 1 | 4 | 8 };
	const struct jail_rule *rules;
	const char *name = arena_str(a, own);
	char *real;
	int r = 0;

	if (!name)
		return writ_nomem(err);
	if (own.n == 0)
		return 0;
	if (!w->program)
		return writ_fail(err, WRIT_E_BUG, 0, "there is no program");
	rules = (const void *)((const char *)w->program + w->program->rules.at);
	real = realpath(name, NULL);
	for (uint32_t i = 0; r == 0 && i < w->program->rules.n; i++) {
		const char *path = (const char *)w->program + rules[i].path.at;
		const char *is = real ? real : name;

		if (rules[i].path.n && (rules[i].access & ~(uint64_t)READING) &&
		    (sv_below(sv_from(is), sv_from(path)) || sv_below(sv_from(path), sv_from(is))))
			r = writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				      "writing %.40s would reach the files of writ in %.40s", path,
				      is);
	}
	free(real);
	return r;
}

static int prepare(struct arena *a, struct writ_policy *p, uint32_t flags, struct restrict_work *w,
		   struct writ_err *err)
{
	const struct plan_options tier_b = { .engines = engines_all, .tier = TIER_B };
	struct host_facts facts;
	struct plan *plan = NULL;
	scoped_fd fd = -1;
	int r = own_facts(&facts, err);

	if (r < 0 || (r = check_policy(p->policy, err)) < 0 ||
	    (r = plan_new(a, &p->policy->set, &facts, &tier_b, &plan, err)) < 0 ||
	    (r = plan_check(plan, err)) < 0 || (r = check_process(flags, err)) < 0 ||
	    (r = compile(a, p, plan, &fd, err)) < 0 || (r = map(fd, w, err)) < 0 ||
	    (r = check_own(w, a, p->in.where.config, err)) < 0 ||
	    (r = check_own(w, a, p->in.where.state, err)) < 0)
		return r;
	w->no_exec = !cap_set_has(&p->policy->set, CAP_PROC_EXEC);
	w->attributes = p->policy->set.accepts[G_FS_WRITE] &&
			p->policy->set.accept[G_FS_WRITE] <= LEVEL_PARTIAL;
	return apply_prepare(w, err);
}

int writ_restrict_self(struct writ_policy *p, uint32_t flags, int *ret_partial,
		       struct writ_error *err)
{
	scoped_arena a = ARENA_INIT(POLICY_ARENA_MAX);
	struct restrict_work w = { .ruleset = -1 };
	struct writ_err why = { 0 };
	int done = 0;
	int r;

	if (!p || (flags & ~(uint32_t)WRIT_RESTRICT_KEEP_SOCKETS))
		return lib_argument(err, "writ_restrict_self: no policy, or unknown flags");
	r = prepare(&a, p, flags, &w, &why);
	if (r == 0)
		r = apply_steps(&w, &done, &why);
	if (w.program)
		(void)munmap((void *)(uintptr_t)w.program, w.size);
	fd_scope_close(&w.ruleset);
	if (ret_partial)
		*ret_partial = r < 0 ? done : 0;
	return r < 0 ? lib_error(err, &why) : 0;
}
