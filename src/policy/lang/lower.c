#include "lang/lower_priv.h"

#include "lang/protect.h"

#include "base/banned.h"

bool lang_keep(struct lower *l, const struct buf *b, struct sv *ret)
{
	return !b->failed && arena_sv(l->a, buf_view(b), ret);
}

const struct word *lower_main_word(const struct stmt *s)
{
	return s->object.raw.n ? &s->object : &s->w[s->n > 1 ? 1 : 0];
}

bool lower_add(struct lower *l, const struct stmt *s, enum cap_action action, struct sv resource,
	       const struct params *params)
{
	const bool deny = s->kind == STMT_RULE && s->effect == EFFECT_DENY;
	struct params none = { 0 };
	struct params p = params && !deny ? *params : none;
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	struct cap_entry e = { .rule = l->rule };
	int r;

	if (s->kind == STMT_RULE && s->effect == EFFECT_ASK)
		p.v[P_APPROVE] = SV("operator");
	buf_fmt(&b, "%s:" SV_FMT ":" SV_FMT, cap_action_name(action), SV_ARG(l->env->realm),
		SV_ARG(resource));
	for (enum cap_param i = 0; i < P_COUNT; i++)
		if (p.v[i].n)
			buf_fmt(&b, ";%s=" SV_FMT, cap_param_key(i).p, SV_ARG(p.v[i]));
	r = b.failed ? writ_fail(&err, WRIT_E_LIMIT, 0, "this rule is too long")
		     : cap_parse(l->a, deny ? CAP_DENIAL : CAP_GRANT, buf_view(&b), &e.cap, &err);
	if (r < 0)
		return lower_error(l, s, NULL, "%s", err.what);
	return (deny ? vec_add(l->a, &l->set->nots, e) : vec_add(l->a, &l->set->caps, e)) ||
	       lower_error(l, s, NULL, "out of memory");
}

/* Adds the capabilities of a read, write or put rule. */
static bool add_files(struct lower *l, const struct stmt *s, struct sv text)
{
	const bool deny = s->effect == EFFECT_DENY;

	/* fs.write includes fs.put, so a denial of put must deny fs.write. */
	if (s->verb->id == VERB_PUT)
		return lower_add(l, s, deny ? CAP_FS_WRITE : CAP_FS_PUT, text, NULL);
	if (s->verb->id == VERB_WRITE)
		return (deny || lower_add(l, s, CAP_FS_READ, text, NULL)) &&
		       lower_add(l, s, CAP_FS_WRITE, text, NULL);
	/*
	 * SECURITY: a denial of reading denies writing too. Otherwise a program could rename the
	 * file to a readable place.
	 */
	return lower_add(l, s, CAP_FS_READ, text, NULL) &&
	       (!deny || lower_add(l, s, CAP_FS_WRITE, text, NULL));
}

static bool lower_files(struct lower *l, const struct stmt *s)
{
	struct lowered_path p;
	bool skip;

	if (!lower_path(l, s, &p, &skip))
		return false;
	if (skip)
		return true;
	/*
	 * Deny a path that passes through links also by its written name; otherwise a program could
	 * replace the link.
	 */
	return add_files(l, s, p.text) && (p.as_written.n == 0 || add_files(l, s, p.as_written));
}

/*
 * Directories from which programs execute helper programs. `allow exec NAME` and `ask exec NAME`
 * without qualifiers include those of NAME that exist.
 */
static const struct {
	const char *name;
	const char *path; /* directory with the helper programs */
} helpers[] = {
	{ "git", "/usr/lib/git-core" },	    { "git", "/usr/libexec/git-core" },
	{ "gcc", "/usr/lib/gcc" },	    { "gcc", "/usr/libexec/gcc" },
	{ "cc", "/usr/lib/gcc" },	    { "cc", "/usr/libexec/gcc" },
	{ "g++", "/usr/lib/gcc" },	    { "g++", "/usr/libexec/gcc" },
	{ "clang", "/usr/lib/llvm" },	    { "go", "/usr/lib/go" },
	{ "go", "/usr/local/go" },	    { "cargo", "/usr/lib/rustlib" },
	{ "npm", "/usr/lib/node_modules" }, { "npm", "/usr/local/lib/node_modules" },
	{ "java", "/usr/lib/jvm" },	    { "perl", "/usr/lib/x86_64-linux-gnu/perl" },
};

