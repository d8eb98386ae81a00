#include "lint/policy.h"

#include "base/banned.h"

#define G(x) (1u << G_##x)
#define G_ALL ((1u << G_COUNT) - 1)

enum {
	PL_WILDCARD = 0,
	PL_EXFILTRATION,
	PL_HOME,
	PL_SYSTEM_WRITE,
	PL_DANGER,
	PL_SECRET_ENV,
	PL_SECRET_IDLE,
	PL_SHELL_FULL,
	PL_NO_LIMITS,
	PL_OPEN,
	PL_ACCEPT,
	PL_KERNEL,
	PL_AGENT_IDLE,
	PL_INTERNAL,
	PL_PLAIN_HTTP,
};

/* clang-format off */
static const struct lint_rule rules[] = {
[PL_WILDCARD] = { "W201", "any-host", LINT_WARNING, G(NET) | G(DNS),
	"Any public host can be reached",
	"Whatever the agent can read it can send anywhere, and what it fetches may carry instructions.",
	"Name the hosts it needs, one net line each; `ask net *` decides case by case." },
[PL_EXFILTRATION] = { "W202", "publishing-host", LINT_WARNING, G(NET),
	"Anyone can publish on this host",
	"An allowed paste, wiki, storage or webhook host is a way out for everything the agent reads.",
	"Narrow the rule to the path and methods that are needed, or leave the host out." },
[PL_HOME] = { "W203", "home-readable", LINT_WARNING, G(FS_READ) | G(CRED),
	"The home directory, or more, is readable",
	"It holds ssh keys, browser profiles, tokens of other tools and shell history.",
	"Grant the directories that are needed, for example `allow read ~/.pyenv`." },
[PL_SYSTEM_WRITE] = { "W204", "system-writable", LINT_ERROR, G(FS_WRITE) | G(EXEC),
	"A system directory is writable",
	"Programs, libraries and settings there are run and obeyed by everybody on this machine.",
	"Write below the workspace, or use `state NAME` for what must be kept." },
[PL_DANGER] = { "W205", "dangerous-socket", LINT_ERROR, G_ALL,
	"A socket that hands out authority is let in",
	"Whoever speaks to it can act outside the sandbox, so no other line of the policy holds.",
	"Remove it; run the engine itself inside a virtual machine if the agent must have one." },
[PL_SECRET_ENV] = { "W206", "secret-inside", LINT_WARNING, G(CRED),
	"The agent itself holds this secret",
	"It can print it, store it in the workspace or send it to any host it can reach.",
	"Use `as bearer`, `basic`, `header:NAME` or `query:NAME`: then it is set outside." },
[PL_SECRET_IDLE] = { "W207", "secret-unused", LINT_WARNING, G(CRED),
	"No rule reaches the host of this secret",
	"`to` grants no network by itself, so the secret can never be used.",
	"Add `allow net` for that host." },
[PL_SHELL_FULL] = { "W208", "shell-full", LINT_WARNING, G(FS_WRITE) | G(NET),
	"The widest shell is granted",
	"It may run anything, write the whole workspace and reach any public host.",
	"Use `shell read-write` and name the hosts." },
[PL_NO_LIMITS] = { "W209", "no-limits", LINT_INFO, G(RES_MEMORY) | G(RES_TIME),
	"No limit on memory or on time",
	"A runaway build or a loop takes the machine with it; the built-in limits only stop the worst.",
	"Add `limit memory 4G` and `limit session 2h`, or what fits." },
[PL_OPEN] = { "W210", "protection-lifted", LINT_WARNING, G(FS_WRITE) | G(EXEC),
	"A built-in protection is lifted",
	"Other tools execute or obey this file later, outside the sandbox.",
	"Leave it out and let a person make that change, or use `workspace cow` and look at the diff." },
[PL_ACCEPT] = { "W211", "weaker-accepted", LINT_INFO, 0,
	"A weaker guarantee is accepted",
	"A run goes on where it would have been refused, and this boundary may not hold.",
	"Leave it out where the machine can do better; `writ doctor` says what is missing." },
[PL_KERNEL] = { "W212", "kernel-switch", LINT_WARNING, G(SYSCALL),
	"A part of the kernel is opened that is closed by default",
	"io_uring and nested user namespaces have been the way into the kernel many times.",
	"Leave it out; most programs fall back to something else." },
[PL_AGENT_IDLE] = { "W213", "agent-unused", LINT_INFO, 0,
	"This agent is described but nobody may start it",
	"A block says what an agent may do; starting it is a right of its own.",
	"Add `allow agent NAME`." },
[PL_INTERNAL] = { "W214", "internal-name", LINT_WARNING, G(NET),
	"This name looks internal",
	"Names that resolve to private addresses are refused unless the rule says which network.",
	"Add `private=10.0.0.0/8`, or whatever the network is." },
[PL_PLAIN_HTTP] = { "W215", "plain-http", LINT_INFO, G(NET) | G(CRED),
	"This goes over the network unencrypted",
	"Anyone on the way can read and change it, and a secret is never sent there.",
	"Use https://." },
};
/* clang-format on */

