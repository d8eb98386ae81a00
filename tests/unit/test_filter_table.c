/*
 * test_filter_table.c - the table of system calls is complete, its compiler correct
 *
 * Arguments: what the preprocessor says asm/unistd.h and asm-generic/unistd.h (the
 * list of arm64) define.
 */
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>

#include "bpf.h"
#include "filter/gen_priv.h"
#include "tap.h"

enum { NUMBERS = 601 };

/* --- the table against the kernel's list --- */

struct listed {
	char name[32];
	int nr[2]; /* x86-64, arm64; -1 */
};

static struct listed *table;
static size_t table_n;

static void read_table(const char *src)
{
	char path[4096], line[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/src/engine/host/filter/syscalls.tbl", src);
	f = fopen(path, "re");
	table = calloc(GEN_ROWS, sizeof(*table));
	while (f && table && fgets(line, sizeof(line), f)) {
		char x86[8], arm[8];
		struct listed *l = &table[table_n];

		if (line[0] == '#' || sscanf(line, "%7s %7s %31s", x86, arm, l->name) != 3)
			continue;
		l->nr[0] = x86[0] == '-' ? -1 : (int)strtol(x86, NULL, 10);
		l->nr[1] = arm[0] == '-' ? -1 : (int)strtol(arm, NULL, 10);
		table_n++;
	}
	if (f)
		(void)fclose(f);
	ok(table_n > 370, "the table has %zu rows", table_n);
}

static int table_max(int arch)
{
	int max = 0;

	for (size_t i = 0; i < table_n; i++)
		max = table[i].nr[arch] > max ? table[i].nr[arch] : max;
	return max;
}

static bool has_row(const char *name, int arch, int nr)
{
	for (size_t i = 0; i < table_n; i++)
		if (!strcmp(table[i].name, name))
			return table[i].nr[arch] == nr;
	return false;
}

static void test_libseccomp(const char *what, uint32_t scmp, int arch)
{
	size_t known = 0, missing = 0;

	for (int nr = 0; nr < NUMBERS; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(scmp, nr);

		known += name != NULL;
		if (name && !has_row(name, arch, nr)) {
			tap_note("%s: %s (%d) has no row", what, name, nr);
			missing++;
		}
		free(name);
	}
	ok(known > 290 && !missing, "%s: each of the %zu calls of libseccomp has its row", what,
	   known);
}

struct macros {
	struct {
		char name[64], value[64];
	} v[1024];
	size_t n;
};

/* Values may name another macro; the list is what the preprocessor prints. */
static int macro_number(const struct macros *m, const char *value, int depth)
{
	char *end = NULL;
	long n = strtol(value, &end, 10);

	if (end != value && !*end)
		return (int)n;
	for (size_t i = 0; i < m->n && depth < 4; i++)
		if (!strcmp(m->v[i].name, value))
			return macro_number(m, m->v[i].value, depth + 1);
	return -1;
}

static void test_headers(const char *path, const char *what, int arch)
{
	struct macros *m = calloc(1, sizeof(*m));
	FILE *f = fopen(path, "re");
	size_t known = 0, missing = 0;
	char line[512];

	while (f && m && m->n < ARRAY_LEN(m->v) && fgets(line, sizeof(line), f))
		m->n += sscanf(line, "#define %63s %63s", m->v[m->n].name, m->v[m->n].value) == 2;
	for (size_t i = 0; m && i < m->n; i++) {
		const char *name = m->v[i].name;
		int nr = macro_number(m, m->v[i].value, 0);

		if (strncmp(name, "__NR_", 5) != 0 || nr < 0 || !strcmp(name, "__NR_syscalls") ||
		    !strcmp(name, "__NR_arch_specific_syscall"))
			continue;
		known++;
		if (nr > table_max(arch))
			tap_note("%s: %s (%d) is newer than the table: ENOSYS", what, name + 5, nr);
		else if (!has_row(name + 5, arch, nr)) {
			tap_note("%s: %s (%d) has no row", what, name + 5, nr);
			missing++;
		}
	}
	ok(known > 290 && !missing, "%s: each of the %zu calls has its row", what, known);
	if (f)
		(void)fclose(f);
	free(m);
}

/* --- the compiler itself --- */

void gen_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	exit(1);
}

/* Many spans, each with a long tail of its own: jumps longer than one instruction can. */
static void test_compiler(void)
{
	struct gen_pool *p = calloc(1, sizeof(*p));
	static struct sock_filter v[4096];
	struct gen_span span[200];
	uint64_t state = 4101842887655102017ull;
	size_t wrong = 0, far = 0;

	for (int round = 0; p && round < 20; round++) {
		uint32_t first = 0;
		struct filter f = { v, 0 };

		for (size_t i = 0; i < ARRAY_LEN(span); i++) {
			uint32_t r = (uint32_t)bpf_random(&state);
			uint32_t tail = gen_ret(p, r % 50);

			/* Half of the spans hide one bit of argument 0 behind two loads. */
			if (r & 1u << 20)
				tail = gen_low(p, 0,
					       gen_jump(p, BPF_JSET, 1u << (r % 32),
							gen_ret(p, (uint32_t)(1000 + i)), tail));
			span[i] = (struct gen_span){ first, tail, r >> 28 };
			first += r & 1u << 21 ? 1 : 1 + (r >> 8) % 9;
		}
		f.n = (uint16_t)gen_place(p, gen_load(p, 0, gen_switch(p, span, ARRAY_LEN(span))),
					  v, ARRAY_LEN(v));
		wrong += !bpf_is_sound(f);
		for (size_t i = 0; i < f.n; i++)
			far += v[i].code == (BPF_JMP | BPF_JA);
		for (uint32_t x = 0, i = 0; x < first + 10; x++) {
			struct seccomp_data d = { .nr = (int)x, .args = { bpf_random(&state) } };
			const struct gen_node *g;

			while (i + 1 < ARRAY_LEN(span) && span[i + 1].first <= x)
				i++;
			g = &p->v[span[i].then];
			if (BPF_CLASS(g->op) == BPF_LD) {
				g = &p->v[g->yes];
				g = &p->v[(uint32_t)d.args[0] & g->k ? g->yes : g->no];
			}
			wrong += bpf_run(f, &d, NULL) != g->k;
		}
		memset(p, 0, offsetof(struct gen_pool, cost));
	}
	ok(!wrong, "the compiler: random spans lead where they should");
	ok(far > 0, "the compiler: %zu jumps were too far for one instruction", far);
	free(p);
}

int main(int argc, char **argv)
{
	const char *src = getenv("SRC");

	if (argc != 3 || !src) {
		printf("Bail out! usage: test_filter_table MACROS MACROS, and SRC in the "
		       "environment\n");
		return 1;
	}
	read_table(src);
	test_libseccomp("x86_64", SCMP_ARCH_X86_64, 0);
	test_libseccomp("aarch64", SCMP_ARCH_AARCH64, 1);
#if defined(__x86_64__)
	test_headers(argv[1], "asm/unistd.h", 0);
#elif defined(__aarch64__)
	test_headers(argv[1], "asm/unistd.h", 1);
#endif
	test_headers(argv[2], "asm-generic/unistd.h", 1);
	test_compiler();
	free(table);
	return tap_done();
}
