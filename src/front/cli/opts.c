#include "cli/opts.h"

#include "cli/cli.h"

#include "base/banned.h"

static const struct opt opts[] = {
#define OPTION(id, ...) { OPT_##id, __VA_ARGS__ },
#include "cli/options.def"
#undef OPTION
};

/* struct cli_verb.opts has one bit for each option. */
_Static_assert(OPT_COUNT <= 64, "options do not fit into the mask of a verb");

#define O(x) (UINT64_C(1) << OPT_##x)
#define RULE_OPTS (O(POLICY) | O(PROFILE) | O(ALLOW) | O(ASK) | O(DENY) | O(LIMIT) | O(SECRET) | \
		   O(ENV) | O(VAR) | O(WORKSPACE) | O(CWD))
#define PLAN_OPTS (O(ADAPTER) | O(TIER) | O(FACTS))

/* clang-format off */
const struct cli_verb cli_verbs[] = {
	{ "run", "[--] COMMAND [ARG...]", "run a command with exactly what the policy grants",
	  RULE_OPTS | O(TOKEN) | O(TIER) | O(FACTS) | O(STATUS_FD) | O(NEUTRAL) | O(DURABILITY) | O(EXPLAIN_DENIALS) | O(ATTEST_OUT) | O(QUIET) | O(VERBOSE),
	  "writ run --allow write:./logs/* -- python3 job.py",
	  "Confines the command on this machine as `writ explain` says, and ends with its status. Without a rule and without "
	  "a policy it may write the workspace, read the system's programs, and nothing else. 121 is an error in the policy, 122 a guarantee that this "
	  "machine cannot give, 124 a time limit, 125 a failure of writ itself, 126 and 127 as in shells, "
	  "128+N signal N.",
	  cmd_run, false, true },
	{ "session", "start [-- COMMAND...] | exec SESSION -- COMMAND... | attach SESSION [N] | denials SESSION | prune | stop SESSION", "a sandbox that stays",
	  RULE_OPTS | O(TIER) | O(FACTS) | O(NEUTRAL) | O(DURABILITY) | O(DETACH) | O(OLDER_THAN) | O(JSON) | O(QUIET) | O(VERBOSE),
	  "writ session start --allow write:./logs/*",
	  "start makes a session that goes on by itself and prints its id; exec runs one more command in it, with this "
	  "terminal, or with --detach on its own. attach joins the terminal of a command: the last 64 KiB it showed, what it shows "
	  "from now on, your keys; Ctrl-] and then d leaves it running. Whoever attaches last has it. "
	  "denials lists what was refused in a session that runs or has ended, of `run` too, and what would allow it. "
	  "prune removes records of sessions that have ended, those older than 30 days and all but the newest 500, or those older than "
	  "--older-than; the former happens by itself. "
	  "stop ends the session and everything in it. Options come before `--`. A session ends with stop or at limit session.",
	  cmd_session, false, false },
	{ "spawn", "AGENT [--] COMMAND [ARG...]", "inside a session: start an agent of its policy",
	  0, "writ spawn coder -- make test",
	  "Used by programs inside `writ run`, where the policy has `allow agent AGENT` and a block `agent AGENT`. The command runs in a session of its own, under "
	  "that block (and under a token of its own, where the session has one), with these standard descriptors: files, pipes and sockets; of a terminal it "
	  "gets a pipe. What is counted is counted together with the session. This ends with its status, or 121 if no token can be derived for it; "
	  "it ends with the session that started it. Needs writ itself to be readable inside, as in /usr, and tier A.",
	  cmd_spawn, false, true },
	{ "ps", "", "sessions that are running", O(JSON), "writ ps",
	  "Lists the sessions of this user with their age, their denials and their command. A run is listed 20 ms after its "
	  "command has started: what ends sooner is never spoken to.", cmd_ps, false, false },
	{ "stop", "[SESSION]", "end a session and everything in it", O(ALL), "writ stop 7f3a",
	  "SESSION is an id or its beginning. With --all every session of this user is ended.", cmd_stop, false, false },
	{ "allow", "SESSION#N | SESSION read:PATH | SESSION write:PATH | SESSION net:HOST", "grant one more thing to a running session",
	  O(ALWAYS), "writ allow 7f3a#1",
	  "Grants what denial N of the session was about, with SESSION#hN hint N, or a read, write or net rule of your own, without restarting anything. "
	  "With --always the rule is also written into your own policy for this project, and shown.",
	  cmd_allow, false, false },
	{ "revoke", "SESSION NUMBER", "take a live grant back", 0, "writ revoke 7f3a 1",
	  "What is open already stays open; nothing new can be opened. Of grants that lie upon each other the later one goes first. "
	  "A grant that cannot be taken back ends the session.", cmd_revoke, false, false },
	{ "net", "tail SESSION | summary SESSION", "what a session did on the network",
	  O(JSON), "writ net summary 7f3a",
	  "summary counts connections, requests, denials and bytes for each host; tail shows each decision, those to come as well "
	  "while the session runs. Works for sessions that have ended, too.", cmd_net, false, false },
	{ "audit", "show|tail|verify|prove|export|redact [SESSION] | witness", "what happened, and is the record of it whole?",
	  O(LAST) | O(OUT) | O(JSONL) | O(PUBLIC) | O(KEY) | O(POLICY) | O(JSON), "writ audit verify",
	  "SESSION is an id or its beginning; --last, or nothing, is the one that was written to last. show prints the record as a person reads it, seconds "
	  "since the start first; tail goes on while the session runs. verify reads the realm's log and the record of every session (or of one), compares "
	  "everything with what was signed by the keys pinned in log.policy, asks the witnesses, and names each failure with its place; it ends with 1 "
	  "if anything does not verify or the signer is not pinned, and of one session also if its end is not signed yet. Where writ-signer keeps the log it is "
	  "that one, and it says so. prove writes C2SP tlog-proof files for the start and the end of a session. "
	  "export prints the record, with --public without private members. redact erases these for good; the record verifies as before. "
	  "witness has the log cosigned now.", cmd_audit, false, false },
	{ "key", "init | show [ROLE] | rotate [ROLE]", "the keys that sign logs and tokens",
	  O(JSON), "writ key show",
	  "Roles are log, issue and witness. init makes what is missing and pins the log's key in log.policy; the first run does so by itself. show prints public keys: "
	  "for logs and witnesses the C2SP verifier key, for issue the JWK thumbprint. rotate makes another key: the log says so, both keys sign that, and what the old "
	  "one signed before still verifies.", cmd_key, false, false },
	{ "witness", "serve VKEY... | add URL VKEY", "remember what logs of others have shown, or have yours remembered",
	  O(LISTEN) | O(KEY) | O(POLICY) | O(DIR) | O(VERBOSE), "writ witness add http://10.0.0.7:8327 VKEY",
	  "serve answers C2SP tlog-witness requests over plain HTTP for the logs with these verifier keys, and prints its URL and its own verifier key. "
	  "add names a witness of your log: it is asked when a session ends and by `writ audit verify`, which then finds out if the end of the log was cut off, or an "
	  "older copy was put in its place. The URL is http://ADDRESS:PORT.", cmd_witness, false, false },
	{ "attest", "verify [SESSION | DIR | FILE...] | show [SESSION]", "which boundaries of a session held, and who says so",
	  O(OUT) | O(REQUIRE) | O(KEY) | O(POLICY) | O(JSON), "writ attest verify --require fs>=E2,net>=E2",
	  "verify takes the last session, one by its id, or files that came from elsewhere: it compares what the session wrote down with the "
	  "log of the realm and that with the keys that are pinned, and then says of each boundary whether it held, and by what "
	  "evidence. show prints the statement about a session that has ended; with --out it writes session.json, entries.jsonl, "
	  "session.sigstore.json, two proofs and the public keys. Ends with 0 if everything fits and no boundary was violated, or "
	  "what --require asks for held; with 1 if it fits and did not hold, nobody knows how it ended, or that is not signed yet; with 4 if something does not fit, "
	  "and says where; with 5 if no pinned key has signed it.",
	  cmd_attest, false, false },
	{ "signer", "install | status | remove", "let another user's program hold the keys and the log",
	  O(DIR) | O(USER), "writ signer install",
	  "As root, install makes a group and a directory of its own and puts a setgid program there that keeps the log of sessions and signs "
	  "statements: the users of this machine can end it, but neither read its keys nor change what it wrote. From then on every "
	  "session needs it, and ends if it is killed. WRIT_SIGNER=none does without, and the verdict says so. remove undoes that and keeps the logs.",
	  cmd_signer, false, false },
	{ "check", "[FILE]", "is this policy right, and do its tests pass?",
	  RULE_OPTS | O(JSON) | O(QUIET) | O(PRINT), "writ check agent.writ",
	  "Reads a policy and everything it uses, reports every error with its place and what to write instead, and runs "
	  "its test lines. Without FILE it checks what a run in this directory would use. FILE may be - for standard input. "
	  "With --print it writes the policy back in canonical spacing.", cmd_check, false },
	{ "caps", "[FILE]", "the policy as canonical capabilities",
	  RULE_OPTS | O(ALL) | O(JSON), "writ caps --allow write:./logs/*",
	  "Prints what a token or a record would carry: one string per meaning, with physical paths, and the digest of the "
	  "set.", cmd_caps, false },
	{ "explain", "[FILE]", "what enforces each line on this machine, and what cannot be",
	  RULE_OPTS | PLAN_OPTS | O(TOKEN) | O(ALL) | O(PROTECTED) | O(JSON) | O(VERBOSE), "writ explain policy.writ",
	  "Shows for each rule whether it holds here exactly, more strictly, partially or not at all, by what, and at which "
	  "price. Ends with 122 if a line that somebody wrote cannot be enforced: a run would end the same way before it "
	  "starts.", cmd_explain, false },
	{ "why", "VERB OBJECT | SESSION#N", "may it do this? which line says so, and what enforces it?",
	  RULE_OPTS | PLAN_OPTS | O(TOKEN) | O(AGENT) | O(JSON), "writ why write /etc/passwd",
	  "Answers one question and names the rule, or the default, that decides; with --token, the hop that dropped it. SESSION#N is something "
	  "that was refused in a session, SESSION#hN a hint. Ends with 0 if it is allowed, 1 if it is "
	  "denied and 3 if a person would be asked.", cmd_why, false },
	{ "lint", "FILE...", "dangerous settings in policies and in other tools' files",
	  O(FORMAT) | O(JSON) | O(SARIF) | O(QUIET) | O(CWD) | O(VAR), "writ lint docker-compose.yml .mcp.json",
	  "Reads writ policies, docker run lines, Compose files, devcontainer.json, Dockerfiles, Kubernetes manifests, Claude "
	  "and srt settings and MCP configurations, and reports what would let an agent out, with why and what to write "
	  "instead. Ends with 1 if it found an error or a warning.", cmd_lint, false },
	{ "doctor", "", "what this machine can enforce, for this user",
	  O(FACTS) | O(RECORD) | O(UPDATE) | O(JSON) | O(VERBOSE), "writ doctor",
	  "Tries each mechanism instead of reading about it, and says what is missing and how to get it. Keeps a table of "
	  "kernel and runtime advisories.", cmd_doctor, false },
	{ "conform", "[--under COMMAND [-- WORD...]]", "try every known way out of a sandbox, and say which ones work",
	  O(TIER) | O(BOUND) | O(ID) | O(USER) | O(UNDER) | O(DECLARE) | O(BARE) | O(NO_CONTROLS) | O(JOBS) | O(DIR) | O(LIST) |
	  O(JSON) | O(VERBOSE), "writ conform --bound net --bound unix",
	  "Makes each attempt first without a sandbox, then inside `writ run`, and judges both from outside. What does not work "
	  "even without a sandbox is n.a. here; what the plan declared beforehand is a gap. --under tests another sandbox: a "
	  "command that runs the one behind it, in which {work}, {out} and {dir} are replaced. Ends with 1 if anything "
	  "escaped, did not run or is broken. A full run takes minutes; nothing is left behind.",
	  cmd_conform, false, false },
	{ "init", "", "write a first policy for this project",
	  O(THREAT) | O(FORCE) | O(PRINT) | O(CWD) | O(FACTS), "writ init --threat developer",
	  "Asks a few questions, or takes --threat, and writes a commented policy where your policies live, outside the "
	  "project, so that nothing in the project can change it. Says at once which of its lines do not hold here.", cmd_init, false },
	{ "trust", "[FILE]", "let this workspace's agent.writ widen your policy",
	  O(YES) | O(CWD), "writ trust",
	  "Shows what has changed since you last trusted it, asks, and pins its hash. Until then, and after any change, the "
	  "file can only narrow.", cmd_trust, false },
	{ "profile", "list | show NAME", "profiles shipped with writ",
	  O(JSON), "writ profile show python",
	  "Profiles are ordinary policies. `use NAME` or --profile NAME adds one.", cmd_profile, false },
	{ "token", "mint | attenuate [FILE] | inspect [FILE] | verify [FILE] | revoke JTI|FILE|- | trust FILE | holder | issuer",
	  "authority that can be given away, narrowed, and taken back",
	  O(ALLOW) | O(DENY) | O(LIMIT) | O(POLICY) | O(PROFILE) | O(VAR) | O(CWD) | O(FOR) | O(DEPTH) | O(SINGLE_USE) | O(HOLDER) | O(ORG) |
	  O(PRINT) | O(JSON) | O(QUIET),
	  "writ token mint --allow write:./out/ | writ run --token - -- make",
	  "mint prints a token that allows what the rules say, signed by this machine's own key. attenuate reads a chain and adds a token that allows "
	  "less; without --allow it keeps what there was. inspect tells a person what a chain allows and what each hop dropped; verify ends with 0, or "
	  "with 1 and an error code. Whoever has the text alone has nothing: the key of its holder stays in the state directory. `writ run --token` opens "
	  "one session with it, and every hop of the chain is asked about everything. revoke ends a token, what was derived from it, and the session "
	  "it opened, within a second; with --print it prints the list that other machines read. trust takes a bundle of an organisation, or such a list; "
	  "issuer prints what an organisation needs to know of this machine, and holder a key that others can give tokens to.",
	  cmd_token, false, false },
	{ "completion", "bash|zsh|fish", "shell completion",
	  0, "writ completion bash > ~/.local/share/bash-completion/completions/writ",
	  "Prints a completion script for the shell.", cmd_completion, false },
	{ "man", "PAGE", "the manual page of a verb, as roff",
	  0, "writ man explain", "Used by the build; PAGE is writ, policy or a verb.", cmd_man, true },
	{ "serve-fd", "", "a session for the program that started this", 0, "writ serve-fd",
	  "Used by the library, which gives it a socket as descriptor 3.", cmd_serve_fd, true },
	{ "help", "[VERB]", "help for one verb", 0, "writ help explain", "", cmd_help, false },
	{ "version", "", "the version", 0, "writ version", "", cmd_version, false },
	{ NULL, NULL, NULL, 0, NULL, NULL, NULL, false },
};
/* clang-format on */

