#include "cli/cli.h"

#include "base/banned.h"

/* Escapes text for roff: hyphens, backslashes, leading dots and leading quotes stay literal. */
static void put_roff(struct buf *b, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			buf_str(b, "\\&");
		if (*text == '\\')
			buf_str(b, "\\e");
		else if (*text == '-')
			buf_str(b, "\\-");
		else
			buf_ch(b, *text);
		start = *text == '\n';
	}
}

static void put_head(struct buf *b, const char *title, const char *name, const char *summary)
{
	buf_fmt(b, ".TH %s 1 2026-11-15 \"writ %s\" \"User Commands\"\n.SH NAME\n", title,
		WRIT_VERSION);
	put_roff(b, name);
	buf_str(b, " \\- ");
	put_roff(b, summary);
	buf_ch(b, '\n');
}

static void put_options(struct buf *b, const struct cli_verb *v)
{
	buf_str(b, ".SH OPTIONS\n");
	for (unsigned i = 0; i < OPT_COUNT; i++) {
		const struct opt *o = opt_get((enum opt_id)i);

		if (!opt_taken(v, o))
			continue;
		buf_str(b, ".TP\n");
		if (o->letter)
			buf_fmt(b, "\\fB\\-%c\\fR, ", o->letter);
		buf_str(b, "\\fB\\-\\-");
		put_roff(b, o->name);
		buf_str(b, "\\fR");
		if (o->arg) {
			buf_str(b, " \\fI");
			put_roff(b, o->arg);
			buf_str(b, "\\fR");
		}
		buf_ch(b, '\n');
		put_roff(b, opt_help(v, o));
		buf_ch(b, '\n');
	}
}

static void put_exit(struct buf *b)
{
	static const struct {
		const char *code, *means;
	} codes[] = {
		{ "0", "done; for why: allowed" },
		{ "1", "why: denied; lint: an error or a warning was found; trust, init: not done; "
		       "conform: something escaped, did not run or is broken; "
		       "audit: it does not verify, or the signer is not pinned; attest verify: a "
		       "boundary did not hold, nobody knows, or its end is not signed yet" },
		{ "3", "why: a person would be asked" },
		{ "4", "attest verify: something was changed, or does not fit" },
		{ "5", "attest verify: no pinned key has signed it" },
		{ "121", "the policy has errors" },
		{ "122", "a line that somebody wrote cannot be enforced here" },
		{ "125", "writ itself failed: a wrong option, an unreadable file; run: the record "
			 "could not be written or sealed" },
	};

	buf_str(b, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		buf_fmt(b, ".TP\n.B %s\n", codes[i].code);
		put_roff(b, codes[i].means);
		buf_ch(b, '\n');
	}
}

static void man_verb(struct buf *b, const struct cli_verb *v, struct arena *a)
{
	const char *name = arena_fmt(a, "writ-%s", v->name);

	put_head(b, name ? name : v->name, name ? name : v->name, v->summary);
	buf_fmt(b, ".SH SYNOPSIS\n\\fBwrit %s\\fR%s ", v->name,
		v->opts ? " [\\fIOPTIONS\\fR]" : "");
	put_roff(b, v->operands);
	buf_ch(b, '\n');
	if (*v->about) {
		buf_str(b, ".SH DESCRIPTION\n");
		put_roff(b, v->about);
		buf_ch(b, '\n');
	}
	put_options(b, v);
	put_exit(b);
	buf_str(b, ".SH EXAMPLE\n.nf\n");
	put_roff(b, v->example);
	buf_str(b, "\n.fi\n.SH SEE ALSO\n.BR writ (1),\n.BR writ\\-policy (5)\n");
}

static void man_writ(struct buf *b)
{
	put_head(b, "writ", "writ",
		 "run an agent with least privilege, and prove which boundary held");
	buf_str(b, ".SH SYNOPSIS\n\\fBwrit\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR] "
		   "[\\fIOPERANDS\\fR]\n.SH DESCRIPTION\n");
	put_roff(b, "writ reads a policy that says what an AI agent may do, and says what enforces "
		    "each line on this "
		    "machine. What cannot be enforced is refused by name, never left out in "
		    "silence.\n");
	buf_str(b, ".SH VERBS\n");
	for (const struct cli_verb *v = cli_verbs; v->name; v++) {
		if (v->hidden)
			continue;
		buf_fmt(b, ".TP\n.BR writ\\-%s (1)\n", v->name);
		put_roff(b, v->summary);
		buf_ch(b, '\n');
	}
	put_exit(b);
	buf_str(b,
		".SH FILES\n.TP\n.I ~/.config/writ/policy.writ\nrules for every project\n"
		".TP\n.I ~/.config/writ/projects/\none policy per project, written by writ init\n"
		".TP\n.I ~/.config/writ/trusted/\nagent.writ files as they were when you trusted "
		"them\n"
		".TP\n.I agent.writ\nin a workspace: may only narrow until it is trusted\n"
		".TP\n.I ~/.config/writ/log.policy\nkeys and witnesses that count\n"
		".TP\n.I ~/.local/state/writ/\nrealm, keys, logs, a newer advisory table\n"
		".SH ENVIRONMENT\nHOME, PATH, XDG_CONFIG_HOME, XDG_STATE_HOME, NO_COLOR, TERM\n"
		".TP\n.B WRIT_RESOLVER\nname servers instead of the host's: ADDRESS[:PORT],...\n"
		".TP\n.B WRIT_UPSTREAM_PROXY\nhttp://HOST:PORT: public addresses are dialled "
		"through it\n"
		".TP\n.B WRIT_UPSTREAM_PROXY_LOGIN\na file with one line NAME:PASSWORD for it\n"
		".TP\n.B WRIT_CA_FILE\nmore authorities, PEM, for servers whose requests are read\n"
		".TP\n.B WRIT_SIGNER\nanother file than /etc/writ/signer that says where "
		"writ-signer is "
		"installed; none: the user keeps the log\n"
		".SH SEE ALSO\n.BR writ\\-policy (5)\n");
}

int cmd_man(struct args *a)
{
	const char *page = a->operands.n == 1 ? a->operands.v[0] : NULL;
	const struct cli_verb *v = page ? cli_verb_get(sv_from(page)) : NULL;
	struct buf b = BUF_INIT(1 << 20);

	if (!page)
		return cli_end(EXIT_FAILED, "writ man PAGE");
	if (sv_is(sv_from(page), "writ"))
		man_writ(&b);
	else if (v)
		man_verb(&b, v, a->arena);
	else
		return cli_end(EXIT_FAILED, "no page \"%s\"", page);
	return cli_out(&b, EXIT_DONE);
}
