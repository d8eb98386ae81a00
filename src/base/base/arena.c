#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/*
 * Sizes of the chunks of an arena. The first chunk is small: many arenas hold one short-lived value
 * and never need a second chunk.
 */
enum { FIRST = 2 * 1024, CHUNK = 16 * 1024, ALIGN = 16 };

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, room;
	_Alignas(ALIGN) char bytes[];
};

void arena_clear(struct arena *a)
{
	while (a->head) {
		struct arena_chunk *next = a->head->next;

		free(a->head);
		a->head = next;
	}
	a->used = 0;
}

static bool arena_grow(struct arena *a, size_t need)
{
	const size_t least = a->head ? CHUNK : FIRST;
	const size_t room = need > least ? need : least;
	struct arena_chunk *c;

	if (room > a->max || a->used > a->max - room)
		return false;
	c = calloc(1, sizeof(*c) + room);
	if (!c)
		return false;
	c->room = room;
	c->next = a->head;
	a->head = c;
	a->used += room;
	return true;
}

void *arena_alloc(struct arena *a, size_t count, size_t size)
{
	size_t n;
	void *p;

	if (__builtin_mul_overflow(count, size, &n) || n > SIZE_MAX / 2)
		return NULL;
	n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!a->head || a->head->room - a->head->used < n)
		if (!arena_grow(a, n))
			return NULL;
	p = a->head->bytes + a->head->used;
	a->head->used += n;
	return p;
}

char *arena_str(struct arena *a, struct sv s)
{
	char *p = arena_alloc(a, s.n + 1, 1);

	if (p && s.n)
		memcpy(p, s.p, s.n);
	return p;
}

bool arena_sv(struct arena *a, struct sv s, struct sv *ret_s)
{
	const char *p = arena_str(a, s);

	if (!p)
		return false;
	*ret_s = (struct sv){ p, s.n };
	return true;
}

char *arena_fmt(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	p = arena_alloc(a, (size_t)n + 1, 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

bool vec_reserve_raw(struct arena *a, void **v, size_t n, size_t *room, size_t more, size_t size)
{
	void *p;

	if (*room - n >= more)
		return true;
	p = arena_alloc(a, n + more, size);
	if (!p)
		return false;
	if (n)
		memcpy(p, *v, n * size);
	*v = p;
	*room = n + more;
	return true;
}

void *vec_push_raw(struct arena *a, void **v, size_t *n, size_t *room, size_t size)
{
	if (*n == *room && !vec_reserve_raw(a, v, *n, room, *room ? *room : 8, size))
		return NULL;
	return (char *)*v + (*n)++ * size;
}