/* clang-format off */
/* Help texts for verbs that use a shared option in another sense than the option's row states. */
static const struct {
	const char *verb;
	enum opt_id id;
	const char *help;
} own_words[] = {
	{ "stop",    OPT_ALL,     "every session of this user" },
	{ "check",   OPT_PRINT,   "write the policy back in canonical spacing" },
	{ "check",   OPT_QUIET,   "errors and warnings only" },
	{ "lint",    OPT_QUIET,   "findings only, no count" },
	{ "run",     OPT_QUIET,   "no banner, no denials" },
	{ "session", OPT_QUIET,   "start: no banner, no denials; else: no remarks" },
	{ "run",     OPT_VERBOSE, "every denial, also those by rules of shipped profiles" },
	{ "session", OPT_VERBOSE, "start: every denial, also those by rules of shipped profiles" },
	{ "explain", OPT_VERBOSE, "guarantees and steps as well" },
	{ "doctor",  OPT_VERBOSE, "every fact and every advisory" },
	{ "conform", OPT_VERBOSE, "every row" },
	{ "audit",   OPT_POLICY,  "believe the keys and witnesses of this tlog-policy instead of log.policy" },
	{ "audit",   OPT_JSON,    "show, tail: the lines as they are; verify: the result for machines" },
	{ "audit",   OPT_OUT,     "prove: write the files there (.)" },
	{ "witness", OPT_POLICY,  "serve: also the logs of this tlog-policy" },
	{ "witness", OPT_KEY,     "serve: this private key (PEM) instead of one of your own" },
	{ "witness", OPT_DIR,     "serve: what it remembers (STATE/witness)" },
	{ "witness", OPT_VERBOSE, "serve: say each answer" },
	{ "attest",  OPT_POLICY,  "logs, witnesses and quorum that count, instead of those pinned" },
	{ "attest",  OPT_OUT,     "show: write the files there" },
	{ "signer",  OPT_DIR,     "where it has its program and its logs (/var/lib/writ-signer)" },
	{ "signer",  OPT_USER,    "name of its user and group (writ-signer)" },
	{ "token",   OPT_PRINT,   "revoke: print the list of what was revoked" },
};
/* clang-format on */

