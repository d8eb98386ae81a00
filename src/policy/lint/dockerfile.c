#include <string.h>

#include "lint/host_path_priv.h"
#include "lint/shell_priv.h"

#include "base/banned.h"

enum { HEREDOCS_MAX = 8 };

/* A build stage and the user that is active at the end of the stage. */
struct stage {
	struct sv name;
	const struct node *from, *user;
};

struct file {
	struct check *c;
	char escape;
	size_t at; /* offset of the next line to read */
	VEC(struct stage) stages;
};

/*
 * A Dockerfile instruction with its continued lines; its arguments are the bytes [from, end) of the
 * file.
 */
struct inst {
	struct sv word;
	size_t from, end;
	struct sv bodies[HEREDOCS_MAX];
	size_t n;
};

static size_t line_end(struct sv t, size_t i)
{
	const char *nl = i < t.n ? memchr(t.p + i, '\n', t.n - i) : NULL;

	return nl ? (size_t)(nl - t.p) : t.n;
}

static struct sv line_at(struct sv t, size_t i)
{
	struct sv line = sv_sub(t, i, line_end(t, i) - i);

	while (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return sv_trim(line);
}

/*
 * Returns the escape character of a Dockerfile, which `# escape=` in the comment lines at the top
 * can change.
 */
static char escape_of(struct sv t)
{
	for (size_t i = 0; i < t.n; i = line_end(t, i) + 1) {
		struct sv value = line_at(t, i), key;

		if (!lint_starts(value, "#"))
			return '\\';
		value = sv_trim(sv_skip(value, 1));
		key = sv_trim(sv_cut(&value, '='));
		if (lint_eq(key, "escape"))
			return sv_is(sv_trim(value), "`") ? '`' : '\\';
		if (!value.n)
			return '\\';
	}
	return '\\';
}

/* Returns the end of the logical line that starts at @i. */
static size_t logical_end(const struct file *f, size_t i)
{
	const struct sv t = f->c->text;

	for (;;) {
		const struct sv line = line_at(t, i);
		const size_t end = line_end(t, i);
		const bool skipped = !line.n || line.p[0] == '#';

		if (end >= t.n || (!skipped && line.p[line.n - 1] != f->escape))
			return end;
		i = end + 1;
	}
}

/* Returns the heredoc word after << without quotes and dash, or an empty view. */
static struct sv heredoc_word(struct sv args, size_t i, bool *ret_tabs)
{
	size_t n = 0;

	i += 2;
	*ret_tabs = i < args.n && args.p[i] == '-';
	i += *ret_tabs;
	i += i < args.n && (args.p[i] == '"' || args.p[i] == '\'');
	while (i + n < args.n &&
	       (args.p[i + n] == '_' || (args.p[i + n] >= '0' && args.p[i + n] <= '9') ||
		(args.p[i + n] >= 'A' && args.p[i + n] <= 'Z') ||
		(args.p[i + n] >= 'a' && args.p[i + n] <= 'z')))
		n++;
	return sv_sub(args, i, n);
}

/* Returns the body of the heredoc that ends with @word, and moves @f past the heredoc. */
static struct sv heredoc_body(struct file *f, struct sv word, bool tabs)
{
	const struct sv t = f->c->text;
	const size_t from = f->at;

