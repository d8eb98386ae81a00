#include <string.h>
#include <time.h>

#include "session/session_priv.h"

#include "base/banned.h"

enum { RECORD_MAX = 64 << 20 };

uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Names of files, hosts, people and programs are nobody's business but the user's. */
static const char *const private_keys[] = {
	"address", "args", "ca_file",	     "guarantees", "host", "new",	 "not_dialled",
	"object",  "old",  "path",	     "program",	   "ref",  "repository", "resolver",
	"rule",	   "said", "upstream_proxy", "where",	   "why",  "workspace",
};

static bool is_private(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(private_keys); i++)
		if (private_keys[i][0] == key[0] && strcmp(private_keys[i], key) == 0)
			return true;
	return false;
}

void record_begin(struct session *s, struct entry *e, const char *event)
{
	(void)s;
	entry_begin(e, event);
}

void record_str(struct entry *e, const char *key, struct sv value)
{
	entry_str(e, key, value);
	if (is_private(key))
		entry_hide(e);
}

void record_num(struct entry *e, const char *key, int64_t value)
{
	entry_num(e, key, value < 0 ? 0 : (uint64_t)value);
}

/* SECURITY: what cannot be written down does not go on. */
void record_failed(struct session *s, const struct writ_err *err)
{
	if (s->log_failed)
		return;
	s->log_failed = true;
	say(s, "the record cannot be written: %s", err->what);
	if (s->state < SESSION_ENDING)
		session_end(s, "the record cannot be written", SESSION_FAILED);
}

static void check(struct session *s, int r, const struct writ_err *err)
{
	if (r < 0)
		record_failed(s, err);
}

void record_gather(struct session *s)
{
	slog_hold(&s->log);
}

void record_flush(struct session *s)
{
	struct writ_err err = { 0 };

	check(s, slog_flush(&s->log, &err), &err);
}

void record_end(struct session *s, struct entry *e)
{
	struct writ_err err = { 0 };

	/* What an agent makes us write is bounded; how it ended is always written. */
	if (s->log.bytes > RECORD_MAX && s->state < SESSION_ENDING)
		s->dropped++;
	else if (s->log.fd >= 0)
		check(s, slog_append(&s->log, e, &err), &err);
	entry_clear(e);
}
