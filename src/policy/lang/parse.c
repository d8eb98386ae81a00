#include "lang/ast_priv.h"

#include <string.h>

#include "base/banned.h"

struct parser {
	struct diags *d;
	struct ast *ast;
	struct writ_err *err;
	bool in_agent;
};

struct keyword {
	const char *name;
	enum stmt_kind kind;
	size_t min, max; /* number of words of the statement, including the keyword */
	const char *usage;
	bool in_agent; /* the statement is allowed in an agent block */
};

/* clang-format off */
static const struct keyword keywords[] = {
	{ "version",   STMT_VERSION,   2, 2,  "version 1", false },
	{ "use",       STMT_USE,       2, 2,  "use NAME, use FILE or use none", false },
	{ "allow",     STMT_RULE,      2, LEX_WORDS_MAX, "allow VERB OBJECT [key=value ...]", true },
	{ "ask",       STMT_RULE,      2, LEX_WORDS_MAX, "ask VERB OBJECT [key=value ...]", true },
	{ "deny",      STMT_RULE,      2, LEX_WORDS_MAX, "deny VERB OBJECT", true },
	{ "open",      STMT_OPEN,      2, 2,  "open PATH, one built-in protection by name", false },
	{ "env",       STMT_ENV,       2, 2,  "env NAME, env NAME=VALUE or env LC_*", true },
	{ "secret",    STMT_SECRET,    8, 8,  "secret NAME from SOURCE to URL as FORM", true },
	{ "limit",     STMT_LIMIT,     3, 3,  "limit KEY VALUE, as in limit memory 2G", true },
	{ "workspace", STMT_WORKSPACE, 2, 2,  "workspace direct or workspace cow", false },
	{ "state",     STMT_STATE,     2, 2,  "state NAME", false },
	{ "isolation", STMT_ISOLATION, 3, 3,  "isolation >= process, gvisor or vm", false },
	{ "require",   STMT_REQUIRE,   2, LEX_WORDS_MAX, "require GUARANTEE=LEVEL ...", true },
	{ "accept",    STMT_ACCEPT,    2, LEX_WORDS_MAX, "accept GUARANTEE=LEVEL ...", false },
	{ "danger",    STMT_DANGER,    3, 3,  "danger unix PATH", false },
	{ "agent",     STMT_AGENT,     2, 2,  "agent NAME, then an indented block", false },
	{ "test",      STMT_TEST,      3, LEX_WORDS_MAX, "test allow|ask|deny VERB OBJECT", true },
	{ "net",       STMT_NET_LEVEL, 2, LEX_WORDS_MAX,  "net level hosts, hosts+dns or signed", false },
};
/* clang-format on */

static const char *const effect_names[] = { "deny", "ask", "allow", NULL };

struct place lang_word_place(const struct stmt *s, const struct word *w)
{
	return (struct place){ s->src, s->line, w->col, (uint32_t)w->raw.n };
}

struct place lang_stmt_place(const struct stmt *s)
{
	const struct word *last = &s->w[s->n - 1];

	return (struct place){ s->src, s->line, s->w[0].col,
			       last->col + (uint32_t)last->raw.n - s->w[0].col };
}

static bool effect_find(struct sv word, enum policy_effect *ret)
{
	const size_t i = sv_index(word, effect_names, EFFECT_ALLOW + 1);

	if (i <= EFFECT_ALLOW)
		*ret = (enum policy_effect)i;
	return i <= EFFECT_ALLOW;
}

