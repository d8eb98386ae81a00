#include "vcs/gitattributes.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/*
 * SECURITY: attributes select filters, textconv programs and merge drivers by name. The agent
 * cannot write the configuration that maps a name to a command, but the user's configuration may
 * define dangerous commands. An unknown name may also be a macro in the user's own attributes.
 * Therefore only listed attributes are accepted, and words after a space in a quoted pattern are
 * checked as if they were attributes.
 */

enum { LINE_MAX_OF_GIT = 2000 };

/* clang-format off */

/* Attributes that git handles itself, whatever their value. */
static const char *const plain[] = {
	"text", "eol", "crlf", "ident", "whitespace", "binary", "export-ignore", "export-subst",
	"working-tree-encoding", "encoding", "delta", "conflict-marker-size", NULL
};

/* Prefixes of attributes that only hosting services use and git ignores. */
static const char *const heads[] = { "linguist-", "gitlab-", NULL };

/* Diff drivers that are built into git. */
static const char *const diffs[] = {
	"ada", "bash", "bibtex", "cpp", "csharp", "css", "dts", "elixir", "fortran", "fountain",
	"golang", "html", "java", "kotlin", "markdown", "matlab", "objc", "pascal", "perl", "php",
	"python", "ruby", "rust", "scheme", "tex", NULL
};
static const char *const merges[] = { "text", "binary", "union", NULL };
/* clang-format on */

static bool is_in(const char *const *list, struct sv word)
{
	for (; *list; list++)
		if (sv_is(word, *list))
			return true;
	return false;
}

static bool has_head(struct sv word)
{
	for (size_t i = 0; heads[i]; i++)
		if (sv_starts(word, sv_from(heads[i])))
			return true;
	return false;
}

static bool is_fine(struct sv word)
{
	/* "-filter" and "!filter" remove an attribute. */
	const bool off = word.n && (word.p[0] == '-' || word.p[0] == '!');
	const size_t eq = sv_find(word, '=');
	const struct sv name = sv_sub(sv_skip(word, off), 0, eq == SIZE_MAX ? word.n : eq - off);
	const struct sv value = eq == SIZE_MAX ? SV("") : sv_skip(word, eq + 1);

	if (is_in(plain, name) || has_head(name))
		return true;
	if (sv_is(name, "filter"))
		return off && eq == SIZE_MAX;
	if (sv_is(name, "diff"))
		return eq == SIZE_MAX || is_in(diffs, value);
	return sv_is(name, "merge") && (eq == SIZE_MAX || is_in(merges, value));
}

static struct sv next_word(struct sv *line)
{
	size_t n = 0;
	struct sv word;

	while (line->n && strchr(" \t\r", line->p[0]))
		*line = sv_skip(*line, 1);
	while (n < line->n && !strchr(" \t\r", line->p[n]))
		n++;
	word = sv_sub(*line, 0, n);
	*line = sv_skip(*line, n);
	return word;
}

/* Detects quoting other than one plain pair of quotes, after which attributes could follow without
 * a space. */
static bool is_quoted_otherwise(struct sv word)
{
	if (word.p[0] != '"')
		return false;
	return word.n < 2 || word.p[word.n - 1] != '"' ||
	       sv_find(sv_sub(word, 1, word.n - 2), '"') != SIZE_MAX ||
	       sv_find(word, '\\') != SIZE_MAX;
}

/* Checks one line. The first word of the line is a pattern, or defines a macro: "[attr]name". */
static bool line_is_fine(struct sv line, struct sv *ret_word)
{
	const bool longer = line.n >= LINE_MAX_OF_GIT;
	struct sv word = next_word(&line);

	*ret_word = word;
	/* Some versions of git treat the rest of an overlong line as a new line. */
	if (longer)
		return false;
	if (word.n == 0 || word.p[0] == '#')
		return true;
	if (sv_starts(word, SV("[attr]")) || is_quoted_otherwise(word))
		return false;
	for (word = next_word(&line); word.n; word = next_word(&line)) {
		*ret_word = word;
		if (!is_fine(word))
			return false;
	}
	return true;
}

bool gitattributes_check(struct sv bytes, char why[static GITATTRIBUTES_WHY])
{
	struct sv word = SV("");

	for (size_t i = 0; i < bytes.n; i++) {
		const unsigned char c = (unsigned char)bytes.p[i];

		/* Refuse control characters: another parser might see a line end where git does
		 * not, or the reverse. */
		if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\r' && c != '\t')) {
			(void)snprintf(why, GITATTRIBUTES_WHY, "has bytes that are no text");
			return false;
		}
	}
	/* Git skips a byte order mark at the beginning of the file. */
	if (sv_starts(bytes, SV("\xef\xbb\xbf")))
		bytes = sv_skip(bytes, 3);
	while (bytes.n)
		if (!line_is_fine(sv_cut(&bytes, '\n'), &word)) {
			word = sv_sub(word, 0, word.n < 40 ? word.n : 40);
			(void)snprintf(why, GITATTRIBUTES_WHY,
				       "\"" SV_FMT "\" may make git run programs", SV_ARG(word));
			return false;
		}
	return true;
}
