#include "cli/cli.h"

#include "base/banned.h"

/*
 * Maps the `values` member of an option to completion words. "rules" and "limits" stand for lists
 * of words; any other value is returned as it is.
 */
static const char *words_for(const char *values)
{
	static const char rules[] =
		"read: write: put: exec: net: listen: unix: git: device: kernel: tool: "
		"agent: shell:read-only shell:read-write";

	if (!values)
		return "";
	if (sv_is(sv_from(values), "rules"))
		return rules;
	if (sv_is(sv_from(values), "limits"))
		return "memory= cpu= pids= disk= files= command= session= idle= output= up= down= "
		       "requests=";
	return values;
}

/* Completion words for the first operand of a verb. */
static const struct {
	const char *verb, *words;
} first_words[] = {
	{ "session", "start exec attach denials prune stop" },
	{ "audit", "show tail verify prove export redact witness" },
	{ "key", "init show rotate" },
	{ "witness", "serve add" },
};

static const char *words_of(const struct cli_verb *v)
{
	for (size_t i = 0; i < ARRAY_LEN(first_words); i++)
		if (sv_is(sv_from(v->name), first_words[i].verb))
			return first_words[i].words;
	return NULL;
}

static void put_profiles(struct buf *b)
{
	for (const struct policy_profile *p = policy_profiles; p->name; p++)
		buf_fmt(b, "%s%s", p == policy_profiles ? "" : " ", p->name);
}

static void put_values(const struct opt *o, struct buf *b)
{
	if (o->values && sv_is(sv_from(o->values), "profiles"))
		put_profiles(b);
	else
		buf_str(b, words_for(o->values));
}

static bool is_word(const struct opt *o, const char *word)
{
	return o->values && sv_is(sv_from(o->values), word);
}

static void put_verbs(struct buf *b)
{
	bool first = true;

	for (const struct cli_verb *v = cli_verbs; v->name; v++) {
		if (v->hidden)
			continue;
		buf_fmt(b, "%s%s", first ? "" : " ", v->name);
		first = false;
	}
}

