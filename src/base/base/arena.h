/*
 * arena.h - bump allocator: all memory of a policy or plan is freed at once
 *
 * Reads:  nothing
 * Writes: heap memory owned by the arena
 * Next:   lang/, cap/, plan/, lint/
 *
 * Memory is zeroed. Every allocation may return NULL (out of memory, or above the
 * arena's maximum), so callers check. Single allocations are never freed;
 * arena_clear() frees all of them at once.
 */
#ifndef WRIT_BASE_ARENA_H
#define WRIT_BASE_ARENA_H

#include "base/sv.h"

struct arena_chunk;

struct arena {
	struct arena_chunk *head;
	size_t used, max;
};

#define ARENA_INIT(maximum) { .max = (maximum) }
#define scoped_arena __attribute__((cleanup(arena_clear))) struct arena

void arena_clear(struct arena *a);
must_check void *arena_alloc(struct arena *a, size_t count, size_t size);
/* Returns a copy of @s in the arena, followed by a NUL. */
must_check char *arena_str(struct arena *a, struct sv s);
must_check bool arena_sv(struct arena *a, struct sv s, struct sv *ret_s);
printf_like(2, 3) must_check char *arena_fmt(struct arena *a, const char *fmt, ...);

#define arena_new(a, type) ((type *)arena_alloc((a), 1, sizeof(type)))
#define arena_array(a, type, count) ((type *)arena_alloc((a), (count), sizeof(type)))

/*
 * VEC() declares a growable array inside an arena: after `VEC(struct rule) rules;` the call `struct
 * rule *r = vec_push(&arena, &rules);` returns a zeroed new element, or NULL. Growing copies the
 * array, so do not keep element pointers across a push.
 */
#define VEC(type) struct { type *v; size_t n, room; }
#define vec_push(a, vec)                                                       \
	((__typeof__((vec)->v))vec_push_raw((a), (void **)&(vec)->v, &(vec)->n, \
					    &(vec)->room, sizeof(*(vec)->v)))
must_check void *vec_push_raw(struct arena *a, void **v, size_t *n,
			      size_t *room, size_t size);
/* Appends the value to @vec; false if memory runs out. */
#define vec_add(a, vec, ...)                                       \
	({                                                         \
		__typeof__((vec)->v) added_ = vec_push((a), (vec)); \
		if (added_)                                        \
			*added_ = (__VA_ARGS__);                   \
		added_ != NULL;                                    \
	})

/* Reserves space for @more elements in @vec, to avoid copies while the array grows. */
#define vec_reserve(a, vec, more)                                                               \
	vec_reserve_raw((a), (void **)&(vec)->v, (vec)->n, &(vec)->room, (more), sizeof(*(vec)->v))
must_check bool vec_reserve_raw(struct arena *a, void **v, size_t n, size_t *room, size_t more,
				size_t size);

#endif
