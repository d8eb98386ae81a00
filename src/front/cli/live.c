#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "parts/session.h"
#include "plan/event.h"
#include "rpc/rpc.h"

#include "base/banned.h"

/* --- ps and stop --- */

struct listing {
	struct buf *b;
	bool json;
	size_t n;
	struct sv state;
};

static bool list_one(void *ctx, const struct session_info *i)
{
	struct listing *l = ctx;

	if (l->json) {
		buf_fmt(l->b,
			"%s{\"session\":\"%s\",\"pid\":%lld,\"seconds\":%llu,\"state\":\"%s\","
			"\"denials\":%u,\"workspace\":",
			l->n ? "," : "", i->id, (long long)i->pid, (unsigned long long)i->started,
			i->state, i->denials);
		json_put_str(l->b, sv_from(i->workspace));
		json_put_member(l->b, "command", sv_from(i->command));
		buf_ch(l->b, '}');
	} else {
		if (l->n == 0)
			buf_fmt(l->b, "%-10s%-9s%-10s%-9s%-9s%s\n", "SESSION", "PID", "STATE",
				"SECONDS", "DENIALS", "COMMAND");
		buf_fmt(l->b, "%-10s%-9lld%-10s%-9llu%-9u", i->id, (long long)i->pid, i->state,
			(unsigned long long)i->started, i->denials);
		diag_put_safe(l->b, i->command[0] ? sv_from(i->command) : SV("-"));
		buf_ch(l->b, '\n');
	}
	l->n++;
	return true;
}

int cmd_ps(struct args *a)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct listing l = { .b = &b, .json = a->given[OPT_JSON] };
	struct find_where w;
	struct writ_err err = { 0 };

	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	session_sweep(w.state);
	if (l.json)
		buf_ch(&b, '[');
	if (session_list(w.state, a->arena, list_one, &l, &err) < 0)
		return cli_fail(&err, NULL);
	if (l.json)
		buf_str(&b, "]\n");
	else if (l.n == 0)
		cli_note("no session is running");
	return cli_out(&b, EXIT_DONE);
}

static bool stop_one(void *ctx, const struct session_info *i)
{
	const struct listing *l = ctx;
	struct writ_err err = { 0 };

	if (session_call(l->state, sv_from(i->id), "session.close", json_object(), NULL, &err) <
		    0 &&
	    err.sys == ETIMEDOUT)
		cli_note("%s", err.what);
	return true;
}

int cmd_stop(struct args *a)
{
	struct find_where w;
	struct writ_err err = { 0 };
	struct listing l = { 0 };
	int r;

	if ((a->operands.n == 1) == a->given[OPT_ALL] || a->operands.n > 1)
		return cli_end(EXIT_FAILED,
			       "stop which session? writ ps lists them; --all stops every one");
	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	l.state = w.state;
	if (a->given[OPT_ALL])
		r = session_list(w.state, a->arena, stop_one, &l, &err);
	else
		r = session_call(w.state, sv_from(a->operands.v[0]), "session.close", json_object(),
				 NULL, &err);
	return r < 0 ? cli_fail(&err, NULL) : EXIT_DONE;
}

/* --- allow and revoke --- */

/* A rule that is granted to a running session. */
struct live_rule {
	struct sv action, object; /* "read" and a physical path, or "net" and a destination */
	json_t *caps;		  /* for "net": the capabilities of the rule; else NULL */
	const char *inode;	  /* for a path: identity of the object there, for grant.allow */
};

/* Converts "net:api.test" to a rule with its capabilities, using the compiler for policies. */
static int live_net(struct args *a, const struct find_where *w, struct sv what,
		    struct live_rule *ret, struct writ_err *err)
{
	const char *text = arena_fmt(a->arena, "net:" SV_FMT, SV_ARG(what));
	const struct source none = { .name = SV("live"), .text = SV("version 1\nuse none\n") };
	const struct policy_arg rule = { ARG_ALLOW, { .name = SV("rule"), .text = sv_from(text) } };
	struct find_input found = { .where = *w };
	struct find_world world = { 0 };
	const struct policy_input in = { .files = &none, .files_n = 1, .args = &rule, .args_n = 1 };
	struct diags d = { .arena = a->arena };
	struct policy *p;

