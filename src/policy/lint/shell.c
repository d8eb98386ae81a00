#include "lint/shell_priv.h"

#include <string.h>

#include "base/banned.h"

static bool is_blank(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r';
}

static char at(const struct shell *sh, size_t i)
{
	return i < sh->text.n ? sh->text.p[i] : 0;
}

/*
 * Returns the position after the quoted part at @i, or the end of @t if the quote is unterminated.
 */
static size_t past_quote(struct sv t, size_t i)
{
	const char quote = i < t.n ? t.p[i] : 0;

	i++;
	while (i < t.n && t.p[i] != quote)
		i += t.p[i] == '\\' && quote != '\'' ? 2 : 1;
	return i < t.n ? i + 1 : t.n;
}

/* Returns the position after the bracket that closes the bracket at @i, skipping quoted parts. */
static size_t past_bracket(struct sv t, size_t i)
{
	const char open = i < t.n ? t.p[i] : 0, close = open == '(' ? ')' : '}';
	size_t depth = 0;

	while (i < t.n) {
		const char ch = t.p[i];

		if (ch == '\\') {
			i += 2;
			continue;
		}
		if (ch == '\'' || ch == '"') {
			i = past_quote(t, i);
			continue;
		}
		i++;
		if (ch == open)
			depth++;
		else if (ch == close && !--depth)
			return i;
	}
	return t.n;
}

/* Skips comment lines and empty lines after a continued Dockerfile line. */
static void skip_comment_lines(struct shell *sh)
{
	size_t i = sh->at;

	while (i < sh->text.n) {
		while (is_blank(at(sh, i)))
			i++;
		if (at(sh, i) != '#' && at(sh, i) != '\n')
			return;
		while (i < sh->text.n && at(sh, i) != '\n')
			i++;
		if (i < sh->text.n)
			i++;
		sh->at = i;
	}
}

/* Skips an escape at the end of a line, together with the newline. */
static bool skip_continuation(struct shell *sh)
{
	size_t i = sh->at;

	if (at(sh, i) != sh->escape)
		return false;
	for (i++; is_blank(at(sh, i)); i++)
		;
	if (at(sh, i) != '\n')
		return false;
	sh->at = i + 1;
	if (sh->dockerfile)
		skip_comment_lines(sh);
	return true;
}

static void read_raw(struct shell *sh, size_t end, struct buf *b)
{
	buf_sv(b, sv_sub(sh->text, sh->at, end - sh->at));
	sh->at = end;
}

/*
 * Appends a double-quoted part of a word to @b without its quotes. Substitutions stay as written.
 */
static void read_double(struct shell *sh, struct buf *b)
{
	sh->at++;
	while (sh->at < sh->text.n && at(sh, sh->at) != '"') {
		const char ch = at(sh, sh->at), next = at(sh, sh->at + 1);

		if (ch == '$' && next == '(') {
			read_raw(sh, past_bracket(sh->text, sh->at + 1), b);
			continue;
		}
		if (ch == '\\' && next && strchr("\"\\$`\n", next)) {
			if (next != '\n')
				buf_ch(b, next);
			sh->at += 2;
			continue;
		}
		buf_ch(b, ch);
		sh->at++;
	}
	if (sh->at < sh->text.n)
		sh->at++;
}

/*
 * Is the quote at the current position closed? A single quote that is not closed is an apostrophe.
 */
static bool is_closed(const struct shell *sh, char quote)
{
	const size_t from = sh->at + 1;

	return from < sh->text.n && memchr(sh->text.p + from, quote, sh->text.n - from);
}

/* Appends the next part of a word to @b. Returns false at the end of the word. */
static bool read_part(struct shell *sh, struct buf *b)
{
	const char ch = at(sh, sh->at);

	if (!ch || is_blank(ch) || strchr("\n;|&()<>", ch) || (sh->closer && ch == sh->closer))
		return false;
	if (skip_continuation(sh))
		return true;
	if ((ch == '\'' || ch == '"') && is_closed(sh, ch)) {
		if (ch == '"') {
			read_double(sh, b);
			return true;
		}
		sh->at++;
		read_raw(sh, past_quote(sh->text, sh->at - 1) - 1, b);
		sh->at++;
	} else if (ch == '$' && (at(sh, sh->at + 1) == '(' || at(sh, sh->at + 1) == '{')) {
		read_raw(sh, past_bracket(sh->text, sh->at + 1), b);
	} else if (ch == '`' && is_closed(sh, ch)) {
		read_raw(sh, past_quote(sh->text, sh->at), b);
	} else {
		if (ch == '\\' && sh->escape == '\\' && sh->at + 1 < sh->text.n)
			sh->at++;
		buf_ch(b, at(sh, sh->at));
		sh->at++;
	}
	return true;
}

