#include <string.h>

#include "lint/check_priv.h"
#include "lint/shell_priv.h"

#include "base/banned.h"

enum { SAVED_MAX = 8, STAGES_MAX = 16 };

static const char *const fetchers[] = { "curl", "wget", "aria2c", "fetch", NULL };
static const char *const shells[] = { "sh", "bash", "zsh", "dash", "ash", "ksh", NULL };
static const char *const interpreters[] = { "python", "python3", "node", "perl",
					    "ruby",   "php",	 "deno", NULL };
static const char *const verifiers[] = { "sha256sum", "sha512sum", "shasum",  "gpg", "gpgv",
					 "cosign",    "minisign",  "openssl", NULL };
/* Programs and shell keywords that precede the command that they run. */
static const char *const wrappers[] = { "sudo",	   "env",  "exec",  "nohup", "time",
					"command", "then", "do",    "else",  "if",
					"!",	   "{",	   "xargs", "doas",  NULL };

static const char *const bypass[] = {
	"--dangerously-skip-permissions", "--allow-dangerously-skip-permissions",
	"--dangerously-bypass-approvals-and-sandbox", "--yolo", "--allow-all-tools",
	"--trust-all-tools", "--yes-always", "--approval-mode=yolo",
	"--permission-mode=bypassPermissions", NULL,
};

static void check_simples(struct check *c, const struct simples *all, unsigned depth);

static bool is_assignment(struct sv w)
{
	const size_t eq = sv_find(w, '=');

	return eq != SIZE_MAX && eq > 0 && w.p[0] != '-' &&
	       sv_find(sv_sub(w, 0, eq), '/') == SIZE_MAX;
}

/* Returns the index of the program after assignments and wrappers such as sudo. */
static size_t program_at(const struct node *const *argv, size_t n)
{
	size_t i = 0;
	bool wrapped = false;

	for (; i < n; i++) {
		const struct sv w = argv[i]->text;

		if (lint_in(lint_base(w), wrappers))
			wrapped = true;
		else if (!is_assignment(w) && !(wrapped && lint_starts(w, "-")))
			break;
	}
	return i;
}

static struct sv program(const struct simple *s)
{
	const size_t i = program_at(s->argv.v, s->argv.n);

	return i < s->argv.n ? lint_base(s->argv.v[i]->text) : SV("");
}

/* Returns the script of `sh -c SCRIPT`, or NULL. */
static const struct node *shell_script_of(const struct node *const *argv, size_t n)
{
	size_t i = program_at(argv, n);

	if (i >= n || !lint_in(lint_base(argv[i]->text), shells))
		return NULL;
	for (i++; i + 1 < n; i++) {
		const struct sv w = argv[i]->text;

		if (w.n < 2 || w.p[0] != '-')
			return NULL;
		if (w.p[1] != '-' && w.p[w.n - 1] == 'c')
			return argv[i + 1];
	}
	return NULL;
}

static bool is_bypass(struct sv before, struct sv w)
{
	if (lint_in(w, bypass) || lint_has(w, "danger-full-access"))
		return true;
	return (sv_is(before, "--approval-mode") && sv_is(w, "yolo")) ||
	       (sv_is(before, "--permission-mode") && sv_is(w, "bypassPermissions"));
}

/* Does @word download something in a substitution: $(curl ...), <(wget ...)? */
static bool fetches_inside(struct sv word)
{
	size_t pos = 0;
	struct sv inner;

	while (lint_shell_inner(word, &pos, &inner)) {
		struct sv rest = sv_trim(inner);

		if (lint_in(lint_base(sv_cut(&rest, ' ')), fetchers))
			return true;
	}
	return false;
}

/* Does the program of the simple command @s read its script from standard input? */
static bool runs_stdin(const struct simple *s)
{
	size_t i = program_at(s->argv.v, s->argv.n);

	if (i >= s->argv.n)
		return false;
	if (!lint_in(lint_base(s->argv.v[i]->text), shells) &&
	    !lint_in(lint_base(s->argv.v[i]->text), interpreters))
		return false;
	for (i++; i < s->argv.n; i++) {
		const struct sv w = s->argv.v[i]->text;

		if (sv_is(w, "-") || sv_is(w, "-s") || sv_is(w, "/dev/stdin"))
			return true;
		if (sv_is(w, "-c") || sv_is(w, "-m") || sv_is(w, "-e") || w.n == 0 || w.p[0] != '-')
			return false;
	}
	return true;
}

/* Reports a pipe such as curl ... | ... | sh. */
static void check_pipe(struct check *c, const struct simples *all, size_t i)
{
	if (!lint_in(program(&all->v[i]), fetchers))
		return;
	for (size_t j = i; j < i + STAGES_MAX && j + 1 < all->n && all->v[j].piped; j++)
		if (runs_stdin(&all->v[j + 1])) {
			lint_found(c, R_FETCH_AND_RUN, all->v[i].argv.v[0],
				   SV("piped into an interpreter"));
			return;
		}
}

/* Reports bash -c "$(curl ...)", eval "$(curl ...)" and . <(curl ...). */
static void check_substituted(struct check *c, const struct simple *s)
{
	const struct sv p = program(s);

	if (!lint_in(p, shells) && !sv_is(p, "eval") && !sv_is(p, "source") && !sv_is(p, ".") &&
	    !lint_in(p, interpreters))
		return;
	for (size_t i = 0; i < s->argv.n; i++)
		if (fetches_inside(s->argv.v[i]->text)) {
			lint_found(c, R_FETCH_AND_RUN, s->argv.v[i],
				   SV("substituted into a command"));
			return;
		}
}