static bool add_exec(struct lower *l, const struct stmt *s, struct sv path, const struct params *p)
{
	struct sv text = path;

	if (s->effect == EFFECT_DENY && !sv_ends(path, SV("/**"))) {
		text = sv_from(arena_fmt(l->a, SV_FMT "/**", SV_ARG(path)));
		if (text.n == 0)
			return lower_error(l, s, NULL, "out of memory");
	}
	return lower_add(l, s, CAP_PROC_EXEC, text, p) &&
	       (s->effect == EFFECT_DENY || lower_add(l, s, CAP_FS_READ, path, NULL));
}

static bool add_helpers(struct lower *l, const struct stmt *s)
{
	for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
		scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
		struct policy_path found;
		struct sv text;

		if (s->effect == EFFECT_DENY || !sv_is(s->object.text, helpers[i].name))
			continue;
		if (!l->env->ops->lookup(l->env->ops->ctx, l->a, sv_from(helpers[i].path), &found))
			return lower_error(l, s, NULL, "out of memory");
		if (found.kind != PATH_DIR)
			continue;
		if (cap_put_path(&b, found.physical, l->err) < 0)
			return false;
		buf_str(&b, "/**");
		if (!lang_keep(l, &b, &text) || !add_exec(l, s, text, NULL))
			return false;
	}
	return true;
}

/*
 * Appends a segment with at most one star as canonical text. Returns false if the segment has more
 * stars.
 */
static bool put_starred(struct buf *b, struct sv seg)
{
	const size_t star = sv_find(seg, '*');

	cap_put_seg(b, sv_sub(seg, 0, star));
	if (star == SIZE_MAX)
		return true;
	buf_ch(b, '*');
	cap_put_seg(b, sv_skip(seg, star + 1));
	return sv_find(sv_skip(seg, star + 1), '*') == SIZE_MAX;
}

/*
 * Converts args="git status **" to canonical text: one segment per word; the last word may be **.
 */
static bool args_text(struct lower *l, const struct stmt *s, const struct qual *q, struct sv *ret)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct sv rest = q->value;
	bool good = true;

	while (good && rest.n) {
		const struct sv arg = sv_cut(&rest, ' ');

		buf_ch(&b, '/');
		if (rest.n == 0 && sv_is(arg, "**"))
			buf_str(&b, "**");
		else
			good = arg.n && put_starred(&b, arg);
	}
	return (good && lang_keep(l, &b, ret)) ||
	       lang_bad_qual(
		       l, s, q,
		       "words with one space between, at most one * in each, ** only as the last");
}

static bool sha256_check(struct lower *l, const struct stmt *s, const struct qual *q)
{
	bool good = q->value.n == 64;

	for (size_t i = 0; good && i < q->value.n; i++)
		good = sv_hex_lower(q->value.p[i]) >= 0;
	return good || lang_bad_qual(l, s, q,
				     "64 lower-case hexadecimal digits, as sha256sum prints them");
}

static bool canonical_path(struct lower *l, struct sv raw, struct sv *ret)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);

	return cap_put_path(&b, raw, l->err) == 0 && lang_keep(l, &b, ret);
}

/*
 * Denies a program by its file name in every directory, so that a copy with the same name does not
 * run either.
 */
static bool deny_program(struct lower *l, const struct stmt *s)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct sv text;

	buf_str(&b, "/**/");
	cap_put_seg(&b, s->object.text);
	buf_str(&b, "/**");
	return lang_keep(l, &b, &text) ? lower_add(l, s, CAP_PROC_EXEC, text, NULL)
				       : lower_error(l, s, NULL, "this name is too long");
}