static bool parse_qual(struct parser *p, struct stmt *s, const struct word *w, struct qual *ret)
{
	struct sv value = w->text;
	const struct sv key = sv_cut(&value, '=');
	const bool flag = key.n == w->text.n;
	const char *names[QUAL_COUNT_ALL + 1];
	size_t n = 0;

	for (unsigned i = 0; i < QUAL_COUNT_ALL; i++) {
		if (!(s->verb->quals & 1u << i))
			continue;
		names[n++] = lang_qual_name((enum qual_id)i);
		if (!sv_is(key, names[n - 1]))
			continue;
		if (flag != (i == QUAL_FETCH) || (!flag && value.n == 0))
			return lang_error(p->d, s, w, NULL, "\"%s\" %s", names[n - 1],
					  i == QUAL_FETCH ? "takes no value"
							  : "needs a value: key=value");
		*ret = (struct qual){ (enum qual_id)i, *w, value };
		return true;
	}
	names[n] = NULL;
	if (w->text.n == 0)
		return lang_error(p->d, s, w, NULL, "nothing behind the last semicolon");
	return lang_error(p->d, s, w,
			  diag_suggest(p->d->arena, key, names,
				       n ? "one object per rule; qualifiers are key=value"
					 : "one object per rule"),
			  "\"%s\" does not take \"" SV_FMT "\"", s->verb->name, SV_ARG(key));
}

/* Parses VERB OBJECT [qualifiers] in @w and fills the rule members of @s. */
static bool parse_rule_words(struct parser *p, struct stmt *s, const struct word *w, size_t n)
{
	struct qual *quals;

	s->verb = lang_verb_find(w[0].text);
	if (!s->verb) {
		const bool token = sv_find(w[0].text, ':') != SIZE_MAX;

		return lang_error(
			p->d, s, &w[0],
			token ? "in a file, write the verb and the object as two words"
			      : diag_suggest(p->d->arena, w[0].text, policy_verb_names(),
					     "verbs: read write put exec net listen unix git "
					     "device kernel tool agent shell"),
			"unknown verb \"" SV_FMT "\"", SV_ARG(w[0].text));
	}
	if (n < 2)
		return lang_error(p->d, s, &w[0], NULL, "\"%s\" needs %s", s->verb->name,
				  s->verb->object);
	s->object = w[1];
	if (sv_starts(s->object.text, SV("?"))) {
		s->optional = true;
		s->object.text = sv_skip(s->object.text, 1);
	}
	if (s->object.text.n == 0)
		return lang_error(p->d, s, &w[1], NULL, "\"%s\" needs %s", s->verb->name,
				  s->verb->object);
	quals = arena_array(p->d->arena, struct qual, n);
	if (!quals)
		return false;
	for (size_t i = 2; i < n; i++) {
		if (!parse_qual(p, s, &w[i], &quals[i - 2]))
			return false;
		for (size_t j = 0; j + 2 < i; j++)
			if (quals[j].id == quals[i - 2].id)
				return lang_error(p->d, s, &w[i], NULL, "\"%s\" is given twice",
						  lang_qual_name(quals[j].id));
	}
	s->quals = quals;
	s->quals_n = n - 2;
	return true;
}

static bool parse_rule(struct parser *p, struct stmt *s, size_t from)
{
	const struct word *w = &s->w[from];

	if (!effect_find(w->text, &s->effect))
		return diag_add(p->d, DIAG_ERROR, lang_word_place(s, w),
				diag_suggest(p->d->arena, w->text, effect_names,
					     "allow, ask or deny"),
				"expected allow, ask or deny");
	return parse_rule_words(p, s, w + 1, s->n - from - 1);
}

static bool check_place(struct parser *p, const struct keyword *k, struct stmt *s, bool indented)
{
	if (!indented) {
		p->in_agent = k->kind == STMT_AGENT;
		return true;
	}
	if (!p->in_agent)
		return lang_error(p->d, s, &s->w[0],
				  "only what belongs to an agent block is indented",
				  "unexpected indentation");
	if (!k->in_agent)
		return lang_error(p->d, s, &s->w[0], NULL, "\"%s\" cannot stand in an agent block",
				  k->name);
	s->inner = true;
	return true;
}

static const struct keyword *find_keyword(struct parser *p, const struct stmt *s)
{
	const char *names[ARRAY_LEN(keywords) + 1] = { NULL };
	const struct word *w = &s->w[0];

	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		names[i] = keywords[i].name;
		if (sv_is(w->text, keywords[i].name))
			return &keywords[i];
	}
	diag_add(p->d, DIAG_ERROR, lang_word_place(s, w),
		 diag_suggest(p->d->arena, w->text, names,
			 lang_verb_find(w->text)
				 ? "say who decides first: allow, ask or deny"
				 : "statements begin with version use allow ask deny open "
				   "env secret limit workspace state isolation require "
				   "accept danger agent test net"),
		 "unknown word \"" SV_FMT "\"", SV_ARG(w->text));
	return NULL;
}