/* Returns the file that `curl -o F`, `curl -O URL` or `wget URL` creates. */
static struct sv saved_file(const struct simple *s)
{
	const bool wget = sv_is(program(s), "wget");
	struct sv url = SV("");
	bool named = wget;

	for (size_t i = 0; i < s->argv.n; i++) {
		const struct sv w = s->argv.v[i]->text;
		const bool last = i + 1 == s->argv.n;

		if (!last && (lint_eq(w, "--output") || lint_eq(w, "--output-document") ||
			      sv_is(w, wget ? "-O" : "-o")))
			return lint_base(s->argv.v[i + 1]->text);
		if (!last && !wget && w.n > 2 && w.p[0] == '-' && w.p[1] != '-' &&
		    w.p[w.n - 1] == 'o') /* short options with a file, as in curl -fsSLo FILE */
			return lint_base(s->argv.v[i + 1]->text);
		if (!wget && w.n > 1 && w.p[0] == '-' && w.p[1] != '-' &&
		    sv_find(w, 'O') != SIZE_MAX)
			named = true;
		if (lint_has(w, "://"))
			url = w;
	}
	return named ? lint_base(url) : SV("");
}

static bool runs_file(const struct simple *s, struct sv file)
{
	const size_t i = program_at(s->argv.v, s->argv.n);
	const struct sv p = program(s);

	if (!file.n || i >= s->argv.n)
		return false;
	if (sv_eq(p, file))
		return true;
	if (!lint_in(p, shells) && !lint_in(p, interpreters) && !sv_is(p, ".") &&
	    !sv_is(p, "source"))
		return false;
	for (size_t j = i + 1; j < s->argv.n; j++)
		if (s->argv.v[j]->text.n && s->argv.v[j]->text.p[0] != '-')
			return sv_eq(lint_base(s->argv.v[j]->text), file);
	return false;
}

/* Reports curl -o x.sh URL && sh x.sh without a digest or signature check in between. */
static void check_saved(struct check *c, const struct simples *all)
{
	struct {
		struct sv file;
		const struct node *at;
	} saved[SAVED_MAX];
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct simple *s = &all->v[i];

		if (lint_in(program(s), verifiers))
			n = 0;
		for (size_t j = 0; j < n; j++)
			if (runs_file(s, saved[j].file))
				lint_found(c, R_FETCH_AND_RUN, saved[j].at,
					   SV("saved and run without a check"));
		if (lint_in(program(s), fetchers) && n < SAVED_MAX) {
			saved[n].file = saved_file(s);
			saved[n++].at = s->argv.v[0];
		}
	}
}

static void nested(struct check *c, const struct node *at, struct sv text, unsigned depth)
{
	struct shell sh = { .c = c, .text = text, .fixed = at, .escape = '\\' };
	struct simples all = { 0 };

	if (depth > SHELL_NEST_MAX)
		return;
	lint_shell_all(&sh, &all);
	check_simples(c, &all, depth);
}

static void check_words(struct check *c, const struct node *const *argv, size_t n, unsigned depth)
{
	const struct node *script = shell_script_of(argv, n);

	for (size_t i = 0; i < n; i++) {
		const struct sv before = i ? argv[i - 1]->text : SV("");
		size_t pos = 0;
		struct sv inner;

		if (argv[i] == script) {
			nested(c, script, script->text, depth + 1);
			continue;
		}
		if (is_bypass(before, argv[i]->text))
			lint_found(c, R_APPROVALS_BYPASSED, argv[i], argv[i]->text);
		lint_secret_word(c, argv[i], before, argv[i]->text);
		while (lint_shell_inner(argv[i]->text, &pos, &inner))
			nested(c, argv[i], inner, depth + 1);
	}
}

static void check_simples(struct check *c, const struct simples *all, unsigned depth)
{
	for (size_t i = 0; i < all->n && !c->failed; i++) {
		check_words(c, all->v[i].argv.v, all->v[i].argv.n, depth);
		check_pipe(c, all, i);
		check_substituted(c, &all->v[i]);
	}
	check_saved(c, all);
}

void lint_argv(struct check *c, const struct node *const *argv, size_t n)
{
	struct simple s = { .argv = { .n = n } };
	const struct simples all = { .v = &s, .n = 1 };

	s.argv.v = n ? lint_must(c, arena_array(c->arena, const struct node *, n)) : NULL;
	if (!s.argv.v)
		return;
	memcpy(s.argv.v, argv, n * sizeof(*argv));
	check_simples(c, &all, 0);
}

void lint_shell_check(struct shell *sh)
{
	struct simples all = { 0 };

	lint_shell_all(sh, &all);
	check_simples(sh->c, &all, 0);
}

bool lint_collect(struct check *c, struct node_list *argv, const struct node *list)
{
	for (const struct node *i = lint_first(list); i; i = lint_next(list, i))
		if (i->kind == NODE_SCALAR && !lint_add(c, argv, i))
			return false;
	return true;
}

void lint_commands(struct check *c, const struct node *entrypoint, const struct node *command)
{
	struct node_list argv = { 0 };

	if (!entrypoint || entrypoint->kind == NODE_SCALAR || !command ||
	    command->kind == NODE_SCALAR) {
		lint_command(c, entrypoint);
		lint_command(c, command);
		return;
	}
	if (lint_collect(c, &argv, entrypoint) && lint_collect(c, &argv, command))
		lint_argv(c, argv.v, argv.n);
}

void lint_command(struct check *c, const struct node *command)
{
	struct node_list argv = { 0 };

	if (!command)
		return;
	if (command->kind == NODE_SCALAR)
		lint_shell_check(&(struct shell){
			.c = c, .text = command->text, .fixed = command, .escape = '\\' });
	else if (lint_collect(c, &argv, command))
		lint_argv(c, argv.v, argv.n);
}
