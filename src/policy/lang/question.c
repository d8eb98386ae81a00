#include "lang/lower_priv.h"
#include "lang/protect.h"

#include "base/banned.h"

/* Directories that each session gets empty and private. */
static const char *const private_dirs[] = { "/tmp", "/var/tmp", "/dev/shm", NULL };

static bool in_private_dir(struct sv path)
{
	for (size_t i = 0; private_dirs[i]; i++)
		if (sv_below(path, sv_from(private_dirs[i])))
			return true;
	return false;
}

static bool make_request(struct lower *l, const struct stmt *s, enum cap_action action,
			 struct sv resource, const char *params, struct cap *ret)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	int r;

	buf_fmt(&b, "%s:" SV_FMT ":" SV_FMT "%s", cap_action_name(action), SV_ARG(l->env->realm),
		SV_ARG(resource), params);
	r = b.failed ? writ_fail(&err, WRIT_E_LIMIT, 0, "too long")
		     : cap_parse(l->a, CAP_REQUEST, buf_view(&b), ret, &err);
	return r == 0 ||
	       lower_error(l, s, "ask about one thing, without wildcards", "%s", err.what);
}

static bool path_request(struct lower *l, const struct stmt *s, enum cap_action action,
			 struct policy_question *q)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct sv raw;

	if (!lower_plain_path(l, s, &raw))
		return false;
	q->private_area = in_private_dir(raw) && !sv_below(raw, l->env->workspace) &&
			  !(l->env->home.n > 1 && sv_below(raw, l->env->home)) &&
			  (action == CAP_FS_READ || action == CAP_FS_WRITE || action == CAP_FS_PUT);
	return cap_put_path(&b, raw, l->err) == 0 && !b.failed
		       ? make_request(l, s, action, buf_view(&b), "", &q->request)
		       : lower_error(l, s, NULL, "this path is too long");
}

static bool exec_request(struct lower *l, const struct stmt *s, struct policy_question *q)
{
	struct stmt named = *s;
	struct sv program;

	if (sv_find(s->object.text, '/') == SIZE_MAX) {
		if (!l->env->ops->program(l->env->ops->ctx, l->a, s->object.text, &program))
			return lower_error(l, s, NULL, "out of memory");
		if (program.n == 0)
			return lower_error(l, s, "give its path",
					   "no program \"" SV_FMT "\" in PATH",
					   SV_ARG(s->object.text));
		named.object.text = program;
	}
	return path_request(l, &named, CAP_PROC_EXEC, q);
}

static bool net_request(struct lower *l, const struct stmt *s, struct policy_question *q)
{
	const struct qual *method = lang_qual_find(s, QUAL_METHODS);
	const struct qual *query = lang_qual_find(s, QUAL_QUERY);
	struct net_object o;
	const char *text;
	struct sv url;

	if (!lang_net_parse(l, s, s->object.text, &o))
		return false;
	if (o.any)
		return lower_error(l, s, "as in why net https://example.com/",
				   "ask about one host");
	if (o.http && o.has_path) {
		text = arena_fmt(l->a, ";m=" SV_FMT ";q=%s",
				 SV_ARG(method ? method->value : SV("GET")),
				 query && sv_is(query->value, "any") ? "any" : "none");
		return lang_net_url_text(l, &o, &url) && text &&
		       make_request(l, s, CAP_HTTP_REQUEST, url, text, &q->request);
	}
	if (o.http && !o.tls) {
		o.path = SV("/");
		return lang_net_url_text(l, &o, &url) &&
		       make_request(l, s, CAP_HTTP_REQUEST, url, ";m=GET;q=none", &q->request);
	}
	if (o.lo != o.hi)
		return lower_error(l, s, NULL, "ask about one port");
	text = arena_fmt(l->a, "tcp/" SV_FMT ":%u", SV_ARG(o.host), o.lo);
	return text && make_request(l, s, CAP_NET_CONNECT, sv_from(text), o.tls ? ";tls=sni" : "",
				    &q->request);
}

/*
 * Makes a request for a verb whose grant has no wildcards: lowers the rule as a grant and parses
 * the result as a request.
 */
static bool request_from_grant(struct lower *l, const struct stmt *s, struct policy_question *q)
{
	struct stmt rule = *s;
	struct cap_set *keep = l->set;
	struct cap_set scratch = { 0 };
	struct writ_err err = { 0 };
	const struct cap *c;
	bool good;

	rule.kind = STMT_RULE;
	rule.effect = EFFECT_ALLOW;
	l->set = &scratch;
	good = lower_stmt(l, &rule);
	l->set = keep;
	if (!good)
		return false;
	if (scratch.caps.n == 0)
		return lower_error(l, s, "ask about exec, write or net instead",
				   "a bundle is not one act");
	c = &scratch.caps.v[0].cap;
	if (cap_parse(l->a, CAP_REQUEST, c->text, &q->request, &err) < 0)
		return lower_error(l, s, "ask about one thing, without wildcards", "%s", err.what);
	return true;
}

