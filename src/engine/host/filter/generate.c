/*
 * generate.c - compiles filter/syscalls.tbl into BPF during the build
 *
 *     generate TABLE x86_64|aarch64    prints the programs of one architecture as C
 *     generate TABLE markdown          prints the table for docs/syscalls.md
 *
 * The programs do not depend on the build machine or on a library's list of system calls: all
 * numbers come from the table. Each program checks the architecture, then searches the call's
 * number with the cheapest decision tree for the weights below. A number with the x32 bit is above
 * all rows and gets the answer for a call without a row (ENOSYS in the base programs).
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/gen_priv.h"

#include "base/banned.h"

void gen_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fputs("generate: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputs("\n", stderr);
	va_end(ap);
	exit(1);
}

/*
 * Returns the relative frequency of a system call, by rough estimate; a call without an entry
 * counts 1. Since Linux 5.11 the kernel caches which calls a filter allows whatever their
 * arguments, and does not run the filter for these calls. So the frequent calls whose arguments the
 * filter compares matter most.
 */
static uint32_t call_weight(const char *name)
{
	static const struct {
		const char *name;
		uint32_t weight;
	} hot[] = {
		{ "openat", 200 },    { "open", 40 },	    { "ioctl", 40 },  { "sendto", 40 },
		{ "sendmsg", 40 },    { "clone", 20 },	    { "read", 60 },   { "write", 60 },
		{ "close", 40 },      { "fstat", 20 },	    { "mmap", 20 },   { "futex", 60 },
		{ "newfstatat", 30 }, { "setsockopt", 10 }, { "socket", 10 }, { "prctl", 5 },
	};

	for (size_t i = 0; i < ARRAY_LEN(hot); i++)
		if (!strcmp(hot[i].name, name))
			return hot[i].weight;
	return 1;
}

static const char *cell(const struct gen_row *r, enum gen_column column)
{
	switch (column) {
	case GEN_BASE:
		return r->base;
	case GEN_TRAP:
		return r->trap;
	case GEN_KEEPER:
	case GEN_COLUMNS:
		break;
	}
	return r->keeper;
}

struct request {
	enum gen_arch arch;
	enum gen_column column;
	uint32_t bits;
	uint32_t unknown; /* node for a number without a row */
	uint32_t foreign; /* node for another architecture */
};

/*
 * Fills @ret_v (GEN_NUMBERS entries) with one span per system call number, then merges neighbours
 * with the same target. Returns the number of spans.
 */
static size_t spans(struct gen_pool *p, const struct gen_table *t, const struct request *q,
		    struct gen_span *ret_v)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < GEN_NUMBERS; i++)
		ret_v[i] = (struct gen_span){ i, q->unknown, 0 };
	for (size_t i = 0; i < t->n; i++) {
		const struct gen_row *r = &t->v[i];
		const struct gen_word *w = gen_word_find(q->column, cell(r, q->column));

		if (r->nr[q->arch] == GEN_NO_NUMBER || !w)
			continue;
		ret_v[r->nr[q->arch]].then = w->code(p, q->bits, w->arg);
		ret_v[r->nr[q->arch]].weight = call_weight(r->name);
	}
	for (uint32_t i = 0; i < GEN_NUMBERS; i++) {
		if (n && ret_v[n - 1].then == ret_v[i].then)
			ret_v[n - 1].weight += ret_v[i].weight;
		else
			ret_v[n++] = ret_v[i];
	}
	return n;
}

static uint32_t compile(struct gen_pool *p, const struct gen_table *t, const struct request *q)
{
	static const uint32_t audit[GEN_ARCHES] = {
		[GEN_X86_64] = AUDIT_ARCH_X86_64,
		[GEN_AARCH64] = AUDIT_ARCH_AARCH64,
	};
	struct gen_span v[GEN_NUMBERS];
	size_t n = spans(p, t, q, v);
	uint32_t at = gen_load(p, offsetof(struct seccomp_data, nr), gen_switch(p, v, n));

	at = gen_jump(p, BPF_JEQ, audit[q->arch], at, q->foreign);
	return gen_load(p, offsetof(struct seccomp_data, arch), at);
}

/* Appends a program to the code of the set, or returns the slot of an equal program. */
static struct gen_slot add_program(struct gen_set *set, const struct sock_filter *v, size_t n)
{
	struct gen_slot slot = { set->n, n };

	for (size_t i = 0; i < GEN_PROGRAMS; i++) {
		const struct gen_slot *o = &set->slot[i];

		if (o->n == n && !memcmp(set->code + o->first, v, n * sizeof(*v)))
			return *o;
	}
	if (set->n + n > GEN_CODE)
		gen_die("too much code");
	memcpy(set->code + set->n, v, n * sizeof(*v));
	set->n += n;
	return slot;
}

static void make_programs(struct gen_set *set, struct gen_pool *p, const struct gen_table *t,
			  enum gen_arch arch)
{
	struct sock_filter v[GEN_PROGRAM_MAX];
	uint32_t enosys = gen_errno(p, ENOSYS), eperm = gen_errno(p, EPERM);
	uint32_t kill = gen_ret(p, SECCOMP_RET_KILL_PROCESS), go = gen_allow(p);

	for (uint32_t i = 0; i < GEN_PROGRAMS; i++) {
		struct request q = { arch, GEN_BASE, i, enosys, kill };

		if (i >= FILTER_SWITCHES)
			q = (struct request){ arch, GEN_TRAP, i - FILTER_SWITCHES, go, enosys };
		if (i == FILTER_SWITCHES + TRAP_COMBINATIONS)
			q = (struct request){ arch, GEN_KEEPER, FILTER_TIER_B, eperm, kill };
		if (q.column == GEN_TRAP && !q.bits)
			continue; /* no trap program is needed if no trap is enabled */
		set->slot[i] =
			add_program(set, v, gen_place(p, compile(p, t, &q), v, GEN_PROGRAM_MAX));
	}
}

static void print_programs(const struct gen_table *t, enum gen_arch arch)
{
	struct gen_pool *p = calloc(1, sizeof(*p));
	struct gen_set *set = calloc(1, sizeof(*set));

	if (!p || !set)
		gen_die("out of memory");
	make_programs(set, p, t, arch);
	gen_print_c(set, arch);
	free(set);
	free(p);
}

int main(int argc, char **argv)
{
	struct gen_table *t = calloc(1, sizeof(*t));

	if (!t)
		gen_die("out of memory");
	if (argc != 3)
		gen_die("usage: generate TABLE x86_64|aarch64|markdown");
	gen_table_read(t, argv[1]);
	if (!strcmp(argv[2], "x86_64"))
		print_programs(t, GEN_X86_64);
	else if (!strcmp(argv[2], "aarch64"))
		print_programs(t, GEN_AARCH64);
	else if (!strcmp(argv[2], "markdown"))
		gen_print_markdown(t);
	else
		gen_die("%s: not an architecture", argv[2]);
	free(t);
	if (fflush(stdout) || ferror(stdout))
		gen_die("cannot write");
	return 0;
}
