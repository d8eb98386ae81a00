/*
 * gen.h - random capabilities that have something to do with each other
 *
 * Reads:  a seed
 * Writes: nothing
 * Next:   test_cap_laws.c
 *
 * Two independent random capabilities almost never meet, and a law about pairs
 * that never meet says nothing. So these come from small alphabets, children
 * are made by narrowing a parent, requests by picking one act that a grant
 * allows, and near misses by changing one byte. Texts live in the arena.
 */
#ifndef WRIT_TESTS_GEN_H
#define WRIT_TESTS_GEN_H

#include "cap/cap.h"

struct gen {
	uint64_t state;
	struct arena *a;
};

uint64_t gen_next(struct gen *g);
size_t gen_below(struct gen *g, size_t n);
bool gen_chance(struct gen *g, size_t percent);

struct cap gen_grant(struct gen *g);
struct cap gen_denial(struct gen *g);
struct cap gen_narrow(struct gen *g, const struct cap *parent); /* mostly within it */
struct cap gen_request(struct gen *g, const struct cap *grant);	/* mostly matched by it */
struct cap gen_denial_of(struct gen *g, const struct cap *req);	/* mostly denies it */
struct sv gen_mutated(struct gen *g, struct sv text);

#endif