static bool missing_program(struct lower *l, const struct stmt *s)
{
	if (!s->optional && !l->env->missing_ok)
		return lower_error(l, s, "give its path, or ?NAME if it may be missing",
				   "no program \"" SV_FMT "\" in PATH", SV_ARG(s->object.text));
	l->set->rules.v[l->rule].missing = true;
	if (!s->optional)
		diag_add(l->d, DIAG_WARNING, lang_word_place(s, &s->object), NULL,
			 "no program \"" SV_FMT "\" in PATH here, so a run would be refused",
			 SV_ARG(s->object.text));
	return true;
}

static bool lower_exec(struct lower *l, const struct stmt *s)
{
	const struct qual *args = lang_qual_find(s, QUAL_ARGS);
	const struct qual *sha = lang_qual_find(s, QUAL_SHA256);
	struct params p = { 0 };
	struct lowered_path path;
	struct sv program, text;
	bool skip;

	if (s->effect != EFFECT_DENY)
		l->exec_seen = true;
	if ((args && !args_text(l, s, args, &p.v[P_ARGS])) || (sha && !sha256_check(l, s, sha)))
		return false;
	if (sha)
		p.v[P_SHA256] = sha->value;
	if (sv_find(s->object.text, '/') != SIZE_MAX) {
		if (!lower_path(l, s, &path, &skip))
			return false;
		return skip || add_exec(l, s, path.text, &p);
	}
	if (sv_find(s->object.text, '*') != SIZE_MAX)
		return lower_error(l, s, "without any exec line, everything readable may run",
				   "exec names one program, or a directory with a slash");
	if (s->effect == EFFECT_DENY)
		return deny_program(l, s);
	if (!l->env->ops->program(l->env->ops->ctx, l->a, s->object.text, &program))
		return lower_error(l, s, NULL, "out of memory");
	if (program.n == 0)
		return missing_program(l, s);
	if (!canonical_path(l, program, &text))
		return lower_error(l, s, NULL, "this path is too long");
	/*
	 * Grant helpers only for a rule without args and sha256: helpers are other files and get
	 * other arguments.
	 */
	return add_exec(l, s, text, &p) && (args || sha || add_helpers(l, s));
}

static bool plain_text(struct lower *l, const struct stmt *s, struct sv *ret_raw,
		       struct sv *ret_text)
{
	if (!lower_plain_path(l, s, ret_raw))
		return false;
	return canonical_path(l, *ret_raw, ret_text) ||
	       lower_error(l, s, NULL, "this path is too long");
}

static bool lower_unix(struct lower *l, const struct stmt *s)
{
	const bool danger = s->kind == STMT_DANGER;
	const struct protect_socket *known;
	struct params p = { 0 };
	struct sv raw, text;

	if (!plain_text(l, s, &raw, &text))
		return false;
	/* SECURITY: sockets that control the machine need an explicit `danger` line. */
	known = protect_socket_find(raw);
	if (known && !danger && s->effect != EFFECT_DENY)
		return lower_error(l, s,
				   arena_fmt(l->a, "if you mean it: danger unix " SV_FMT,
					     SV_ARG(s->object.text)),
				   "%s", known->why);
	if (danger)
		p.v[P_DANGER] = SV("1");
	return lower_add(l, s, CAP_UNIX_CONNECT, text, &p);
}

static bool lower_device(struct lower *l, const struct stmt *s)
{
	const struct qual *mode = lang_qual_find(s, QUAL_MODE);
	struct params p = { 0 };
	struct sv raw, text;

	p.v[P_O] = SV("r");
	if (mode) {
		if (!sv_is(mode->value, "r") && !sv_is(mode->value, "rw"))
			return lang_error(l->d, s, &mode->word, "mode=r or mode=rw",
					  "unknown mode");
		p.v[P_O] = mode->value;
	}
	if (!plain_text(l, s, &raw, &text))
		return false;
	if (!sv_starts(raw, SV("/dev/")))
		return lower_error(l, s, "as in /dev/dri/card0", "devices live below /dev");
	return lower_add(l, s, CAP_DEV_USE, text, &p);
}