const struct opt *opt_get(enum opt_id id)
{
	return &opts[id];
}

const char *opt_help(const struct cli_verb *v, const struct opt *o)
{
	for (size_t i = 0; i < ARRAY_LEN(own_words); i++)
		if (own_words[i].id == o->id && sv_is(sv_from(own_words[i].verb), v->name))
			return own_words[i].help;
	return o->help;
}

const struct cli_verb *cli_verb_get(struct sv name)
{
	for (const struct cli_verb *v = cli_verbs; v->name; v++)
		if (sv_is(name, v->name))
			return v;
	return NULL;
}

bool opt_taken(const struct cli_verb *v, const struct opt *o)
{
	return o->id == OPT_HELP || (v->opts & UINT64_C(1) << o->id);
}

static const struct opt *find_long(const struct cli_verb *v, struct sv name)
{
	for (size_t i = 0; i < OPT_COUNT; i++)
		if (opt_taken(v, &opts[i]) && sv_is(name, opts[i].name))
			return &opts[i];
	return NULL;
}

static const struct opt *find_short(const struct cli_verb *v, char c)
{
	for (size_t i = 0; i < OPT_COUNT; i++)
		if (opt_taken(v, &opts[i]) && opts[i].letter == c)
			return &opts[i];
	return NULL;
}