/*
 * Refuses escaped stars outside paths of rules and `use` lines, where escaped stars have no
 * meaning.
 */
static bool check_escapes(struct parser *p, const struct stmt *s)
{
	const bool path = s->verb && (s->verb->id == VERB_READ || s->verb->id == VERB_WRITE ||
				      s->verb->id == VERB_PUT || s->verb->id == VERB_EXEC ||
				      s->verb->id == VERB_UNIX || s->verb->id == VERB_DEVICE);

	for (size_t i = 0; i < s->n; i++)
		if (sv_find(s->w[i].text, 0) != SIZE_MAX && s->kind != STMT_USE &&
		    !(path && s->w[i].col == s->object.col))
			return lang_error(p->d, s, &s->w[i], NULL,
					  "\\* stands for a star in a path, not here");
	return true;
}

static int parse_stmt(struct parser *p, struct stmt s, bool indented)
{
	const struct keyword *k = find_keyword(p, &s);

	if (!k) {
		/*
		 * Accept indented lines after a misspelt keyword. Otherwise each of these lines
		 * would get an error for its indentation.
		 */
		if (!indented)
			p->in_agent = true;
		return 0;
	}
	s.kind = k->kind;
	if (!check_place(p, k, &s, indented))
		return 0;
	if (s.n < k->min || s.n > k->max) {
		const bool many = s.n > k->max;

		diag_add(p->d, DIAG_ERROR,
			 many ? lang_word_place(&s, &s.w[k->max])
			      : lang_word_place(&s, &s.w[s.n - 1]),
			 many && s.kind == STMT_SECRET ? "put a source with blanks in quotes"
						       : k->usage,
			 "%s \"%s\"", many ? "too many words for" : "more is needed for", k->name);
		return 0;
	}
	if ((s.kind == STMT_RULE && !parse_rule(p, &s, 0)) ||
	    (s.kind == STMT_TEST && !parse_rule(p, &s, 1)) || !check_escapes(p, &s))
		return 0;
	if (s.kind == STMT_USE && sv_is(s.w[1].text, "none"))
		p->ast->drops_base = true;
	return vec_add(p->d->arena, &p->ast->stmts, s) ? 0 : writ_nomem(p->err);
}

static void check_version(struct parser *p, const struct source *src, const struct lex_lines *lines)
{
	const struct lex_line *first = lines->list.n ? &lines->list.v[0] : NULL;

	if (!first || !sv_is(first->w[0].text, "version")) {
		if (p->d->errors == 0)
			diag_add(p->d, DIAG_ERROR,
				 (struct place){ src, first ? first->no : 1, 1, 1 },
				 "put \"version 1\" on the first line",
				 "a policy begins with its version");
		return;
	}
	for (size_t i = 0; i < p->ast->stmts.n; i++) {
		const struct stmt *s = &p->ast->stmts.v[i];

		if (s->kind != STMT_VERSION)
			continue;
		if (s->line != first->no)
			diag_add(p->d, DIAG_ERROR, lang_stmt_place(s), NULL,
				 "version is said twice");
		else if (!sv_is(s->w[1].text, "1"))
			lang_error(p->d, s, &s->w[1], "this writ reads version 1",
				   "unknown policy version");
	}
}

int ast_parse(struct diags *d, const struct source *src, struct ast *ret_ast, struct writ_err *err)
{
	struct ast ast = { 0 };
	struct parser p = { .d = d, .ast = &ast, .err = err };
	struct lex_lines lines = { 0 };
	int r = lex(d, src, &lines, err);

	for (size_t i = 0; r == 0 && i < lines.list.n; i++) {
		const struct lex_line *l = &lines.list.v[i];

		r = parse_stmt(&p, (struct stmt){ .src = src, .line = l->no, .w = l->w, .n = l->n },
			       l->indented);
	}
	if (r < 0)
		return r;
	check_version(&p, src, &lines);
	*ret_ast = ast;
	return 0;
}