/* Lowers the name of an object to a resource of one segment, or of the form mcp/server/tool. */
static bool lower_name(struct lower *l, const struct stmt *s, enum cap_action action,
		       const char *prefix)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct sv rest = s->object.text;
	struct params p = { 0 };
	struct sv text;
	bool stars = true;

	buf_str(&b, prefix);
	do {
		buf_ch(&b, '/');
		stars = put_starred(&b, sv_cut(&rest, '/')) && stars;
	} while (rest.n);
	if (!stars)
		return lower_error(l, s, NULL, "more than one * in \"" SV_FMT "\"",
				   SV_ARG(s->object.text));
	if (!lang_keep(l, &b, &text))
		return lower_error(l, s, NULL, "this name is too long");
	return lower_counters(l, s, &p) && lower_add(l, s, action, text, &p);
}

static bool lower_tool(struct lower *l, const struct stmt *s)
{
	struct sv tool = s->object.text;
	const struct sv server = sv_cut(&tool, '/');

	if (server.n == 0 || tool.n == 0 || sv_find(tool, '/') != SIZE_MAX)
		return lower_error(l, s, "as in github/create_issue, or github/* for all its tools",
				   "a tool is named server/tool");
	return lower_name(l, s, CAP_TOOL_CALL, "/mcp");
}

static bool lower_kernel(struct lower *l, const struct stmt *s)
{
	static const char *const switches[] = { "nested-userns", "ptrace-own", "io_uring", NULL };

	if (sv_index(s->object.text, switches, ARRAY_LEN(switches) - 1) < ARRAY_LEN(switches) - 1)
		return lower_name(l, s, CAP_KERNEL_USE, "");
	return lower_error(l, s,
			   diag_suggest(l->a, s->object.text, switches,
					"nested-userns, ptrace-own or io_uring"),
			   "unknown kernel switch \"" SV_FMT "\"", SV_ARG(s->object.text));
}

static bool lower_listen(struct lower *l, const struct stmt *s)
{
	uint16_t lo, hi;
	const char *text;

	if (cap_ports_parse(s->object.text, &lo, &hi) && hi - lo >= 64)
		return lower_error(l, s, NULL, "a range has at most 64 ports");
	if (!cap_ports_parse(s->object.text, &lo, &hi))
		return lower_error(l, s, "as in listen 8080 or listen 8000-8010",
				   "\"" SV_FMT "\" is not a port", SV_ARG(s->object.text));
	text = arena_fmt(l->a, "tcp/localhost:" SV_FMT, SV_ARG(s->object.text));
	return text ? lower_add(l, s, CAP_NET_BIND, sv_from(text), NULL)
		    : lower_error(l, s, NULL, "out of memory");
}

/* Lowers a shell level to the rules that the level stands for. */
static bool lower_shell(struct lower *l, const struct stmt *s)
{
	static const char *const levels[] = { "none", "read-only", "read-write", "full", NULL };
	struct stmt part = *s;

	if (s->effect != EFFECT_ALLOW)
		return lower_error(l, s, "say it for its parts: exec, write, net",
				   "a bundle can only be allowed");
	if (sv_is(s->object.text, "none")) {
		l->exec_seen = true;
		return true;
	}
	if (sv_is(s->object.text, "read-only"))
		return true;
	if (!sv_is(s->object.text, "read-write") && !sv_is(s->object.text, "full"))
		return lower_error(l, s,
				   diag_suggest(l->a, s->object.text, levels,
						"none, read-only, read-write or full"),
				   "unknown shell level");
	part.verb = lang_verb_find(SV("write"));
	part.object.text = SV(".");
	if (!lower_files(l, &part))
		return false;
	if (sv_is(s->object.text, "read-write"))
		return true;
	part.verb = lang_verb_find(SV("net"));
	part.object.text = SV("*");
	return lower_net(l, &part);
}

