/* set_priv.h - the programs of one architecture, as filter/generate.c prints them */
#ifndef WRIT_FILTER_SET_PRIV_H
#define WRIT_FILTER_SET_PRIV_H

#include "filter/filter.h"

/* A program is @n instructions of filter_set.code from index @first. Equal programs share them. */
struct filter_slot {
	uint16_t first;
	uint16_t n;
};

struct filter_set {
	const struct sock_filter *code;
	struct filter_slot base[FILTER_SWITCHES];
	struct filter_slot traps[TRAP_COMBINATIONS];
	struct filter_slot keeper;
};

/*
 * The module `filter` contains only the set of the architecture it is built for; tests link the
 * sets of both architectures.
 */
extern const struct filter_set filter_set_x86_64;
extern const struct filter_set filter_set_aarch64;

#endif