static int unknown(const struct cli_verb *v, struct sv name, struct writ_err *err)
{
	const char *names[OPT_COUNT + 1];
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < OPT_COUNT; i++)
		if (opt_taken(v, &opts[i]))
			names[n++] = opts[i].name;
	names[n] = NULL;
	near = diag_nearest(name, names);
	return writ_fail(err, WRIT_E_SYNTAX, 0, "%s has no option --" SV_FMT "; %s%s%s", v->name,
			 SV_ARG(name), near ? "did you mean --" : "see writ help ",
			 near ? near : v->name, near ? "?" : "");
}

static int add_rule_arg(struct args *a, const struct opt *o, const char *value,
			struct writ_err *err)
{
	/* clang-format off */
	static const struct { enum opt_id id; enum policy_arg_kind kind; } kinds[] = {
		{ OPT_ALLOW, ARG_ALLOW }, { OPT_ASK, ARG_ASK }, { OPT_DENY, ARG_DENY },
		{ OPT_LIMIT, ARG_LIMIT }, { OPT_SECRET, ARG_SECRET }, { OPT_ENV, ARG_ENV },
		{ OPT_PROFILE, ARG_USE },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const char *name;

		if (kinds[i].id != o->id)
			continue;
		name = arena_fmt(a->arena, "--%s", o->name);
		if (!name || !vec_add(a->arena, &a->rules,
				      (struct policy_arg){ kinds[i].kind,
							   { .name = sv_from(name),
							     .dir = SV(""),
							     .text = sv_from(value) } }))
			return writ_nomem(err);
	}
	return 0;
}

