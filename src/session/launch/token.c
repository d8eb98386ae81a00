#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/launch_priv.h"
#include "launch/token.h"

#include "base/banned.h"

enum { TEXT_MAX = 64 << 10 };

static int refuse(struct launch_result *ret, struct writ_err *err)
{
	*err = ret->why.err;
	if (ret->why.code != TOKEN_E_NONE)
		ret->end = LAUNCH_TOKEN_REFUSED;
	return err->code ? err->code : WRIT_E_DENIED;
}

/*
 * SECURITY: the command must not read the token again. Replaces standard input by /dev/null: if
 * standard input is a file, the command could rewind that file and read the token.
 */
static int close_input(struct writ_err *err)
{
	scoped_fd null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return null < 0 || dup2(null, STDIN_FILENO) < 0
		       ? writ_fail(err, WRIT_E_SYS, errno, "/dev/null")
		       : 0;
}

static int read_text(struct arena *a, const char *path, struct launch_token *t,
		     struct launch_result *ret, struct writ_err *err)
{
	const bool std = strcmp(path, "-") == 0;
	scoped_buf b = BUF_INIT(TEXT_MAX);
	struct sv text;
	int r = std ? fd_read_all(STDIN_FILENO, &b, err) : fd_read_file(path, &b, err);

	if (r == 0 && std)
		r = close_input(err);
	text = buf_view(&b);
	while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	t->text = arena_str(a, text);
	t->text_n = text.n;
	if (b.n)
		crypto_wipe(b.p, b.n);
	if (r == WRIT_E_LIMIT) {
		(void)!token_refuse(&ret->why, TOKEN_E_SIZE, "more than %d bytes", TEXT_MAX);
		return refuse(ret, err);
	}
	if (r < 0)
		return r;
	if (!t->text)
		return writ_nomem(err);
	if (t->text_n)
		return 0;
	ret->why.hop = 0;
	(void)!token_refuse(
		&ret->why, TOKEN_E_FORMAT,
		"expected a chain of tokens, as writ token mint prints it; nothing is in %s",
		std ? "standard input" : path);
	return refuse(ret, err);
}

int launch_token_open(struct arena *a, const struct find_where *where, const char *path,
		      bool anywhere, struct launch_token *t, struct launch_result *ret,
		      struct writ_err *err)
{
	int r;

	ret->why = (struct token_why){ .hop = TOKEN_HOP_NONE };
	r = read_text(a, path, t, ret, err);
	if (r == 0)
		r = wallet_open(a, where->state, where->realm, false, &t->wallet, err);
	if (r < 0)
		return r;
	r = wallet_chain(&t->wallet, (struct sv){ t->text, t->text_n }, anywhere, &t->chain,
			 &ret->why);
	return r < 0 ? refuse(ret, err) : 0;
}

/* --- a policy made of tokens --- */

static int make_hops(struct arena *a, const struct chain *c, struct policy_hop *hops, size_t *ret_n,
		     struct writ_err *err)
{
	size_t n = 0;

	if (!c->issuer->self)
		hops[n++] = (struct policy_hop){ &c->issuer->ceiling, SV("ceiling"),
						 SV("the ceiling of its issuer never had it") };
	for (size_t i = 0; i < c->n; i++) {
		const char *name = arena_fmt(a, "token %zu", i + 1);
		const char *says = arena_fmt(a, "hop %zu of %zu of the chain %s", i + 1, c->n,
					     i ? "dropped it" : "never had it");

		if (!name || !says)
			return writ_nomem(err);
		hops[n++] = (struct policy_hop){ &c->token[i].set, sv_from(name), sv_from(says) };
	}
	*ret_n = n;
	return 0;
}

/* Returns the reason why a session cannot enforce the capability @cap of a token, or NULL. */
static const char *find_unheld(const struct cap *cap, const struct policy *p)
{
	if (cap->rate_n)
		return "a rate is not counted across sessions";
	if (cap->action == CAP_AGENT_SPAWN && p->agents.n == 0)
		return "no policy says what that agent may do: name one with -p";
	return cap->action == CAP_SECRET_USE ? "a token does not say where a secret is" : NULL;
}

static int refuse_unheld(const struct launch_request *req, const char *text,
			 struct launch_result *ret, struct writ_err *err)
{
	if (!text)
		return writ_nomem(err);
	launch_note(&req->events, text);
	ret->end = LAUNCH_TOKEN_UNHELD;
	return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "%s", text);
}

/* Refuses a chain of tokens with valid lines that no session on this machine can enforce. */
static int check_holdable(struct arena *a, const struct launch_request *req, const struct chain *c,
			  const struct policy *p, struct launch_result *ret, struct writ_err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct cap_set *s = &c->token[i].set;

		if (s->has_rt && !digest_eq(&s->rt, &p->set.rt))
			return refuse_unheld(
				req,
				arena_fmt(a,
					  "token %zu was made for another base profile than this "
					  "writ has",
					  i + 1),
				ret, err);
		for (size_t k = 0; k < s->caps.n; k++) {
			const struct cap *cap = &s->caps.v[k].cap;
			const char *why = find_unheld(cap, p);

			if (why)
				return refuse_unheld(req,
						     arena_fmt(a, "token %zu: " SV_FMT ": %s",
							       i + 1, SV_ARG(cap->text), why),
						     ret, err);
		}
	}
	return 0;
}

int launch_load_token(struct arena *a, const struct launch_request *req, const char *program,
		      struct launch_loaded *l, struct launch_result *ret, struct writ_err *err)
{
	struct policy_hop hops[TOKEN_CHAIN_MAX + 1];
	struct launch_token *t = arena_new(a, struct launch_token);
	struct policy_input input = { 0 };
	size_t n = 0;
	int r;

	if (!t)
		return writ_nomem(err);
	r = launch_token_open(a, &l->in.where, req->policy.token, false, t, ret, err);
	for (size_t i = 0; r == 0 && i < req->policy.files_n; i++)
		r = locate_add_file(a, &l->in, req->policy.files[i], err);
	if (r == 0 && program)
		r = locate_program(a, program, &l->in, err);
	if (r == 0)
		r = make_hops(a, &t->chain, hops, &n, err);
	if (r < 0)
		return r;
	locate_world_init(&l->world, a, &l->in);
	input = (struct policy_input){ .files = l->in.files.v,
				       .files_n = l->in.files.n,
				       .args = l->in.args.v,
				       .args_n = l->in.args.n };
	r = policy_chain(&l->world.env, &input, hops, n, &l->diags, &l->policy, err);
	if (req->events.diagnosed)
		req->events.diagnosed(req->events.ctx, &l->diags);
	if (r == WRIT_E_SYNTAX)
		ret->end = LAUNCH_BAD_POLICY;
	if (r < 0)
		return r;
	l->token = t;
	return req->policy.unheld_ok ? 0 : check_holdable(a, req, &t->chain, l->policy, ret, err);
}