static void bash(struct buf *b)
{
	buf_str(b, "# bash completion for writ\n_writ()\n{\n"
		   "\tlocal cur prev verb\n"
		   "\tcur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
		   "\tprev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
		   "\tverb=\"${COMP_WORDS[1]}\"\n"
		   "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"");
	put_verbs(b);
	buf_str(b, "\" -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase \"$prev\" in\n");
	for (unsigned i = 0; i < OPT_COUNT; i++) {
		const struct opt *o = opt_get((enum opt_id)i);

		if (!o->arg)
			continue;
		buf_fmt(b, "\t--%s%s%c) ", o->name, o->letter ? "|-" : "",
			o->letter ? o->letter : ' ');
		if (is_word(o, "file"))
			buf_str(b, "COMPREPLY=($(compgen -f -- \"$cur\"))");
		else if (is_word(o, "dir"))
			buf_str(b, "COMPREPLY=($(compgen -d -- \"$cur\"))");
		else {
			buf_str(b, "COMPREPLY=($(compgen -W \"");
			put_values(o, b);
			buf_str(b, "\" -- \"$cur\"))");
		}
		buf_str(b, "; return ;;\n");
	}
	buf_str(b, "\tesac\n\tcase \"$verb\" in\n");
	for (const struct cli_verb *v = cli_verbs; v->name; v++) {
		buf_fmt(b, "\t%s) opts=\"", v->name);
		for (unsigned i = 0; i < OPT_COUNT; i++)
			if (opt_taken(v, opt_get((enum opt_id)i)))
				buf_fmt(b, "--%s ", opt_get((enum opt_id)i)->name);
		buf_str(b, "\" ;;\n");
	}
	buf_str(b, "\t*) opts=\"\" ;;\n\tesac\n"
		   "\tcase \"$verb\" in\n\tsession|audit|stop|allow|revoke)\n"
		   "\t\tids=\"$(writ ps 2>/dev/null | sed '1d;s/ .*//')\" ;;\n\tesac\n"
		   "\tcase \"$verb:$cur\" in\n"
		   "\t*:-*) COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\")) ;;\n"
		   "\tprofile:*) COMPREPLY=($(compgen -W \"list show ");
	put_profiles(b);
	buf_str(b, "\" -- \"$cur\")) ;;\n\tcompletion:*) COMPREPLY=($(compgen -W \"bash zsh fish\" "
		   "-- \"$cur\")) ;;\n"
		   "\thelp:*) COMPREPLY=($(compgen -W \"");
	put_verbs(b);
	buf_str(b, "\" -- \"$cur\")) ;;\n\twhy:*) COMPREPLY=($(compgen -W \"");
	for (const char *const *n = policy_verb_names(); *n; n++)
		buf_fmt(b, "%s ", *n);
	buf_str(b, "\" -f -- \"$cur\")) ;;\n");
	for (size_t i = 0; i < ARRAY_LEN(first_words); i++)
		buf_fmt(b, "\t%s:*) COMPREPLY=($(compgen -W \"%s $ids\" -- \"$cur\")) ;;\n",
			first_words[i].verb, first_words[i].words);
	buf_str(b,
		"\tstop:*|allow:*|revoke:*) COMPREPLY=($(compgen -W \"$ids\" -- \"$cur\")) ;;\n");
	buf_str(b,
		"\tattest:*) COMPREPLY=($(compgen -W \"show verify\" -f -- \"$cur\")) ;;\n"
		"\tsigner:*) COMPREPLY=($(compgen -W \"install status remove\" -- \"$cur\")) ;;\n");
	buf_str(b, "\t*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n\tesac\n}\ncomplete -F _writ "
		   "writ\n");
}

/*
 * Prints a description, with spaces in place of single quotes, colons and brackets, because these
 * characters would end the description in a zsh script.
 */
static void put_zsh(struct buf *b, const char *text)
{
	for (; *text; text++)
		if (*text == '\'' || *text == '[' || *text == ']' || *text == ':')
			buf_ch(b, ' ');
		else
			buf_ch(b, *text);
}

static void zsh(struct buf *b)
{
	buf_str(b, "#compdef writ\n_writ() {\n\tlocal -a verbs\n\tverbs=(\n");
	for (const struct cli_verb *v = cli_verbs; v->name; v++) {
		if (v->hidden)
			continue;
		buf_fmt(b, "\t\t'%s:", v->name);
		put_zsh(b, v->summary);
		buf_str(b, "'\n");
	}
	buf_str(b,
		"\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n"
		"\tlocal verb=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $verb in\n");
	for (const struct cli_verb *v = cli_verbs; v->name; v++) {
		buf_fmt(b, "\t%s) _arguments", v->name);
		for (unsigned i = 0; i < OPT_COUNT; i++) {
			const struct opt *o = opt_get((enum opt_id)i);

			if (!opt_taken(v, o))
				continue;
			buf_fmt(b, " \\\n\t\t'*--%s%s[", o->name, o->arg ? "=" : "");
			put_zsh(b, opt_help(v, o));
			buf_ch(b, ']');
			if (o->arg) {
				buf_str(b, ":value:");
				if (is_word(o, "file"))
					buf_str(b, "_files");
				else if (is_word(o, "dir"))
					buf_str(b, "_files -/");
				else {
					buf_ch(b, '(');
					put_zsh(b, o->values && !is_word(o, "profiles")
							   ? words_for(o->values)
							   : "");
					if (is_word(o, "profiles"))
						put_profiles(b);
					buf_ch(b, ')');
				}
			}
			buf_ch(b, '\'');
		}
		if (words_of(v))
			buf_fmt(b, " \\\n\t\t'1:what:(%s)'", words_of(v));
		buf_str(b, " \\\n\t\t'*:operand:_files' ;;\n");
	}
	buf_str(b, "\tesac\n}\n_writ \"$@\"\n");
}

static void put_fish(struct buf *b, const char *text)
{
	for (; *text; text++)
		buf_ch(b, *text == '\'' ? ' ' : *text);
}

static void fish(struct buf *b)
{
	buf_str(b, "# fish completion for writ\ncomplete -c writ -n __fish_use_subcommand -f\n");
	for (const struct cli_verb *v = cli_verbs; v->name; v++) {
		if (v->hidden)
			continue;
		buf_fmt(b, "complete -c writ -n __fish_use_subcommand -f -a %s -d '", v->name);
		put_fish(b, v->summary);
		buf_str(b, "'\n");
		if (words_of(v))
			buf_fmt(b,
				"complete -c writ -n '__fish_seen_subcommand_from %s' -f -a "
				"'%s'\n",
				v->name, words_of(v));
		for (unsigned i = 0; i < OPT_COUNT; i++) {
			const struct opt *o = opt_get((enum opt_id)i);

			if (!opt_taken(v, o))
				continue;
			buf_fmt(b, "complete -c writ -n '__fish_seen_subcommand_from %s' -l %s",
				v->name, o->name);
			if (o->letter)
				buf_fmt(b, " -s %c", o->letter);
			if (o->arg)
				buf_str(b, is_word(o, "file") || is_word(o, "dir") ? " -r" : " -x");
			if (o->arg && o->values && !is_word(o, "file") && !is_word(o, "dir")) {
				buf_str(b, " -a '");
				put_values(o, b);
				buf_ch(b, '\'');
			}
			buf_str(b, " -d '");
			put_fish(b, opt_help(v, o));
			buf_str(b, "'\n");
		}
	}
}

int cmd_completion(struct args *a)
{
	const struct sv shell = a->operands.n == 1 ? sv_from(a->operands.v[0]) : SV("");
	struct buf b = BUF_INIT(1 << 20);

	if (a->operands.n != 1)
		return cli_end(EXIT_FAILED, "writ completion bash, zsh or fish");
	if (sv_is(shell, "bash"))
		bash(&b);
	else if (sv_is(shell, "zsh"))
		zsh(&b);
	else if (sv_is(shell, "fish"))
		fish(&b);
	else
		return cli_end(EXIT_FAILED, "bash, zsh or fish, not \"%s\"", shell.p);
	return cli_out(&b, EXIT_DONE);
}