/* Tests for an absolute path without empty, "." or ".." components. */
static bool is_clean_path(struct sv path)
{
	struct sv rest = sv_skip(path, 1);

	if (!sv_starts(path, SV("/")) || (path.n > 1 && sv_ends(path, SV("/"))))
		return false;
	while (rest.n) {
		const struct sv seg = sv_cut(&rest, '/');

		if (seg.n == 0 || sv_is(seg, ".") || sv_is(seg, ".."))
			return false;
	}
	return true;
}

static int take(struct args *a, const struct opt *o, const char *value, struct writ_err *err)
{
	a->given[o->id] = true;
	a->value[o->id] = value;
	if ((o->id == OPT_POLICY && !vec_add(a->arena, &a->policies, value)) ||
	    ((o->id == OPT_BOUND || o->id == OPT_ID) &&
	     !vec_add(a->arena, &a->repeated, (struct opt_value){ o->id, value })))
		return writ_nomem(err);
	if (o->id == OPT_VAR) {
		struct sv rest = sv_from(value);
		const struct sv name = sv_cut(&rest, '=');

		if (name.n == 0 || !is_clean_path(rest))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "--var wants NAME=/absolute/path");
		if (!vec_add(a->arena, &a->vars, (struct policy_var){ name, rest }))
			return writ_nomem(err);
	}
	return value ? add_rule_arg(a, o, value, err) : 0;
}