/* Lowers an agent rule: its object is the name of an agent that the session may start. */
static bool lower_agent(struct lower *l, const struct stmt *s)
{
	if (sv_find(s->object.text, '/') != SIZE_MAX)
		return lower_error(l, s, NULL, "an agent's name has no slash");
	return lower_name(l, s, CAP_AGENT_SPAWN, "");
}

static bool lower_rule(struct lower *l, const struct stmt *s)
{
	static bool (*const verbs[])(struct lower *l, const struct stmt *s) = {
		[VERB_READ] = lower_files,     [VERB_WRITE] = lower_files,
		[VERB_PUT] = lower_files,      [VERB_EXEC] = lower_exec,
		[VERB_NET] = lower_net,	       [VERB_LISTEN] = lower_listen,
		[VERB_UNIX] = lower_unix,      [VERB_GIT] = lower_git,
		[VERB_DEVICE] = lower_device,  [VERB_KERNEL] = lower_kernel,
		[VERB_TOOL] = lower_tool,      [VERB_AGENT] = lower_agent,
		[VERB_SHELL] = lower_shell,
	};

	if (s->effect == EFFECT_DENY && s->quals_n)
		return diag_add(l->d, DIAG_ERROR, lang_word_place(s, &s->quals[0].word),
				"deny the whole object, or allow less", "deny takes no qualifiers");
	if (s->optional && verbs[s->verb->id] != lower_files && s->verb->id != VERB_EXEC)
		return lower_error(l, s, NULL, "only paths and programs can be optional");
	return verbs[s->verb->id] && verbs[s->verb->id](l, s);
}

/* Lowers `danger unix PATH`: a unix rule that may also name a socket in protect_sockets. */
static bool lower_danger(struct lower *l, const struct stmt *s)
{
	struct stmt as_rule = *s;

	if (!sv_is(s->w[1].text, "unix"))
		return lang_error(l->d, s, &s->w[1], "danger unix PATH",
				  "only sockets can be dangerous this way");
	as_rule.kind = STMT_DANGER;
	as_rule.effect = EFFECT_ALLOW;
	as_rule.object = s->w[2];
	return lower_unix(l, &as_rule);
}

static bool lower_open(struct lower *l, const struct stmt *s)
{
	const struct word *w = &s->w[1];
	struct sv name = w->text;

	if (sv_starts(name, SV("./")))
		name = sv_skip(name, 2);
	if (!protect_find(name)) {
		const char *names[256];
		size_t n = 0;

		for (const struct protect_name *p = protect_names;
		     p->name && n + 1 < ARRAY_LEN(names); p++)
			names[n++] = p->name;
		names[n] = NULL;
		return diag_add(l->d, DIAG_ERROR, lang_word_place(s, w),
				diag_suggest(l->a, name, names,
					     "writ explain --protected lists the names"),
				"\"" SV_FMT "\" is not a protected name", SV_ARG(name));
	}
	return vec_add(l->a, &l->policy->opens, (struct policy_open){ name, l->rule }) ||
	       lower_error(l, s, NULL, "out of memory");
}

/* Parses the value of a setting, which must be one of @words. *@ret is the index of the word. */
static bool choose(struct lower *l, const struct stmt *s, const struct word *w,
		   const char *const *words, unsigned *ret)
{
	for (unsigned i = 0; words[i]; i++)
		if (sv_is(w->text, words[i])) {
			*ret = i;
			return true;
		}
	return diag_add(l->d, DIAG_ERROR, lang_word_place(s, w),
			diag_suggest(l->a, w->text, words,
				     arena_fmt(l->a, "%s, %s%s%s", words[0], words[1],
					       words[2] ? ", " : "", words[2] ? words[2] : "")),
			"\"" SV_FMT "\" is not a value for " SV_FMT, SV_ARG(w->text),
			SV_ARG(s->w[0].text));
}