static struct node *word_node(struct shell *sh, size_t from, struct sv text)
{
	struct node *n = lint_node(sh->c, NODE_SCALAR, sh->off + from, sh->off + sh->at);

	if (!n)
		return NULL;
	if (sh->fixed) {
		n->off = sh->fixed->off;
		n->width = sh->fixed->width;
		n->parent = sh->fixed->parent;
		n->key = sh->fixed->key;
		n->index = sh->fixed->index;
	}
	return lint_keep(sh->c, text, &n->text) ? n : NULL;
}

/* Is @word a descriptor number of a redirection, like "2" in "2>&1"? */
static bool is_fd(const struct shell *sh, struct sv word)
{
	if (!word.n || (at(sh, sh->at) != '>' && at(sh, sh->at) != '<'))
		return false;
	for (size_t i = 0; i < word.n; i++)
		if (word.p[i] < '0' || word.p[i] > '9')
			return false;
	return true;
}

/* Reads a word and appends it to @argv; @argv may be NULL. */
static bool read_word(struct shell *sh, struct node_list *argv)
{
	scoped_buf b = BUF_INIT(LINT_BYTES_MAX);
	const size_t from = sh->at;
	const struct node *n;

	if (at(sh, sh->at) == '<' && at(sh, sh->at + 1) == '(')
		read_raw(sh, past_bracket(sh->text, sh->at + 1), &b);
	while (read_part(sh, &b))
		;
	if (sh->at == from)
		sh->at++;
	if (!argv || is_fd(sh, buf_view(&b)))
		return true;
	n = word_node(sh, from, buf_view(&b));
	return n && lint_add(sh->c, argv, n);
}

static void skip_redirect(struct shell *sh)
{
	while (at(sh, sh->at) && strchr("<>&-", at(sh, sh->at)))
		sh->at++;
	while (is_blank(at(sh, sh->at)))
		sh->at++;
	if (at(sh, sh->at) && !strchr("\n;|&()", at(sh, sh->at)))
		(void)read_word(sh, NULL);
}

/* Reads an operator that ends a simple command. */
static bool take_operator(struct shell *sh, bool *ret_piped)
{
	const char ch = at(sh, sh->at), next = at(sh, sh->at + 1);

	if (!ch || !strchr("\n;|&()", ch) || (ch == '&' && next == '>'))
		return false;
	*ret_piped = ch == '|' && next != '|';
	sh->at += (ch == '|' || ch == '&') && (next == ch || (ch == '|' && next == '&')) ? 2 : 1;
	return true;
}

bool lint_shell_simple(struct shell *sh, struct simple *ret_s)
{
	struct simple s = { 0 };

	while (sh->at < sh->text.n && !sh->c->failed) {
		const char ch = at(sh, sh->at);
		bool piped = false;

		if (sh->closer && ch == sh->closer) {
			sh->at = sh->text.n;
		} else if (is_blank(ch)) {
			sh->at++;
		} else if (skip_continuation(sh)) {
			continue;
		} else if (ch == '#') {
			while (sh->at < sh->text.n && at(sh, sh->at) != '\n')
				sh->at++;
		} else if (take_operator(sh, &piped)) {
			s.piped = piped;
			if (s.argv.n)
				break;
		} else if ((ch == '<' && at(sh, sh->at + 1) != '(') || ch == '>' || ch == '&') {
			skip_redirect(sh);
		} else if (!read_word(sh, &s.argv)) {
			break;
		}
	}
	if (!s.argv.n)
		return false;
	*ret_s = s;
	return true;
}

void lint_shell_all(struct shell *sh, struct simples *out)
{
	struct simple s;

	while (lint_shell_simple(sh, &s) && lint_add(sh->c, out, s))
		;
}

bool lint_shell_inner(struct sv word, size_t *pos, struct sv *ret_inner)
{
	for (size_t i = *pos; i < word.n; i++) {
		const char ch = word.p[i], next = i + 1 < word.n ? word.p[i + 1] : 0;
		size_t from, end;

		if ((ch == '$' || ch == '<') && next == '(') {
			from = i + 2;
			end = past_bracket(word, i + 1);
		} else if (ch == '`') {
			from = i + 1;
			end = past_quote(word, i);
		} else {
			continue;
		}
		*pos = end;
		*ret_inner = sv_sub(word, from, end > from ? end - from - 1 : 0);
		return true;
	}
	return false;
}