	if (!text || sv_find(what, '\n') != SIZE_MAX)
		return text ? writ_fail(err, WRIT_E_SYNTAX, 0, "not a rule") : writ_nomem(err);
	locate_world_init(&world, a->arena, &found);
	if (policy_new(&world.env, &in, &d, &p, err) < 0)
		return d.list.n ? writ_fail(err, WRIT_E_SYNTAX, 0, "net " SV_FMT ": " SV_FMT,
					    SV_ARG(sv_sub(what, 0, 60)), SV_ARG(d.list.v[0].text))
				: WRIT_E_SYNTAX;
	ret->action = SV("net");
	ret->object = what;
	ret->caps = json_array();
	for (size_t i = 0; i < p->set.caps.n; i++)
		if (cap_host_of(&p->set.caps.v[i].cap))
			(void)json_array_append_new(ret->caps,
						    rpc_bytes(p->set.caps.v[i].cap.text));
	return ret->caps ? 0 : writ_nomem(err);
}

/*
 * Converts the operation @verb on the physical @path to a rule about the object at @path. SECURITY:
 * follows no link. The session attaches the object only if it is still the one that this function
 * found. *@ret is unchanged if it returns an error.
 */
static int live_path(struct args *a, struct sv verb, const char *path, struct live_rule *ret,
		     struct writ_err *err)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	scoped_fd fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	const char *inode;
	struct sv object;
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "%s leads through a link now, to something else: name what you "
				 "mean, as in " SV_FMT ":PATH",
				 path, SV_ARG(verb));
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "%s does not exist", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	inode = arena_fmt(a->arena, "%llu:%llu", (unsigned long long)st.st_dev,
			  (unsigned long long)st.st_ino);
	if (!inode || !arena_sv(a->arena, sv_from(path), &object))
		return writ_nomem(err);
	ret->action = verb;
	ret->object = object;
	ret->inode = inode;
	return 0;
}

/*
 * Converts "read:./x", "read ./x" or the same with "write" to a rule with the physical path. Passes
 * a rule that starts with "net" to live_net().
 */
static int live_read(struct args *a, const struct find_where *w, struct sv text,
		     struct live_rule *ret, struct writ_err *err)
{
	struct sv rest = text;
	const size_t colon = sv_find(text, ':'), blank = sv_find(text, ' ');
	const struct sv verb = sv_cut(&rest, colon < blank ? ':' : ' ');
	const char *path;
	char real[PATH_MAX];

	rest = sv_trim(rest);
	if (sv_is(verb, "net"))
		return live_net(a, w, rest, ret, err);
	if (!sv_is(verb, "read") && !sv_is(verb, "write"))
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "only read, write and net can be granted live, as in read:./data");
	if (sv_starts(rest, SV("~/")) && getenv("HOME"))
		path = arena_fmt(a->arena, "%s/" SV_FMT, getenv("HOME"), SV_ARG(sv_skip(rest, 2)));
	else
		path = arena_str(a->arena, rest);
	if (!path)
		return writ_nomem(err);
	if (!realpath(path, real))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "%s does not exist", path);
	return live_path(a, verb, real, ret, err);
}

/*
 * Converts a denial to the rule for the denied path. @inode: the object that was denied, or empty
 * if there was none. SECURITY: the session may have put something else at that path since, so the
 * path is not resolved again.
 */
static int live_denied(struct args *a, struct sv verb, struct sv object, const char *inode,
		       struct live_rule *ret, struct writ_err *err)
{
	const char *path = arena_str(a->arena, object);
	int r;

