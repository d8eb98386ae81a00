#include <string.h>

#include "audit/entry.h"
#include "cli/log.h"
#include "codec/json.h"
#include "parts/session.h"

#include "base/banned.h"

/* The verbs `audit show` and `audit tail`: show time, event and object of each entry as text. */

/*
 * How an event is printed: the values of the members in .said, in this order and without names,
 * then all other members as "NAME VALUE" unless .only is set. --json prints every member.
 */
struct kind {
	const char *event, *said[8];
	bool only;
};

static const struct kind kinds[] = {
	{ "start", { "command", NULL }, true },
	{ "sealed", { NULL }, true },
	{ "probed", { "boundary", "phase", NULL }, true },
	{ "applied", { "boundary", NULL }, true },
	{ "release", { NULL }, true },
	{ "exec", { "object", "args", NULL }, false },
	{ "denied", { "op", "object", "program", "why", NULL }, false },
	{ "net", { "answer", "what", "host", "port", "method", "path", "why", NULL }, false },
	{ "git", { "answer", "what", "repository", "ref", "why", NULL }, false },
	{ "allow", { "rule", NULL }, false },
	{ "revoke", { "rule", NULL }, false },
	{ "approval", { "answer", "object", "how", NULL }, false },
	{ "limit", { "limit", NULL }, false },
	{ "failed", { "step", "what", NULL }, false },
};

/* Members that the text form omits unless .said names them. */
static const char *const left_out[] = { "event",     "time",	  "_salt", "_sd",    "guarantees",
					"defaults",  "flow",	  "where", "number", "supervisor",
					"arguments", "guarantee", "level", "by",     "us" };

struct showing {
	const struct args *a;
	uint64_t began; /* time of the first entry, in microseconds */
	bool begun;
};

static void put_value(struct buf *b, const json_t *v)
{
	scoped_buf plain = BUF_INIT(ENTRY_LINE_MAX);
	struct writ_err no = { 0 };
	const json_t *one;
	size_t i;

	if (json_is_array(v)) {
		json_array_foreach(v, i, one)
		{
			if (i)
				buf_ch(b, ' ');
			put_value(b, one);
		}
	} else if (json_is_integer(v)) {
		buf_fmt(b, "%lld", (long long)json_integer_value(v));
	} else if (json_is_boolean(v)) {
		buf_str(b, json_is_true(v) ? "yes" : "no");
	} else if (json_is_string(v)) {
		const struct sv text = { json_string_value(v), json_string_length(v) };

		/*
		 * SECURITY: the agent chooses the bytes of this value; escape control sequences
		 * before a terminal receives them.
		 */
		diag_put_safe(b, entry_decode(text, &plain, &no) == 0 ? buf_view(&plain) : text);
	} else {
		buf_str(b, "...");
	}
}

static const struct kind *kind_of(struct sv event)
{
	static const struct kind other = { "", { NULL }, false };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (sv_is(event, kinds[i].event))
			return &kinds[i];
	return &other;
}

/* Prints how many probes and readbacks an entry contains. `writ attest verify` judges them. */
static void put_counts(struct buf *b, const json_t *o)
{
	static const struct {
		const char *key, *what;
	} counted[] = { { "probes", "tried" }, { "read_back", "read back from the kernel" } };

	for (size_t i = 0; i < ARRAY_LEN(counted); i++) {
		const json_t *v = json_object_get(o, counted[i].key);

		if (json_is_array(v))
			buf_fmt(b, "  %zu %s", json_array_size(v), counted[i].what);
	}
}

static bool is_left_out(const char *const *said, const char *key)
{
	for (; *said; said++)
		if (strcmp(*said, key) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		if (strcmp(left_out[i], key) == 0)
			return true;
	return false;
}

static bool is_empty(const json_t *v)
{
	return json_is_string(v) && json_string_length(v) == 0;
}

static void put_members(struct buf *b, json_t *o, const struct kind *kind)
{
	const char *const *said = kind->said;
	const char *key;
	json_t *v;

	for (size_t i = 0; said[i]; i++) {
		v = json_object_get(o, said[i]);
		if (!v || is_empty(v))
			continue;
		buf_str(b, "  ");
		put_value(b, v);
	}
	put_counts(b, o);
	json_object_foreach(o, key, v)
	{
		if (kind->only || is_left_out(said, key) || is_empty(v))
			continue;
		buf_fmt(b, "  %s ", key);
		put_value(b, v);
	}
	if (json_array_size(json_object_get(o, "_sd")))
		buf_fmt(b, "  (%zu removed)", json_array_size(json_object_get(o, "_sd")));
}

/* Prints one entry as one line. */
static void put_entry(struct showing *s, json_t *o, struct buf *b)
{
	scoped_buf text = BUF_INIT(65536);
	const char *event = json_string_value(json_object_get(o, "event"));
	const json_int_t at = json_integer_value(json_object_get(o, "time"));
	const uint64_t us = at > 0 ? (uint64_t)at : 0;
	uint64_t since;

	if (!s->begun)
		s->began = us;
	s->begun = true;
	/* The clock may have been set back during the session; avoid an underflow. */
	since = us > s->began ? us - s->began : 0;
	diag_put_safe(&text, sv_from(event));
	buf_fmt(b, "%8llu.%03llu  %-9s", (unsigned long long)(since / 1000000),
		(unsigned long long)(since / 1000 % 1000), text.n ? text.p : "?");
	put_members(b, o, kind_of(sv_from(event)));
	buf_ch(b, '\n');
}

static bool show_line(void *ctx, struct sv line)
{
	struct showing *s = ctx;
	struct buf b = BUF_INIT(4 * ENTRY_LINE_MAX);
	struct writ_err no = { 0 };
	scoped_json *o = NULL;

	if (s->a->given[OPT_JSON]) {
		buf_sv(&b, line);
		return cli_out(&b, 0) == 0;
	}
	if (json_decode(line, ENTRY_LINE_MAX + 1, &o, &no) < 0 || !json_is_object(o))
		buf_str(&b, "            -  (a line that cannot be read: writ audit verify)\n");
	else
		put_entry(s, o, &b);
	return cli_out(&b, 0) == 0;
}

int cli_audit_show(struct args *a, const struct log_place *p, struct sv session, bool follow)
{
	struct showing s = { .a = a };
	struct writ_err err = { 0 };
	const int r = session_lines(p->state, session, follow, show_line, &s, &err);

	return r < 0 ? cli_fail(&err, NULL) : EXIT_DONE;
}