bool lang_question_lower(struct lower *l, const struct stmt *s, struct policy_question *ret)
{
	/*
	 * Verbs whose object is a path. exec has a function of its own, because its object may also
	 * be the name of a program.
	 */
	static const enum cap_action paths[] = {
		[VERB_READ] = CAP_FS_READ,
		[VERB_WRITE] = CAP_FS_WRITE,
		[VERB_PUT] = CAP_FS_PUT,
		[VERB_UNIX] = CAP_UNIX_CONNECT,
	};
	const enum verb_id verb = s->verb->id;
	const enum cap_action action = verb < ARRAY_LEN(paths) ? paths[verb] : CAP_NONE;
	struct policy_question q = { 0 };
	scoped_buf b = BUF_INIT(LEX_LINE_MAX);

	if (!(action != CAP_NONE  ? path_request(l, s, action, &q)
	      : verb == VERB_EXEC ? exec_request(l, s, &q)
	      : verb == VERB_NET  ? net_request(l, s, &q)
				  : request_from_grant(l, s, &q)))
		return false;
	buf_fmt(&b, "%s " SV_FMT, s->verb->name, SV_ARG(s->object.raw));
	for (size_t i = 0; i < s->quals_n; i++)
		buf_fmt(&b, " " SV_FMT, SV_ARG(s->quals[i].word.raw));
	*ret = q;
	return lang_keep(l, &b, &ret->text);
}

int policy_ask(const struct policy_env *env, const struct source *src, struct diags *d,
	       struct policy_question *ret_q, struct writ_err *err)
{
	struct lower l = { .env = env, .d = d, .a = d->arena, .err = err };
	struct policy scratch = { 0 };
	struct ast ast = { 0 };
	struct policy_question q;
	int r = ast_parse_rule(d, src, EFFECT_ALLOW, STMT_TEST, &ast, err);

	l.policy = &scratch;
	l.set = &scratch.set;
	if (r < 0)
		return r;
	if (ast.stmts.n == 0 || !lang_question_lower(&l, &ast.stmts.v[0], &q) || d->errors)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "this is not a question about one act");
	*ret_q = q;
	return 0;
}

/*
 * Does a file rule of @set name the path of @req? The session then sees the host's file at that
 * path, even below a private directory.
 */
static bool is_host_file(const struct cap_set *set, const struct cap *req)
{
	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap *c = &set->caps.v[i].cap;

		if ((c->action == CAP_FS_READ || c->action == CAP_FS_WRITE ||
		     c->action == CAP_FS_PUT) &&
		    cap_seq_matches(&c->path, &req->path))
			return true;
	}
	return false;
}

struct cap_verdict policy_answer(const struct cap_set *set, const struct policy_question *q)
{
	struct cap_verdict v = cap_set_decide(set, &q->request);

	/*
	 * Every session has private directories such as /tmp to itself, so access to them is
	 * allowed unless a rule replaces them by the host's files. System files of base stay
	 * readable although a wildcard denial matches them, see cap_set_spares_base().
	 */
	if (v.answer == CAP_DENY && v.rule == RULE_NONE && q->private_area &&
	    !is_host_file(set, &q->request))
		v.answer = CAP_ALLOW;
	else if (v.answer == CAP_DENY && v.rule != RULE_NONE &&
		 cap_set_base_only(set, &q->request, &v.rule))
		v.answer = CAP_ALLOW;
	return v;
}

/* Prints the segments of @s with the indices @at to @n - 1 as a path. */
static void put_path(struct buf *b, const struct cap_seq *s, size_t at, size_t n)
{
	for (size_t i = at; i < n; i++) {
		if (i > at)
			buf_ch(b, '/');
		buf_sv(b, s->segs[i].pre);
	}
}

/*
 * Returns the number of leading segments of @grant that form the top of the writable tree.
 * Protected names are relative to the workspace or, for any other grant, to the parent of the
 * granted path. Granting ".vscode" itself therefore does not lift its protection.
 */
static size_t top_of(const struct cap_seq *grant, struct sv workspace)
{
	scoped_buf b = BUF_INIT(1 << 16);
	size_t n = 0;

	while (n < grant->n && !grant->segs[n].star)
		n++;
	buf_ch(&b, '/');
	put_path(&b, grant, 0, n);
	return n == 0 || sv_eq(buf_view(&b), workspace) ? n : n - 1;
}

const struct protect_name *policy_protects(const struct policy *p, struct sv workspace,
					   const struct cap_set *set,
					   const struct policy_question *q,
					   const struct cap_verdict *v)
{
	const struct cap *c = &q->request;
	const struct cap_seq *grant;
	scoped_arena a = ARENA_INIT(1 << 16);
	scoped_buf rel = BUF_INIT(1 << 16);
	struct protect_open open = { NULL, 0 };
	struct protect_hit hit;
	struct sv *names;

	if ((c->action != CAP_FS_WRITE && c->action != CAP_FS_PUT) || v->answer == CAP_DENY ||
	    v->rule == RULE_NONE || v->entry >= set->caps.n)
		return NULL;
	grant = &set->caps.v[v->entry].cap.path;
	names = arena_array(&a, struct sv, p->opens.n + 1);
	for (size_t i = 0; names && i < p->opens.n; i++)
		names[open.n++] = p->opens.v[i].path;
	open.v = names;
	put_path(&rel, &c->path, top_of(grant, workspace), c->path.n);
	hit = protect_match(buf_view(&rel), false, &open);
	return hit.rel >= PROTECT_AT ? hit.row : NULL;
}
