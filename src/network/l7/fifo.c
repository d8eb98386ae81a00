#include "l7/fifo.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { FIRST = 2048, KEEP = 32768 };

struct sv fifo_view(const struct fifo *f)
{
	return f->n ? (struct sv){ f->p + f->at, f->n } : SV("");
}

size_t fifo_left(const struct fifo *f)
{
	return f->n < f->max ? f->max - f->n : 0;
}

void fifo_clear(struct fifo *f)
{
	if (f->wipe && f->p)
		explicit_bzero(f->p, f->room);
	free(f->p);
	*f = (struct fifo){ .max = f->max };
}

static bool grow(struct fifo *f, size_t need)
{
	size_t room = f->room ? f->room : FIRST;
	char *p;

	while (room < need)
		room *= 2;
	p = malloc(room);
	if (!p)
		return false;
	if (f->n)
		memcpy(p, f->p + f->at, f->n);
	if (f->wipe && f->p)
		explicit_bzero(f->p, f->room);
	free(f->p);
	f->p = p;
	f->at = 0;
	f->room = room;
	return true;
}

char *fifo_space(struct fifo *f, size_t want, size_t *ret_n)
{
	const size_t n = want < fifo_left(f) ? want : fifo_left(f);

	if (n == 0)
		return NULL;
	if (f->n + n > f->room) {
		if (!grow(f, f->n + n))
			return NULL;
	} else if (f->at + f->n + n > f->room) {
		memmove(f->p, f->p + f->at, f->n);
		f->at = 0;
	}
	*ret_n = n;
	return f->p + f->at + f->n;
}

bool fifo_add(struct fifo *f, struct sv bytes)
{
	size_t n;
	char *to;

	if (bytes.n == 0)
		return true;
	if (bytes.n > fifo_left(f))
		return false;
	to = fifo_space(f, bytes.n, &n);
	if (!to)
		return false;
	memcpy(to, bytes.p, bytes.n);
	f->n += bytes.n;
	return true;
}

void fifo_drop(struct fifo *f, size_t n)
{
	if (f->wipe && n)
		explicit_bzero(f->p + f->at, n);
	f->at += n;
	f->n -= n;
	if (f->n)
		return;
	f->at = 0;
	f->wipe = false;
	if (f->room > KEEP)
		fifo_clear(f);
}