static bool lower_setting(struct lower *l, const struct stmt *s)
{
	static const char *const workspaces[] = { "direct", "cow", NULL };
	static const char *const isolations[] = { "process", "gvisor", "vm", NULL };
	static const char *const net_levels[] = { "hosts", "hosts+dns", "signed", NULL };
	const bool level = sv_is(s->w[1].text, "level");
	struct cap_set *set = l->set;
	unsigned v;

	if (s->kind == STMT_ISOLATION && !sv_is(s->w[1].text, ">="))
		return lang_error(l->d, s, &s->w[1], "isolation >= vm", "expected >=");
	if (s->kind == STMT_NET_LEVEL && (!level || s->n != 3))
		return diag_add(l->d, DIAG_ERROR, lang_word_place(s, &s->w[0]),
				level ? "net level hosts, hosts+dns or signed"
				      : "as in allow net https://example.com",
				"%s",
				level ? "expected one level"
				      : "a rule begins with allow, ask or deny");
	if (!choose(l, s, &s->w[s->n - 1],
		    s->kind == STMT_WORKSPACE	? workspaces
		    : s->kind == STMT_ISOLATION ? isolations
						: net_levels,
		    &v))
		return false;
	if (s->kind == STMT_WORKSPACE && v >= set->workspace) {
		set->workspace = (enum cap_workspace)v;
		set->workspace_rule = l->rule;
	} else if (s->kind == STMT_ISOLATION && v >= set->isolation) {
		set->isolation = (enum cap_isolation)v;
		set->isolation_rule = l->rule;
	} else if (s->kind == STMT_NET_LEVEL && v >= set->net_level) {
		set->net_level = (enum cap_net_level)v;
		set->net_level_rule = l->rule;
	}
	return true;
}

static bool lower_state(struct lower *l, const struct stmt *s)
{
	struct stmt as_rule = *s;

	as_rule.object = s->w[1];
	if (sv_find(s->w[1].text, '/') != SIZE_MAX || sv_find(s->w[1].text, '*') != SIZE_MAX)
		return lower_error(l, s, "as in state cache", "a state's name is one plain word");
	return lower_name(l, &as_rule, CAP_STATE_USE, "");
}

bool lower_rule_text(struct lower *l, const struct stmt *s, struct sv *ret)
{
	static const char *const effects[] = { "deny", "ask", "allow" };
	scoped_buf b = BUF_INIT(LEX_LINE_MAX);

	/*
	 * Print the effect: on a command line the flag gives the effect, so the words of the
	 * statement lack it.
	 */
	if (s->kind == STMT_RULE && !sv_is(s->w[0].text, effects[s->effect]))
		buf_fmt(&b, "%s ", effects[s->effect]);
	lang_stmt_print(s, &b);
	return lang_keep(l, &b, ret);
}

bool lower_stmt(struct lower *l, const struct stmt *s)
{
	static bool (*const lowers[])(struct lower *l, const struct stmt *s) = {
		[STMT_RULE] = lower_rule,	     [STMT_OPEN] = lower_open,
		[STMT_ENV] = lower_env,		     [STMT_SECRET] = lower_secret,
		[STMT_LIMIT] = lower_limit,	     [STMT_STATE] = lower_state,
		[STMT_WORKSPACE] = lower_setting,    [STMT_ISOLATION] = lower_setting,
		[STMT_NET_LEVEL] = lower_setting,    [STMT_REQUIRE] = lower_guarantees,
		[STMT_ACCEPT] = lower_guarantees,    [STMT_DANGER] = lower_danger,
	};

	/* Statements of the kinds without a row grant nothing and set nothing. */
	return !lowers[s->kind] || lowers[s->kind](l, s);
}