	if (!path)
		return writ_nomem(err);
	/* A record keeps the beginning of a longer path, which is the path of something else. */
	if (object.n + 4 >= MEDIATE_TEXT)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "its path is too long to be granted by number: name what you "
				 "mean, as in " SV_FMT ":PATH",
				 SV_ARG(verb));
	r = live_path(a, verb, path, ret, err);
	if (r == 0 && inode && *inode && (!ret->inode || strcmp(inode, ret->inode) != 0))
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "%s is not what it was when it was denied: name what you mean, "
				 "as in " SV_FMT ":PATH",
				 path, SV_ARG(verb));
	return r;
}

/* Finds the rule that would have allowed the denied operation @number of session @id. */
static int denied_rule(struct args *a, const struct find_where *w, struct sv id, struct sv number,
		       struct live_rule *ret, struct writ_err *err)
{
	scoped_json *answer = NULL;
	uint64_t n = 0;
	const bool hint = sv_starts(number, SV("h"));
	const bool numbered = sv_to_u64(sv_skip(number, hint), INT32_MAX, &n) && n > 0;
	const json_t *row;
	const char *op;
	struct sv object;
	int r = session_call(w->state, id, "denial.list",
			     json_pack("{s:i,s:i,s:b}", "after", numbered ? (int)n - 1 : 0, "max",
				       1, "hints", hint),
			     &answer, err);

	if (r < 0)
		return r;
	row = json_array_get(json_object_get(answer, "denials"), 0);
	op = json_string_value(json_object_get(row, "op"));
	if (!numbered || !op || !rpc_get_bytes(a->arena, json_object_get(row, "object"), &object))
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "there is no denial " SV_FMT " in this session", SV_ARG(number));
	if (strcmp(op, "git") == 0)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "a repository is granted by a rule of the policy only");
	if (strcmp(op, "net") == 0)
		return live_net(a, w, object, ret, err);
	/* @row is freed with @answer, but the rule keeps the name of the operation. */
	return live_denied(a, strcmp(op, "read") == 0 ? SV("read") : SV("write"), object,
			   json_string_value(json_object_get(row, "inode")), ret, err);
}

static bool is_plain(struct sv rule)
{
	return sv_is_alnum(sv_skip(rule, sv_find(rule, ' ') + 1), "/._+@=,-:*");
}

struct whose {
	struct arena *a;
	struct sv id, program;
};

static bool find_whose(void *ctx, const struct session_info *i)
{
	struct whose *w = ctx;
	struct sv rest = sv_from(i->command);

	if (!sv_starts(sv_from(i->id), w->id))
		return true;
	(void)!arena_sv(w->a, sv_cut(&rest, ' '), &w->program);
	return false;
}

/*
 * Returns the policy text to start from if the project has no policy file yet: the built-in rules
 * that the session runs with, so that a file with the added rule does not withdraw those rules.
 */
static int first_policy(struct args *a, const struct find_where *w, struct sv id, struct sv *ret,
			struct writ_err *err)
{
	struct whose whose = { .a = a->arena, .id = id };
	int r = session_list(w->state, a->arena, find_whose, &whose, err);

	if (r < 0 || (r = locate_agent_text(a->arena, whose.program, environ, ret, err)) < 0)
		return r;
	if (ret->n == 0)
		*ret = SV("version 1\nallow write .\n");
	return 0;
}

/* Appends the rule to the operator's own policy for this project. */
static int keep_rule(struct args *a, const struct find_where *w, struct sv id, struct sv rule,
		     struct writ_err *err)
{
	const char *path;
	struct source src = { .text = SV("") };
	struct writ_err none = { 0 };
	const char *text;