/* Parses --name, --name=value or --name value; advances *@i past a separate value. */
static int parse_long(struct args *a, int argc, char **argv, int *i, struct writ_err *err)
{
	struct sv value = sv_skip(sv_from(argv[*i]), 2);
	const struct sv name = sv_cut(&value, '=');
	const bool joined = argv[*i][2 + name.n] == '=';
	const struct opt *o = find_long(a->verb, name);

	if (!o)
		return unknown(a->verb, name, err);
	if (!o->arg) {
		if (joined)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "--%s takes no value", o->name);
		return take(a, o, NULL, err);
	}
	if (joined)
		return take(a, o, value.p, err);
	if (*i + 1 >= argc)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "--%s needs %s", o->name, o->arg);
	return take(a, o, argv[++*i], err);
}

/* Parses -v, -qv, -p FILE or -pFILE. */
static int parse_short(struct args *a, int argc, char **argv, int *i, struct writ_err *err)
{
	for (const char *c = argv[*i] + 1; *c; c++) {
		const struct opt *o = find_short(a->verb, *c);
		int r;

		if (!o)
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "%s has no option -%c; see writ help %s", a->verb->name,
					 *c, a->verb->name);
		if (!o->arg) {
			r = take(a, o, NULL, err);
			if (r < 0)
				return r;
			continue;
		}
		if (c[1])
			return take(a, o, c + 1, err);
		if (*i + 1 >= argc)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "-%c needs %s", *c, o->arg);
		return take(a, o, argv[++*i], err);
	}
	return 0;
}

int opts_parse(const struct cli_verb *verb, int argc, char **argv, struct args *ret_args,
	       struct writ_err *err)
{
	struct args a = { .verb = verb, .arena = ret_args->arena };
	bool only_operands = false;

	for (int i = 0; i < argc; i++) {
		const struct sv s = sv_from(argv[i]);
		int r = 0;

		if (!only_operands && sv_is(s, "--")) {
			only_operands = true;
		} else if (!only_operands && sv_starts(s, SV("--"))) {
			r = parse_long(&a, argc, argv, &i, err);
		} else if (!only_operands && s.n > 1 && s.p[0] == '-') {
			r = parse_short(&a, argc, argv, &i, err);
		} else {
			if (!vec_add(a.arena, &a.operands, argv[i]))
				return writ_nomem(err);
			only_operands |= verb->command;
		}
		if (r < 0)
			return r;
	}
	*ret_args = a;
	return 0;
}

static void help_opt(const struct cli_verb *v, const struct opt *o, struct buf *b)
{
	scoped_buf h = BUF_INIT(128);

	if (o->letter)
		buf_fmt(&h, "  -%c,", o->letter);
	buf_fmt(&h, "%s --%s%s%s", o->letter ? "" : "     ", o->name, o->arg ? " " : "",
		o->arg ? o->arg : "");
	buf_sv(b, buf_view(&h));
	buf_fill(b, ' ', h.n < 29 ? 29 - h.n : 2);
	buf_fmt(b, "%s\n", opt_help(v, o));
}

/* Wraps @text at 78 columns. */
static void put_wrapped(struct buf *b, const char *text)
{
	struct sv rest = sv_from(text);
	size_t col = 0;

	while (rest.n) {
		const struct sv word = sv_cut(&rest, ' ');

		if (col && col + 1 + word.n > 78) {
			buf_ch(b, '\n');
			col = 0;
		}
		if (col)
			buf_ch(b, ' ');
		buf_sv(b, word);
		col += word.n + (col > 0);
	}
	buf_ch(b, '\n');
}

void opts_help(const struct cli_verb *verb, struct buf *b)
{
	if (!verb) {
		buf_str(b,
			"writ: run an agent with least privilege, and prove which boundary held\n\n"
			"usage: writ VERB [OPTIONS] [OPERANDS]\n\n");
		for (const struct cli_verb *v = cli_verbs; v->name; v++)
			if (!v->hidden)
				buf_fmt(b, "  %-12s%s\n", v->name, v->summary);
		buf_str(b, "\nwrit help VERB says more. A first look: writ explain --allow "
			   "write:./logs/*\n");
		return;
	}
	buf_fmt(b, "writ %s: %s\n\nusage: writ %s%s%s%s\n\n", verb->name, verb->summary, verb->name,
		verb->opts ? " [OPTIONS]" : "", *verb->operands ? " " : "", verb->operands);
	if (*verb->about) {
		put_wrapped(b, verb->about);
		buf_ch(b, '\n');
	}
	for (size_t i = 0; i < OPT_COUNT; i++)
		if (opt_taken(verb, &opts[i]))
			help_opt(verb, &opts[i], b);
	buf_fmt(b, "\nexample: %s\n", verb->example);
}
