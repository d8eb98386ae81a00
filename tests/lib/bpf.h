/*
 * bpf.h - runs seccomp programs on paper
 *
 * Knows the instructions filter/generate.c uses and no other.
 */
#ifndef WRIT_TESTS_BPF_H
#define WRIT_TESTS_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "filter/filter.h"

__attribute__((unused)) static uint32_t bpf_run(struct filter f, const struct seccomp_data *d,
						unsigned int *ret_steps)
{
	uint32_t a = 0, steps = 0;
	size_t pc = 0;

	while (pc < f.n) {
		const struct sock_filter *i = &f.v[pc++];

		steps++;
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)d + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			if (ret_steps)
				*ret_steps = steps;
			return i->k;
		default:
			return 0xdead0001;
		}
	}
	return 0xdead0002;
}

/* What the kernel demands of a program, and that it ends in every case. */
__attribute__((unused)) static bool bpf_is_sound(struct filter f)
{
	for (size_t i = 0; i < f.n; i++) {
		const struct sock_filter *s = &f.v[i];
		size_t far = s->jt > s->jf ? s->jt : s->jf;

		if (BPF_CLASS(s->code) == BPF_LD &&
		    (s->k % 4 || s->k >= sizeof(struct seccomp_data)))
			return false;
		if (s->code == (BPF_JMP | BPF_JA))
			far = s->k;
		if (BPF_CLASS(s->code) == BPF_JMP && i + 1 + far >= f.n)
			return false;
	}
	return f.n > 0 && f.n <= BPF_MAXINSNS && BPF_CLASS(f.v[f.n - 1].code) == BPF_RET;
}

static inline uint64_t bpf_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
