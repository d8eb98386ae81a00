/*
 * fuzz_conform.c - what the escape suite hears: rows, plans, judgements, kept trials,
 * declarations and command lines. The first byte says which.
 */
#include <string.h>

#include "conform/conform.h"
#include "fuzz.h"

static const char rows_text[] =
	"[{\"id\":\"A-1\",\"bound\":\"fs\",\"guarantee\":\"fs.read\",\"flags\":[]},"
	"{\"id\":\"A-2\",\"bound\":\"fs\",\"guarantee\":\"ipc\",\"gap\":\"sockets\",\"flags\":[]}]";

static void try_rows(struct sv text, struct arena *a)
{
	struct conform_rows rows = { 0 };
	scoped_buf b = BUF_INIT(1 << 20);
	struct writ_err err;

	if (conform_read_rows(text, a, &rows, &err) < 0)
		return;
	for (size_t i = 0; i < rows.rows.n; i++)
		if (memchr(rows.rows.v[i].id.p, '/', rows.rows.v[i].id.n) ||
		    rows.rows.v[i].flags >= ROW_FLAGS_END)
			abort();
	conform_show_rows(&rows, &b);
}

/* What is kept of a judgement is read again as it was. */
static void try_trials(struct sv text, struct arena *a, bool kept)
{
	struct conform_trial t[2] = { 0 }, again[2] = { 0 };
	scoped_buf first = BUF_INIT(1 << 20), second = BUF_INIT(1 << 20);
	struct conform_rows rows = { 0 };
	struct writ_err err;

	if (conform_read_rows(sv_from(rows_text), a, &rows, &err) < 0)
		abort();
	if (!kept)
		conform_read_judged(text, &rows, t);
	else if (conform_read_bare(text, &rows, t, &err) != 1)
		return;
	conform_put_bare(&first, &rows, t);
	if (conform_read_bare(buf_view(&first), &rows, again, &err) != 1)
		abort();
	for (int i = 0; i < 2; i++)
		if (again[i].seen != t[i].seen)
			abort();
	conform_put_bare(&second, &rows, again);
	/* A text cut in the middle of a character may get shorter once more, never fail. */
	if (conform_read_bare(buf_view(&second), &rows, t, &err) != 1)
		abort();
}

static void try_levels(struct sv text, struct arena *a, bool plan)
{
	const struct conform_row row = { .guarantee = SV("ipc"), .gap = SV("sockets") };
	struct conform_levels l = { 0 };
	struct writ_err err;
	const int r = plan ? conform_read_explain(text, a, &l, &err)
			   : conform_read_declared(text, &l, &err);

	if (r < 0 && conform_declared(&l, &row))
		abort();
	if (r == 0 && !conform_declared(&l, &row) && l.weak[G_IPC])
		abort();
}

static void try_split(struct sv text, struct arena *a)
{
	struct conform_words w = { 0 };
	struct writ_err err;

	if (conform_split(text, a, &w, &err) < 0 && w.words.n)
		abort();
	for (size_t i = 0; i < w.words.n; i++)
		if (strlen(w.words.v[i]) > text.n)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_arena a = ARENA_INIT(16 << 20);
	const struct sv text = { size > 1 ? (const char *)data + 1 : "", size > 1 ? size - 1 : 0 };

	switch (size ? data[0] : 0) {
	case 'r':
		try_rows(text, &a);
		break;
	case 'j':
		try_trials(text, &a, false);
		break;
	case 'b':
		try_trials(text, &a, true);
		break;
	case 'e':
		try_levels(text, &a, true);
		break;
	case 'd':
		try_levels(text, &a, false);
		break;
	case 'w':
		try_split(text, &a);
		break;
	default:
		break;
	}
	return 0;
}
