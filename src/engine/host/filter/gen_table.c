/* gen_table.c - parses filter/syscalls.tbl and refuses malformed rows */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/gen_priv.h"

#include "base/banned.h"

static bool take(char **at, char *ret_word, size_t max)
{
	char *start = *at + strspn(*at, " ");
	size_t n = strcspn(start, " ");

	if (!n || n >= max)
		return false;
	memcpy(ret_word, start, n);
	ret_word[n] = '\0';
	*at = start + n;
	return true;
}

static bool take_number(char **at, int *ret_nr)
{
	char word[8];
	char *end = NULL;
	unsigned long n;

	if (!take(at, word, sizeof(word)))
		return false;
	if (!strcmp(word, "-")) {
		*ret_nr = GEN_NO_NUMBER;
		return true;
	}
	errno = 0;
	n = strtoul(word, &end, 10);
	if (errno || *end || word[0] < '0' || word[0] > '9' || n >= GEN_NUMBERS)
		return false;
	*ret_nr = (int)n;
	return true;
}

static bool parse(char *line, struct gen_row *r)
{
	size_t n;

	if (!take_number(&line, &r->nr[GEN_X86_64]) || !take_number(&line, &r->nr[GEN_AARCH64]))
		return false;
	if (!take(&line, r->name, sizeof(r->name)) || !take(&line, r->base, sizeof(r->base)) ||
	    !take(&line, r->trap, sizeof(r->trap)) || !take(&line, r->keeper, sizeof(r->keeper)) ||
	    !take(&line, r->group, sizeof(r->group)))
		return false;
	line += strspn(line, " ");
	n = strlen(line);
	if (n >= sizeof(r->why))
		return false;
	memcpy(r->why, line, n + 1);
	return gen_word_find(GEN_BASE, r->base) && gen_word_find(GEN_TRAP, r->trap) &&
	       gen_word_find(GEN_KEEPER, r->keeper);
}

/* True if the row has the name or a number of an earlier row, so that one of the two would win. */
static bool is_duplicate(const struct gen_table *t, const struct gen_row *r)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct gen_row *o = &t->v[i];

		if (!strcmp(o->name, r->name))
			return true;
		for (int a = 0; a < GEN_ARCHES; a++)
			if (r->nr[a] != GEN_NO_NUMBER && r->nr[a] == o->nr[a])
				return true;
	}
	return false;
}

void gen_table_read(struct gen_table *t, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[256];

	if (!f)
		gen_die("%s: %s", path, strerror(errno));
	t->n = 0;
	for (unsigned int n = 1; fgets(line, sizeof(line), f); n++) {
		char *end = strchr(line, '\n');

		if (!end)
			gen_die("%s:%u: line too long", path, n);
		*end = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		if (t->n == GEN_ROWS)
			gen_die("%s:%u: too many rows", path, n);
		if (!parse(line, &t->v[t->n]))
			gen_die("%s:%u: number number name base trap keeper group why", path, n);
		if (is_duplicate(t, &t->v[t->n]))
			gen_die("%s:%u: name or number is there already", path, n);
		t->n++;
	}
	if (ferror(f) || !t->n)
		gen_die("%s: cannot be read", path);
	(void)fclose(f);
}