/*
 * Splits "verb:object;key=value;..." into words with their columns. Also accepts net:allow=URL, an
 * early form of net:URL.
 */
static size_t split_token(const struct word *token, struct word *ret_w, size_t max)
{
	struct sv rest = token->text;
	size_t n = 0;

	bool more = true;

	while (n < max && more) {
		const uint32_t col = token->col + (uint32_t)(rest.p - token->text.p);
		const size_t before = rest.n;
		struct sv part = sv_cut(&rest, n == 0 ? ':' : ';');

		more = part.n != before; /* a separator at the end yields an empty part */

		if (n == 1 && sv_is(ret_w[0].text, "net") && sv_starts(part, SV("allow=")))
			part = sv_skip(part, 6);
		ret_w[n++] = (struct word){ part, part, col };
	}
	return n;
}

/* Splits a one-line source given on a command line into words. */
static int cli_words(struct diags *d, const struct source *src, struct lex_line *ret,
		     struct writ_err *err)
{
	struct lex_lines lines = { 0 };
	const size_t errors = d->errors;
	int r = lex(d, src, &lines, err);

	*ret = (struct lex_line){ 0 };
	if (r < 0 || d->errors != errors)
		return r;
	if (lines.list.n == 1)
		*ret = lines.list.v[0];
	else
		diag_add(d, DIAG_ERROR, (struct place){ src, 1, 1, 1 }, NULL,
			 "expected one rule, as in write:./logs/*");
	return 0;
}

int ast_parse_rule(struct diags *d, const struct source *src, enum policy_effect effect,
		   enum stmt_kind kind, struct ast *ast, struct writ_err *err)
{
	struct parser p = { .d = d, .ast = ast, .err = err };
	struct stmt s = { .kind = kind, .src = src, .line = 1, .effect = effect };
	struct lex_line line;
	struct word *words;
	int r = cli_words(d, src, &line, err);

	if (r < 0 || line.n == 0)
		return r;
	words = arena_array(d->arena, struct word, LEX_WORDS_MAX);
	if (!words)
		return writ_nomem(err);
	s.n = line.n;
	if (line.n == 1)
		s.n = split_token(&line.w[0], words, LEX_WORDS_MAX);
	else
		memcpy(words, line.w, line.n * sizeof(*words));
	s.w = words;
	if (!parse_rule_words(&p, &s, s.w, s.n) || !check_escapes(&p, &s))
		return 0;
	return vec_add(d->arena, &ast->stmts, s) ? 0 : writ_nomem(err);
}

int ast_parse_statement(struct diags *d, const struct source *src, const char *keyword,
			struct ast *ast, struct writ_err *err)
{
	struct parser p = { .d = d, .ast = ast, .err = err };
	struct lex_line line;
	struct word *words;
	size_t n = 1;
	int r = cli_words(d, src, &line, err);

	if (r < 0 || line.n == 0)
		return r;
	words = arena_array(d->arena, struct word, line.n + 3);
	if (!words)
		return writ_nomem(err);
	words[0] = (struct word){ sv_from(keyword), sv_from(keyword), 1 };
	/* Accept limit KEY=VALUE as the command line form of limit KEY VALUE. */
	if (line.n == 1 && strcmp(keyword, "limit") == 0 &&
	    sv_find(line.w[0].text, '=') != SIZE_MAX) {
		struct sv value = line.w[0].text;
		const struct sv key = sv_cut(&value, '=');

		words[n++] = (struct word){ key, key, 1 };
		words[n++] = (struct word){ value, value, (uint32_t)key.n + 2 };
	} else {
		memcpy(words + 1, line.w, line.n * sizeof(*words));
		n += line.n;
	}
	return parse_stmt(&p, (struct stmt){ .src = src, .line = 1, .w = words, .n = n }, false);
}
