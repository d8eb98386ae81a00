#include "parts/hints.h"

#include <fcntl.h>

#include "base/fd.h"
#include "parts/control.h"
#include "parts/record.h"
#include "parts/terminal.h"

#include "base/banned.h"

struct hints {
	VEC(struct denial) hints;
	int file;    /* descriptor of sessions/ID.hints; -1: not made yet */
	bool failed; /* open() failed: hints are shown, but not kept */
};

static struct hints *hints_of(const struct session *s)
{
	return session_state(s, &hints_initial);
}

const struct session_initial hints_initial = SESSION_INITIAL(struct hints, .file = -1);

void hints_clear(struct session *s)
{
	fd_scope_close(&hints_of(s)->file);
}

size_t hints_count(const struct session *s)
{
	return hints_of(s)->hints.n;
}

const struct denial *hints_get(const struct session *s, size_t number)
{
	const struct hints *h = hints_of(s);

	return number > 0 && number <= h->hints.n ? &h->hints.v[number - 1] : NULL;
}

struct session_denial hints_describe(const struct session *s, size_t number,
				     struct denial_texts *room)
{
	struct session_denial d =
		denials_describe(s, &hints_of(s)->hints.v[number - 1], (uint32_t)number, room);

	d.guessed = true;
	return d;
}

static int open_file(const struct session *s)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	const struct sv record = record_path(s);
	const char *path = record.n ? arena_fmt(&a, SV_FMT "/sessions/%s" HINTS_SUFFIX,
						SV_ARG(s->opt->state), s->id)
				    : NULL;

	return path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
			   0600)
		    : -1;
}

/* Appends a hint to the file of hints. Ignores failures, because a hint is no evidence. */
static void keep(struct session *s, const struct session_denial *d)
{
	struct hints *h = hints_of(s);
	scoped_buf line = BUF_INIT(ENTRY_LINE_MAX);
	scoped_entry entry = { 0 };
	struct writ_err ignored = { 0 };
	struct digest leaf;

	if (h->file < 0 && !h->failed)
		h->file = open_file(s);
	h->failed = h->file < 0;
	if (h->failed)
		return;
	entry_begin(&entry, "hint");
	denials_put(&entry, d);
	if (entry_finish(&entry, &line, &leaf, &ignored) < 0)
		return;
	buf_ch(&line, '\n');
	if (!line.failed)
		(void)!fd_write_all(h->file, buf_view(&line), &ignored);
}

void hints_note(struct session *s, const struct mediate_event *e)
{
	struct hints *h = hints_of(s);
	struct denial_texts room;
	struct session_denial d;
	struct denial *hint;

	session_touch(s);
	/* Skip a guess about an object whose denial was observed and recorded. */
	if (denials_has(s, e->op, e->object))
		return;
	for (size_t i = 0; i < h->hints.n; i++)
		if (h->hints.v[i].op == e->op &&
		    sv_eq(sv_from(h->hints.v[i].object), sv_from(e->object))) {
			h->hints.v[i].count++;
			return;
		}
	hint = h->hints.n < HINTS_MAX ? vec_push(s->a, &h->hints) : NULL;
	if (!hint)
		return;
	denials_fill(s, e, hint);
	d = hints_describe(s, h->hints.n, &room);
	keep(s, &d);
	control_reach(s);
	if ((!terminal_is_interactive(s) || s->opt->explain) && !s->opt->quiet)
		denials_print(s, &d);
}