	while (f->at < t.n) {
		const size_t start = f->at, end = line_end(t, start);
		struct sv line = sv_sub(t, start, end - start);

		while (tabs && line.n && line.p[0] == '\t')
			line = sv_skip(line, 1);
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		f->at = end < t.n ? end + 1 : t.n;
		if (sv_eq(line, word))
			return sv_sub(t, from, start - from);
	}
	return sv_sub(t, from, t.n - from);
}

/* Does `<<` at @i start a word, or follow only a descriptor number? */
static bool is_heredoc(struct sv args, size_t i)
{
	if (i + 2 >= args.n || args.p[i] != '<' || args.p[i + 1] != '<' || args.p[i + 2] == '<')
		return false;
	while (i && args.p[i - 1] >= '0' && args.p[i - 1] <= '9')
		i--;
	return !i || args.p[i - 1] == ' ' || args.p[i - 1] == '\t';
}

static void take_heredocs(struct file *f, struct inst *in)
{
	const struct sv args = sv_sub(f->c->text, in->from, in->end - in->from);
	char quote = 0;

	if (!lint_eq(in->word, "run") && !lint_eq(in->word, "copy") && !lint_eq(in->word, "add"))
		return;
	for (size_t i = 0; i < args.n && in->n < HEREDOCS_MAX; i++) {
		const char ch = args.p[i];
		struct sv word;
		bool tabs;

		if (quote || ch == '"' || ch == '\'') {
			quote = !quote ? ch : ch == quote ? 0 : quote;
			continue;
		}
		if (!is_heredoc(args, i))
			continue;
		word = heredoc_word(args, i, &tabs);
		if (word.n)
			in->bodies[in->n++] = heredoc_body(f, word, tabs);
		/* continue after the quotes of the heredoc word */
		i = (size_t)(word.p - args.p) + word.n;
	}
}

/* Reads the next instruction. Returns false at the end of the file. */
static bool next_inst(struct file *f, struct inst *ret_in)
{
	const struct sv t = f->c->text;
	struct inst in = { .word = SV("") };

	while (f->at < t.n) {
		const struct sv line = line_at(t, f->at);
		const size_t start = (size_t)(line.p - t.p);
		size_t n = 0;

		if (!line.n || line.p[0] == '#') {
			f->at = line_end(t, f->at) + 1;
			continue;
		}
		while (n < line.n && line.p[n] != ' ' && line.p[n] != '\t')
			n++;
		in.word = sv_sub(line, 0, n);
		in.from = start + n;
		in.end = logical_end(f, f->at);
		f->at = in.end < t.n ? in.end + 1 : t.n;
		take_heredocs(f, &in);
		*ret_in = in;
		return true;
	}
	return false;
}

static struct shell shell_of(const struct file *f, const struct inst *in)
{
	return (struct shell){ .c = f->c,
			       .text = sv_sub(f->c->text, in->from, in->end - in->from),
			       .off = in->from,
			       .escape = f->escape,
			       .dockerfile = true };
}

/* Returns all words of an instruction, ignoring operators, which most instructions do not have. */
static struct node_list words_of(const struct file *f, const struct inst *in)
{
	struct shell sh = shell_of(f, in);
	struct node_list words = { 0 };
	struct simple s;