	if (w->workspace.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "--always needs a workspace: run it in the project");
	/*
	 * SECURITY: an agent may have chosen the name in the rule; a line break in the name would
	 * add another rule to the policy.
	 */
	if (!is_plain(rule))
		return writ_fail(
			err, WRIT_E_SYNTAX, 0,
			"granted, but this name is not written into a policy for you: it has "
			"unusual characters");
	path = locate_project_file(a->arena, w, "projects");
	if (!path)
		return writ_nomem(err);
	if (locate_text(a->arena, path, &src, &none) < 0) {
		const int r = first_policy(a, w, id, &src.text, err);

		if (r < 0)
			return r;
	}
	text = arena_fmt(a->arena, "\nallow " SV_FMT "\n", SV_ARG(rule));
	if (text && memmem(src.text.p, src.text.n, text, strlen(text)))
		return 0;
	text = arena_fmt(a->arena, SV_FMT "%sallow " SV_FMT "\n", SV_ARG(src.text),
			 sv_ends(src.text, SV("\n")) ? "" : "\n", SV_ARG(rule));
	if (!text)
		return writ_nomem(err);
	cli_note("adding to %s: allow " SV_FMT, path, SV_ARG(rule));
	return fd_replace_deep(AT_FDCWD, path, sv_from(text), 0600, err);
}

/* Parses the operands: finds the session, and the rule to grant to it. */
static int asked_rule(struct args *a, const struct find_where *w, struct sv *ret_id,
		      struct live_rule *ret, struct writ_err *err)
{
	struct sv number = sv_from(a->operands.v[0]);
	const char *text;

	*ret_id = sv_cut(&number, '#');
	if (a->operands.n == 1)
		return denied_rule(a, w, *ret_id, number, ret, err);
	text = a->operands.n == 2
		       ? a->operands.v[1]
		       : arena_fmt(a->arena, "%s %s", a->operands.v[1], a->operands.v[2]);
	return text ? live_read(a, w, sv_from(text), ret, err) : writ_nomem(err);
}

int cmd_allow(struct args *a)
{
	struct live_rule rule = { .action = SV(""), .object = SV("") };
	scoped_json *answer = NULL;
	struct find_where w;
	struct writ_err err = { 0 };
	const char *text;
	struct sv id;
	int r;

	if (a->operands.n < 1 || a->operands.n > 3 ||
	    (a->operands.n == 1) != (strchr(a->operands.v[0], '#') != NULL))
		return cli_end(EXIT_FAILED, "allow what? as in: writ allow 7f3a#1, or writ allow "
			       "7f3a read:./data");
	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	r = asked_rule(a, &w, &id, &rule, &err);
	if (r == 0)
		r = session_call(w.state, id, "grant.allow",
				 json_pack("{s:o,s:o,s:o*,s:s*}", "action", rpc_bytes(rule.action),
					   "object", rpc_bytes(rule.object), "caps", rule.caps,
					   "inode", rule.inode),
				 &answer, &err);
	if (r < 0)
		return cli_fail(&err, NULL);
	text = arena_fmt(a->arena, SV_FMT " " SV_FMT, SV_ARG(rule.action), SV_ARG(rule.object));
	if (!text)
		return EXIT_FAILED;
	cli_note("granted %s; take it back with: writ revoke " SV_FMT " %lld", text, SV_ARG(id),
		 (long long)json_integer_value(json_object_get(answer, "grant")));
	if (a->given[OPT_ALWAYS])
		r = keep_rule(a, &w, id, sv_from(text), &err);
	return r < 0 ? cli_fail(&err, NULL) : EXIT_DONE;
}

int cmd_revoke(struct args *a)
{
	struct find_where w;
	struct writ_err err = { 0 };
	uint64_t n = 0;
	int r;

	if (a->operands.n != 2)
		return cli_end(EXIT_FAILED, "revoke which grant? as in: writ revoke 7f3a 1");
	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	if (!sv_to_u64(sv_from(a->operands.v[1]), INT32_MAX, &n))
		return cli_end(EXIT_FAILED, "there is no grant %s", a->operands.v[1]);
	r = session_call(w.state, sv_from(a->operands.v[0]), "grant.revoke",
			 json_pack("{s:i}", "grant", (int)n), NULL, &err);
	return r < 0 ? cli_fail(&err, NULL) : EXIT_DONE;
}
