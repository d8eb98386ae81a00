#include <time.h>

#include "codec/json.h"
#include "session/session_priv.h"

#include "base/banned.h"

enum { RECORD_MAX = 64 << 20, GATHER = 32 << 10, GATHER_MAX = 1 << 20 };

uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void record_begin(struct session *s, struct buf *b, const char *event)
{
	struct timespec t;

	(void)s;
	clock_gettime(CLOCK_REALTIME, &t);
	buf_fmt(b, "{\"time\":%lld.%03ld,\"event\":", (long long)t.tv_sec, t.tv_nsec / 1000000);
	json_put_str(b, sv_from(event));
}

void record_str(struct buf *b, const char *key, struct sv value)
{
	buf_fmt(b, ",\"%s\":", key);
	json_put_str(b, value);
}

void record_num(struct buf *b, const char *key, int64_t value)
{
	buf_fmt(b, ",\"%s\":%lld", key, (long long)value);
}

static void write_lines(struct session *s, const struct buf *b)
{
	struct writ_err err = { 0 };

	if (s->record >= 0 && !b->failed && b->n && fd_write_all(s->record, buf_view(b), &err) < 0)
		say(s, "the record cannot be written: %s", err.what);
}

void record_gather(struct session *s)
{
	s->gathered = (struct buf)BUF_INIT(GATHER_MAX);
	s->gathers = true;
}

void record_flush(struct session *s)
{
	s->gathers = false;
	write_lines(s, &s->gathered);
	buf_clear(&s->gathered);
}

/* One write for whole lines: they are whole even if we are killed. */
void record_end(struct session *s, struct buf *b)
{
	buf_str(b, "}\n");
	/* What an agent makes us write is bounded; how it ended is always written. */
	if (s->recorded > RECORD_MAX && s->state < SESSION_ENDING) {
		s->dropped++;
		buf_clear(b);
		return;
	}
	s->recorded += b->n;
	if (s->gathers && b->n < GATHER) {
		buf_sv(&s->gathered, buf_view(b));
		if (s->gathered.n > GATHER) {
			record_flush(s);
			record_gather(s);
		}
	} else {
		write_lines(s, b);
	}
	buf_clear(b);
}