struct policy_linter {
	struct arena *a;
	const struct policy *p;
	const struct source *src;
	const struct policy_env *env;
	struct lint_findings *out;
	bool nomem;
};

static void found(struct policy_linter *l, size_t rule, uint32_t line, struct sv detail)
{
	struct lint_finding f = { .rule = &rules[rule],
				  .line = line,
				  .column = 1,
				  .width = 1,
				  .where = SV(""),
				  .detail = detail };
	struct sv rest = l->src->text, text = SV("");

	for (uint32_t i = 0; i < line; i++)
		text = sv_cut(&rest, '\n');
	if (text.n)
		f.width = (uint32_t)sv_trim(text).n;
	l->nomem = l->nomem || !vec_add(l->a, l->out, f);
}

/*
 * Returns the rule if the user wrote the rule in the linted file, otherwise NULL. Profiles are
 * linted before writ ships them.
 */
static const struct cap_rule *own_rule(const struct policy_linter *l, uint32_t rule)
{
	const struct cap_rule *r = rule == RULE_NONE ? NULL : &l->p->set.rules.v[rule];

	return r && !r->built_in && sv_eq(r->file, l->src->name) ? r : NULL;
}

static bool covers_path(struct policy_linter *l, const struct cap *c, struct sv path)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	struct cap req;

	buf_fmt(&b, "%s:" SV_FMT ":", cap_action_name(c->action), SV_ARG(l->env->realm));
	return path.n && cap_put_path(&b, path, &err) == 0 && !b.failed &&
	       cap_parse(l->a, CAP_REQUEST, buf_view(&b), &req, &err) == 0 && cap_matches(c, &req);
}

static void lint_files(struct policy_linter *l, const struct cap *c, const struct cap_rule *r)
{
	static const char *const victims[] = { "/etc/passwd",	   "/usr/bin/env", "/bin/sh",
					       "/usr/local/bin/x", "/usr/lib/x",   "/boot/x",
					       "/lib/x",	   "/var/lib/x",   NULL };
	const char *keys = arena_fmt(l->a, SV_FMT "/.ssh/id_ed25519", SV_ARG(l->env->home));

	if (c->action == CAP_FS_READ && keys && l->env->home.n && covers_path(l, c, sv_from(keys)))
		found(l, PL_HOME, r->line, c->path.n == 0 ? SV("the whole file system") : SV(""));
	for (size_t i = 0; c->action != CAP_FS_READ && victims[i]; i++)
		if (covers_path(l, c, sv_from(victims[i]))) {
			found(l, PL_SYSTEM_WRITE, r->line, SV(""));
			return;
		}
}

static void lint_net(struct policy_linter *l, const struct cap *c, const struct cap_rule *r)
{
	const struct cap_host *h = c->action == CAP_HTTP_REQUEST ? &c->url.host : &c->host;
	const bool wild = h->kind == CAP_HOST_ONE || h->kind == CAP_HOST_MANY;
	const bool narrow = c->action == CAP_HTTP_REQUEST && (c->url.path.n || !c->url.path.tail);
	const char *what;

	if (c->approve_n)
		return;
	if (h->kind == CAP_HOST_ANY) {
		/* Report `net *` once, although the rule becomes two capabilities. */
		if (c->action == CAP_HTTP_REQUEST || c->port_lo != 80)
			found(l, PL_WILDCARD, r->line, SV(""));
		return;
	}
	if (h->kind != CAP_HOST_NAME && !wild)
		return;
	what = narrow ? NULL : lint_exfiltration_host(h->name, wild);
	if (what)
		found(l, PL_EXFILTRATION, r->line, sv_from(what));
	if (policy_looks_internal(h->name) && c->priv_n == 0)
		found(l, PL_INTERNAL, r->line, h->name);
	if (c->action == CAP_HTTP_REQUEST && !c->url.tls && !sv_is(h->name, "localhost"))
		found(l, PL_PLAIN_HTTP, r->line, SV(""));
}

