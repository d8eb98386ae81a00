/*
 * gen_priv.h - the parts of filter/generate.c, a program that runs during the build
 *
 * All rows of a column become one decision graph per program, and each graph becomes a BPF program.
 * Nothing here is linked into writ. gen_die() ends the build, which must fail without a filter.
 */
#ifndef WRIT_FILTER_GEN_PRIV_H
#define WRIT_FILTER_GEN_PRIV_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

_Noreturn printf_like(1, 2) void gen_die(const char *fmt, ...);

/* --- The table (gen_table.c) --- */

enum gen_arch { GEN_X86_64 = 0, GEN_AARCH64, GEN_ARCHES };
enum { GEN_NUMBERS = 1024, GEN_ROWS = 512, GEN_NO_NUMBER = -1 };

struct gen_row {
	int nr[GEN_ARCHES]; /* system call number, or GEN_NO_NUMBER */
	char name[32];
	char base[16], trap[16], keeper[16], group[16];
	char why[96];
};

struct gen_table {
	struct gen_row v[GEN_ROWS];
	size_t n;
};

void gen_table_read(struct gen_table *t, const char *path);

/* --- Decision graphs and their programs (gen_bpf.c) --- */

/*
 * A node is one instruction and its successors, given by their indexes in the pool. Equal nodes
 * have the same index, so graphs share common parts automatically.
 */
struct gen_node {
	uint16_t op; /* BPF code */
	uint32_t k;
	/* Successors of a conditional jump. Any other instruction except RET continues at @yes. */
	uint32_t yes, no;
};

enum { GEN_NODES = 1 << 15, GEN_BUCKETS = 1 << 12, GEN_SPANS = 256 };

/*
 * A span of values: all values from @first up to the next span lead to the node @then. @weight is
 * how often calls have these values.
 */
struct gen_span {
	uint32_t first;
	uint32_t then;
	uint32_t weight;
};

struct gen_pool {
	struct gen_node v[GEN_NODES];
	/* Index + 1 of the next node in the same bucket of the hash table; 0: none. */
	uint32_t next_in_bucket[GEN_NODES];
	uint32_t bucket[GEN_BUCKETS];
	uint32_t n;
	/* @cost and @split: scratch memory of gen_switch() */
	uint64_t cost[GEN_SPANS][GEN_SPANS];
	uint16_t split[GEN_SPANS][GEN_SPANS];
};

uint32_t gen_ret(struct gen_pool *p, uint32_t action);
uint32_t gen_errno(struct gen_pool *p, int err);
uint32_t gen_allow(struct gen_pool *p);
uint32_t gen_load(struct gen_pool *p, uint32_t offset, uint32_t next);
uint32_t gen_mask(struct gen_pool *p, uint32_t mask, uint32_t next);
uint32_t gen_jump(struct gen_pool *p, uint16_t op, uint32_t k, uint32_t yes, uint32_t no);

/* Loads the low or high half of argument @arg and continues at @next. */
uint32_t gen_low(struct gen_pool *p, unsigned int arg, uint32_t next);
uint32_t gen_high(struct gen_pool *p, unsigned int arg, uint32_t next);

/* Branches on the loaded value. The spans are sorted by value, and the first span starts at 0. */
uint32_t gen_switch(struct gen_pool *p, const struct gen_span *v, size_t n);

/* Writes the BPF program for the graph that starts at the node @start. Returns its length. */
size_t gen_place(const struct gen_pool *p, uint32_t start, struct sock_filter *ret_v, size_t max);

/* --- Meaning of the words in the table (gen_words.c) --- */

enum gen_column { GEN_BASE = 0, GEN_TRAP, GEN_KEEPER, GEN_COLUMNS };

struct gen_word {
	const char *name;
	/*
	 * Builds the decision graph of the word. @bits: filter switches for the columns base and
	 * keeper, traps for the column trap. @arg: the member @arg.
	 */
	uint32_t (*code)(struct gen_pool *p, uint32_t bits, unsigned int arg);
	unsigned int arg;
	const char *says; /* meaning of the word, for docs/syscalls.md */
};

/* Returns the word with the given name, or NULL if the column has no such word. */
const struct gen_word *gen_word_find(enum gen_column column, const char *name);
/* Returns word @i of a column, or NULL for the index after the last word. */
const struct gen_word *gen_word_at(enum gen_column column, size_t i);

/* --- All programs of an architecture (generate.c, gen_print.c) --- */

struct gen_slot {
	size_t first, n;
};

enum { GEN_PROGRAMS = 97, GEN_CODE = 1 << 16, GEN_PROGRAM_MAX = 4096 };

struct gen_set {
	struct sock_filter code[GEN_CODE];
	size_t n;
	/* Slices of the base programs, then the trap programs, then the keeper's program. */
	struct gen_slot slot[GEN_PROGRAMS];
};

void gen_print_c(const struct gen_set *set, enum gen_arch arch);
void gen_print_markdown(const struct gen_table *t);

#endif