	while (lint_shell_simple(&sh, &s))
		for (size_t i = 0; i < s.argv.n; i++)
			(void)lint_add(f->c, &words, s.argv.v[i]);
	return words;
}

/*
 * Parses the exec form ["a", "b"] of an instruction into words. Returns false if the arguments have
 * another form.
 */
static bool exec_form(const struct file *f, const struct inst *in, struct node_list *out)
{
	const struct sv t = f->c->text;
	size_t i = in->from;

	while (i < in->end && (t.p[i] == ' ' || t.p[i] == '\t'))
		i++;
	if (i >= in->end || t.p[i] != '[')
		return false;
	for (; i < in->end; i++) {
		const size_t start = i;
		struct node *n;

		if (t.p[i] != '"')
			continue;
		for (i++; i < in->end && t.p[i] != '"'; i++)
			i += t.p[i] == '\\';
		n = lint_node(f->c, NODE_SCALAR, start, i + 1);
		if (!n || !lint_keep(f->c, sv_sub(t, start + 1, i - start - 1), &n->text) ||
		    !lint_add(f->c, out, n))
			return true;
	}
	return true;
}

static void check_command(const struct file *f, const struct inst *in)
{
	struct shell sh = shell_of(f, in);
	struct node_list argv = { 0 };

	if (exec_form(f, in, &argv))
		lint_argv(f->c, argv.v, argv.n);
	else
		lint_shell_check(&sh);
	for (size_t i = 0; i < in->n && lint_eq(in->word, "run"); i++)
		lint_shell_check(
			&(struct shell){ .c = f->c,
					 .text = in->bodies[i],
					 .escape = '\\',
					 .off = (size_t)(in->bodies[i].p - f->c->text.p) });
}

static void on_run(const struct file *f, const struct inst *in)
{
	const struct node_list words = words_of(f, in);

	for (size_t i = 0; i < words.n && lint_starts(words.v[i]->text, "--"); i++) {
		if (sv_is(words.v[i]->text, "--security=insecure"))
			lint_found(f->c, R_PRIVILEGED, words.v[i], words.v[i]->text);
		else if (sv_is(words.v[i]->text, "--network=host"))
			lint_found(f->c, R_HOST_NETWORK, words.v[i], words.v[i]->text);
	}
	check_command(f, in);
}

static struct stage *stage_named(const struct file *f, struct sv name)
{
	for (size_t i = f->stages.n; i; i--)
		if (sv_eq(f->stages.v[i - 1].name, name))
			return &f->stages.v[i - 1];
	return NULL;
}

static void on_from(struct file *f, const struct inst *in)
{
	const struct node_list words = words_of(f, in);
	struct stage s = { .name = SV("") };
	struct stage *base;
	size_t i = 0;

	while (i < words.n && lint_starts(words.v[i]->text, "--"))
		i++;
	if (i >= words.n)
		return;
	s.from = words.v[i];
	base = stage_named(f, s.from->text);
	if (base)
		s.user = base->user;
	else if (!sv_is(s.from->text, "scratch"))
		lint_image(f->c, s.from, s.from->text);
	if (i + 2 < words.n && lint_eq(words.v[i + 1]->text, "as"))
		s.name = words.v[i + 2]->text;
	(void)lint_add(f->c, &f->stages, s);
	if (f->stages.n > LINT_BOXES_MAX)
		lint_fail(f->c, WRIT_E_LIMIT, "too many stages");
}

static void on_env(const struct file *f, const struct inst *in)
{
	const struct node_list words = words_of(f, in);

	/* read the old form ENV NAME value */
	if (words.n >= 2 && sv_find(words.v[0]->text, '=') == SIZE_MAX) {
		lint_env(f->c, words.v[1], words.v[0]->text, words.v[1]->text);
		return;
	}
	for (size_t i = 0; i < words.n; i++) {
		struct sv value = words.v[i]->text;
		const struct sv name = sv_cut(&value, '=');

		lint_env(f->c, words.v[i], name, value);
	}
}

static void on_arg(const struct file *f, const struct inst *in)
{
	const struct node_list words = words_of(f, in);

	for (size_t i = 0; i < words.n; i++) {
		struct sv value = words.v[i]->text;
		const struct sv name = sv_cut(&value, '=');

		if (!value.n && lint_secret_name(name))
			lint_found(f->c, R_SECRET_BUILD_ARG, words.v[i], name);
		else
			lint_env(f->c, words.v[i], name, value);
	}
}

static bool is_credential_file(struct sv path)
{
	const struct sv base = lint_base(path);

	return lint_host_path(path) == HOST_PATH_CREDENTIAL || sv_is(base, ".env") ||
	       lint_starts(base, ".env.prod") || lint_ends(base, ".pem") ||
	       sv_is(base, "credentials");
}

static void on_copy(const struct file *f, const struct inst *in)
{
	struct node_list words = { 0 };

	if (!exec_form(f, in, &words))
		words = words_of(f, in);
	for (size_t i = 0; i + 1 < words.n; i++) {
		if (lint_starts(words.v[i]->text, "--from"))
			return;
		if (is_credential_file(words.v[i]->text))
			lint_found(f->c, R_CREDENTIAL_READABLE, words.v[i], words.v[i]->text);
	}
}

static void on_user(struct file *f, const struct inst *in)
{
	const struct node_list words = words_of(f, in);

	if (words.n && f->stages.n)
		f->stages.v[f->stages.n - 1].user = words.v[0];
}

static void on_inst(struct file *f, struct inst in)
{
	if (lint_eq(in.word, "onbuild")) { /* ONBUILD is followed by another instruction */
		const struct sv rest = sv_sub(f->c->text, in.from, in.end - in.from);
		const struct sv inner = sv_trim(rest);
		size_t n = 0;

		while (n < inner.n && inner.p[n] != ' ' && inner.p[n] != '\t')
			n++;
		in.word = sv_sub(inner, 0, n);
		in.from = (size_t)(inner.p - f->c->text.p) + n;
	}
	if (!lint_keep(f->c, in.word, &f->c->label))
		return;
	if (lint_eq(in.word, "from"))
		on_from(f, &in);
	else if (lint_eq(in.word, "run"))
		on_run(f, &in);
	else if (lint_eq(in.word, "cmd") || lint_eq(in.word, "entrypoint"))
		check_command(f, &in);
	else if (lint_eq(in.word, "env"))
		on_env(f, &in);
	else if (lint_eq(in.word, "arg"))
		on_arg(f, &in);
	else if (lint_eq(in.word, "copy") || lint_eq(in.word, "add"))
		on_copy(f, &in);
	else if (lint_eq(in.word, "user"))
		on_user(f, &in);
}

static void check_last_stage(const struct file *f)
{
	const struct stage *last = f->stages.n ? &f->stages.v[f->stages.n - 1] : NULL;
	struct sv user, name;

	if (!last)
		return;
	user = lint_text(last->user);
	name = sv_cut(&user, ':');
	f->c->label = last->user ? SV("USER") : SV("FROM");
	if (!last->user)
		lint_found(f->c, R_RUNS_AS_ROOT, last->from, SV("the last stage sets no USER"));
	else if (sv_is(name, "root") || sv_is(name, "0"))
		lint_found(f->c, R_RUNS_AS_ROOT, last->user, name);
}

void lint_dockerfile(struct check *c)
{
	struct file f = { .c = c, .escape = escape_of(c->text) };
	struct inst in;

	while (!c->failed && next_inst(&f, &in))
		on_inst(&f, in);
	check_last_stage(&f);
}
