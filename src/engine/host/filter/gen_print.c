/* gen_print.c - prints the programs as C and the table as Markdown */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/gen_priv.h"

#include "base/banned.h"

static void print_slots(const struct gen_slot *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)printf("{ %zu, %zu },%s", v[i].first, v[i].n, i % 6 == 5 ? "\n" : " ");
}

void gen_print_c(const struct gen_set *set, enum gen_arch arch)
{
	const char *name = arch == GEN_X86_64 ? "x86_64" : "aarch64";

	(void)printf("/* Made by filter/generate.c from filter/syscalls.tbl. */\n"
		     "#include \"filter/set_priv.h\"\n\n"
		     "static const struct sock_filter code[%zu] = {\n",
		     set->n);
	for (size_t i = 0; i < set->n; i++) {
		const struct sock_filter *f = &set->code[i];

		(void)printf("{ 0x%02x, %u, %u, 0x%08x },%s", f->code, f->jt, f->jf, f->k,
			     i % 4 == 3 ? "\n" : " ");
	}
	(void)printf("\n};\n\nconst struct filter_set filter_set_%s = {\ncode,\n{\n", name);
	print_slots(set->slot, FILTER_SWITCHES);
	(void)printf("},\n{\n");
	print_slots(set->slot + FILTER_SWITCHES, TRAP_COMBINATIONS);
	(void)printf("},\n");
	print_slots(set->slot + FILTER_SWITCHES + TRAP_COMBINATIONS, 1);
	(void)printf("\n};\n");
}

/* --- Markdown --- */

static const char *number(int nr, char *buf, size_t size)
{
	if (nr == GEN_NO_NUMBER)
		return "";
	(void)snprintf(buf, size, "%d", nr);
	return buf;
}

static bool is_plain(const struct gen_row *r)
{
	return !strcmp(r->base, "allow");
}

static void print_refused(const struct gen_table *t)
{
	char x86[12], arm[12];

	(void)printf("\n## Refused, or depending on something\n\n"
		     "| call | x86-64 | arm64 | what happens | why |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < t->n; i++) {
		const struct gen_row *r = &t->v[i];

		if (!is_plain(r) && strcmp(r->group, "gone") != 0)
			(void)printf("| `%s` | %s | %s | %s | %s |\n", r->name,
				     number(r->nr[GEN_X86_64], x86, sizeof(x86)),
				     number(r->nr[GEN_AARCH64], arm, sizeof(arm)),
				     gen_word_find(GEN_BASE, r->base)->says, r->why);
	}
}

/* Prints the names of all calls with @word in @column, in the order of the table. */
static void print_names(const struct gen_table *t, enum gen_column column, const char *word)
{
	const char *sep = "";

	for (size_t i = 0; i < t->n; i++) {
		const struct gen_row *r = &t->v[i];

		if (strcmp(column == GEN_TRAP ? r->trap : r->keeper, word) != 0)
			continue;
		(void)printf("%s`%s`", sep, r->name);
		sep = " ";
	}
}

static void print_words(const struct gen_table *t, enum gen_column column, const char *head)
{
	const struct gen_word *w;

	(void)printf("\n%s\n\n| when | calls |\n|---|---|\n", head);
	/* Skip word 0, "-", which means "never trapped" or "refused". */
	for (size_t i = 1; (w = gen_word_at(column, i)); i++) {
		(void)printf("| %s | ", w->says);
		print_names(t, column, w->name);
		(void)printf(" |\n");
	}
}

static void print_allowed(const struct gen_table *t)
{
	const char *group = "";

	(void)printf("\n## Allowed\n");
	for (size_t i = 0; i < t->n; i++) {
		const struct gen_row *r = &t->v[i];

		if (!is_plain(r))
			continue;
		if (strcmp(group, r->group) != 0)
			(void)printf("\n- %s:", r->group);
		(void)printf(" `%s`", r->name);
		group = r->group;
	}
	(void)printf("\n");
}

void gen_print_markdown(const struct gen_table *t)
{
	/* clang-format off */
	(void)printf("# System calls\n\n"
		"Made by `src/engine/host/filter/generate.c` from `src/engine/host/filter/syscalls.tbl`; a test compares.\n\n"
		"Every program in a jail runs under one of these filters. A call that is not in\n"
		"the table does not exist (ENOSYS). A program for another architecture (`int 0x80`\n"
		"on x86-64, AArch32 on arm64) is killed; x32 calls are ENOSYS. Arguments are\n"
		"compared as the kernel reads them: bits it drops cannot hide a value. Numbers that\n"
		"name nothing any more are left out.\n");
	/* clang-format on */
	print_refused(t);
	print_words(
		t, GEN_TRAP,
		"## Sent to the mediator\n\nOnly if the plan asks for it. What the filter refuses "
		"stays refused.");
	print_words(t, GEN_KEEPER,
		    "## The keeper\n\nThe process that attaches mounts and listeners to a running "
		    "jail can do this and\nnothing else.");
	print_allowed(t);
}