static bool host_covers(const struct cap_host *h, struct sv name)
{
	if (h->kind == CAP_HOST_NAME)
		return sv_eq(h->name, name);
	return h->kind == CAP_HOST_ANY ||
	       ((h->kind == CAP_HOST_ONE || h->kind == CAP_HOST_MANY) && name.n > h->name.n &&
		sv_ends(name, h->name) && name.p[name.n - h->name.n - 1] == '.');
}

static bool secret_reaches(const struct policy_linter *l, const struct cap *s)
{
	for (size_t i = 0; i < l->p->set.caps.n; i++) {
		const struct cap *c = &l->p->set.caps.v[i].cap;

		if (c->action == CAP_HTTP_REQUEST && c->url.tls && c->url.port == s->to.port &&
		    host_covers(&c->url.host, s->to.host.name))
			return true;
		if (c->action == CAP_NET_CONNECT && c->host.kind == CAP_HOST_ANY &&
		    c->port_lo == s->to.port)
			return true;
	}
	return false;
}

static void lint_cap(struct policy_linter *l, const struct cap *c, const struct cap_rule *r)
{
	if (c->action == CAP_FS_READ || c->action == CAP_FS_WRITE || c->action == CAP_FS_PUT)
		lint_files(l, c, r);
	else if (c->action == CAP_NET_CONNECT || c->action == CAP_HTTP_REQUEST)
		lint_net(l, c, r);
	else if (c->action == CAP_UNIX_CONNECT && c->danger)
		found(l, PL_DANGER, r->line, SV(""));
	else if (c->action == CAP_KERNEL_USE && !sv_is(c->path.segs[0].pre, "ptrace-own"))
		found(l, PL_KERNEL, r->line, c->path.segs[0].pre);
	else if (c->action == CAP_SECRET_USE && sv_is(c->as, "env"))
		found(l, PL_SECRET_ENV, r->line, c->path.segs[0].pre);
	else if (c->action == CAP_SECRET_USE && !secret_reaches(l, c))
		found(l, PL_SECRET_IDLE, r->line, c->path.segs[0].pre);
}

static void lint_agents(struct policy_linter *l)
{
	for (size_t i = 0; i < l->p->agents.n; i++) {
		const struct sv name = l->p->agents.v[i].name;
		bool started = false;

		for (size_t k = 0; k < l->p->set.caps.n; k++) {
			const struct cap *c = &l->p->set.caps.v[k].cap;

			started = started ||
				  (c->action == CAP_AGENT_SPAWN &&
				   (c->path.segs[0].star || sv_eq(c->path.segs[0].pre, name)));
		}
		if (!started)
			found(l, PL_AGENT_IDLE, 0, name);
	}
}

static void lint_settings(struct policy_linter *l)
{
	const struct cap_set *s = &l->p->set;

	for (uint32_t i = 0; i < s->rules.n; i++) {
		const struct cap_rule *r = own_rule(l, i);

		if (r && r->kind == RULE_SHELL_FULL)
			found(l, PL_SHELL_FULL, r->line, SV(""));
	}
	for (size_t i = 0; i < l->p->opens.n; i++) {
		const struct cap_rule *r = own_rule(l, l->p->opens.v[i].rule);

		if (r)
			found(l, PL_OPEN, r->line, l->p->opens.v[i].path);
	}
	for (size_t i = 0; i < G_COUNT; i++) {
		const struct cap_rule *r = s->accepts[i] ? own_rule(l, s->accept_rule[i]) : NULL;

		if (r)
			found(l, PL_ACCEPT, r->line, sv_from(guarantee_name((enum guarantee)i)));
	}
	if (s->limits[LIMIT_MEMORY] == 0 ||
	    (s->limit_rule[LIMIT_SESSION] != RULE_NONE &&
	     !own_rule(l, s->limit_rule[LIMIT_SESSION]) && s->limits[LIMIT_COMMAND] == 0))
		found(l, PL_NO_LIMITS, 1, SV(""));
}

int lint_policy(struct arena *a, const struct policy *p, const struct source *src,
		const struct policy_env *env, struct lint_findings *findings, struct writ_err *err)
{
	struct policy_linter l = { .a = a, .p = p, .src = src, .env = env, .out = findings };

	for (size_t i = 0; i < p->set.caps.n; i++) {
		const struct cap_rule *r = own_rule(&l, p->set.caps.v[i].rule);

		if (r)
			lint_cap(&l, &p->set.caps.v[i].cap, r);
	}
	lint_agents(&l);
	lint_settings(&l);
	return l.nomem ? writ_nomem(err) : 0;
}
