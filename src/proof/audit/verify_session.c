#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "audit/slog.h"
#include "audit/verify_priv.h"
#include "base/fd.h"
#include "codec/base64.h"
#include "codec/json.h"

#include "base/banned.h"

enum { ID_MAX = 64, FILE_NAME = ID_MAX + 16 };

static uint32_t bucket_of(struct sv id)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < id.n; i++)
		h = (h ^ (uint8_t)id.p[i]) * 16777619u;
	return h % VERIFY_BUCKETS;
}

struct verify_session *verify_find(struct verify_report *v, struct sv id)
{
	for (uint32_t at = v->bucket[bucket_of(id)]; at; at = v->sessions.v[at - 1].next)
		if (sv_eq(v->sessions.v[at - 1].id, id))
			return &v->sessions.v[at - 1];
	return NULL;
}

static struct verify_session *find_or_add(struct verify_report *v, struct sv id)
{
	struct verify_session *s = verify_find(v, id);
	const uint32_t bucket = bucket_of(id);

	if (s)
		return s;
	s = vec_push(v->a, &v->sessions);
	if (!s || !arena_sv(v->a, id, &s->id))
		return NULL;
	s->start = s->end = VERIFY_NONE;
	s->next = v->bucket[bucket];
	v->bucket[bucket] = (uint32_t)v->sessions.n;
	return s;
}

static uint64_t number_of(const json_t *o, const char *key)
{
	const json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static struct sv text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_string(v) ? (struct sv){ json_string_value(v), json_string_length(v) }
				 : SV("");
}

/*
 * Accepts only ids of characters that are safe in file names, since the name of the session's file
 * contains the id.
 */
static bool is_id(struct sv id)
{
	for (size_t i = 0; i < id.n; i++)
		if (!((id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= '0' && id.p[i] <= '9')))
			return false;
	return id.n > 0 && id.n <= ID_MAX;
}

static int note_session(struct verify *s, const json_t *o, uint64_t index, struct sv event,
			struct writ_err *err)
{
	const struct sv id = text_of(o, "session"), root = text_of(o, "root");
	const bool start = sv_is(event, "session.start"), cut = sv_is(event, "session.cut");
	struct verify_session *at = is_id(id) ? find_or_add(s->v, id) : NULL;

	if (!at && is_id(id))
		return writ_nomem(err);
	if (!at || (start ? at->start : at->end) != VERIFY_NONE ||
	    (!start && at->start == VERIFY_NONE)) {
		verify_failed(
			s->v, "log", "entry %llu: %s", (unsigned long long)index,
			!at	? "it is of no session"
			: start ? "it starts a session that began before"
				: "it ends a session that did not begin, or has ended before");
		return 0;
	}
	if (start) {
		at->start = index;
		return 0;
	}
	at->end = index;
	at->cut = cut;
	at->entries = number_of(o, "entries");
	if (!base64_decode(BASE64_URL, root, at->root.b, sizeof(at->root.b)))
		verify_failed(s->v, "log", "entry %llu has no root", (unsigned long long)index);
	return 0;
}

static int note_rotation(struct verify *s, const json_t *o, uint64_t index, struct writ_err *err)
{
	struct verify_rotation *at;

	if (!sv_is(text_of(o, "role"), "log"))
		return 0;
	at = vec_push(s->v->a, &s->rotations);
	if (!at || !arena_sv(s->v->a, text_of(o, "old"), &at->old_vkey) ||
	    !arena_sv(s->v->a, text_of(o, "new"), &at->new_vkey))
		return writ_nomem(err);
	at->index = index;
	return 0;
}

int verify_entry(struct verify *s, struct sv entry, uint64_t index, struct writ_err *err)
{
	struct writ_err no = { 0 };
	scoped_json *o = NULL;
	struct sv event;

	if (entry.n > ENTRY_PUBLIC_MAX || cj_decode(entry, &o, &no) < 0 || !json_is_object(o)) {
		verify_failed(s->v, "log", "entry %llu is not written as entries are",
			      (unsigned long long)index);
		return 0;
	}
	event = text_of(o, "event");
	if (sv_is(event, "session.start") || sv_is(event, "session.end") ||
	    sv_is(event, "session.cut"))
		return note_session(s, o, index, event, err);
	if (sv_is(event, "key.rotate"))
		return note_rotation(s, o, index, err);
	if (sv_is(event, "log.lost"))
		verify_remark(s->v, "log",
			      "entry %llu says that entries up to %llu were lost, with power",
			      (unsigned long long)index, (unsigned long long)number_of(o, "size"));
	if (sv_is(event, "log.unsigned"))
		verify_remark(s->v, "log",
			      "entry %llu says that a session ended behind entry %llu and was not "
			      "signed then",
			      (unsigned long long)index, (unsigned long long)number_of(o, "size"));
	if (sv_is(event, "log.recovered"))
		verify_remark(s->v, "log", "entry %llu says that half a line was cut off",
			      (unsigned long long)index);
	return 0;
}

/* --- session files --- */

static int open_dir(const struct verify *s)
{
	return open(s->opt->sessions, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_file(int dir, struct sv id, char name[static FILE_NAME])
{
	(void)snprintf(name, FILE_NAME, SV_FMT ".jsonl", SV_ARG(id));
	/* O_NONBLOCK: do not hang on a FIFO that somebody put in place of a session log. */
	return dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* Checks whether a running session holds the lock of its log file @fd. */
static bool is_held(int fd)
{
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Adds the files of sessions that the realm's log does not contain. */
static int add_unlogged_files(struct verify *s, int dir, struct writ_err *err)
{
	scoped_list *d = dir < 0 ? NULL : fd_open_list(dir, ".");
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		struct sv id = sv_from(e->d_name);

		if (!sv_ends(id, SV(".jsonl")))
			continue;
		id.n -= 6;
		if (is_id(id) && !find_or_add(s->v, id))
			return writ_nomem(err);
	}
	return 0;
}

int verify_find_running(struct verify *s, struct writ_err *err)
{
	scoped_fd dir = open_dir(s);
	const int r = add_unlogged_files(s, dir, err);

	for (size_t i = 0; r == 0 && i < s->v->sessions.n; i++) {
		struct verify_session *at = &s->v->sessions.v[i];
		char name[FILE_NAME];
		scoped_fd fd = at->end == VERIFY_NONE ? open_file(dir, at->id, name) : -1;

		if (at->end == VERIFY_NONE)
			at->state = is_held(fd)		       ? VERIFY_OPEN
				    : at->start == VERIFY_NONE ? VERIFY_UNKNOWN
							       : VERIFY_CUT;
	}
	return r;
}

/* State while reading the lines of a session file. */
struct file {
	const struct verify_session *at;
	struct tree_frontier tree;
	struct digest root; /* root over the first at->entries lines of the file */
	uint64_t lines;
	/*
	 * compute .root, because the session file may have more lines than the realm's log covers
	 */
	bool some;
	bool starts, ends; /* the first line of the file is a start; the line read last is an end */
};

static int each_line(void *ctx, uint64_t index, struct sv line, struct writ_err *err)
{
	struct file *f = ctx;
	const struct sv event = entry_event(line);
	struct digest leaf;
	int r = 0;

	f->lines = index + 1;
	f->ends = sv_is(event, "end");
	if (index == 0)
		f->starts = sv_is(event, "start");
	/* The realm's log seals the file of an interrupted session only up to line at->entries. */
	if (f->some && index < f->at->entries) {
		r = entry_leaf(line, &leaf, err);
		if (r == 0)
			r = tree_append(&f->tree, &leaf, err);
		if (r == 0)
			f->root = tree_frontier_root(&f->tree);
	}
	return r;
}

/* Checks whether a session file with more lines than were sealed begins with the sealed lines. */
static bool only_added(const struct verify_session *at, int fd)
{
	struct file f = { .at = at, .some = true };
	struct slog_read got = { 0 };
	struct writ_err no = { 0 };

	return lseek(fd, 0, SEEK_SET) == 0 && slog_read(fd, each_line, &f, &got, &no) == 0 &&
	       digest_eq(&f.root, &at->root);
}

/* Compares a session file with the number of entries and the root in the realm's log. */
static bool check_sealed(struct verify *s, struct verify_session *at, const struct file *f,
			 const struct slog_read *got, int fd, const char *place)
{
	if (at->cut && f->lines >= at->entries && digest_eq(&f->root, &at->root))
		return true;
	if (!at->cut && got->size == at->entries && digest_eq(&got->root, &at->root) && !got->torn)
		return true;
	if (!at->cut && got->size > at->entries && only_added(at, fd))
		verify_failed(s->v, place,
			      "line %llu and what follows were added: %llu were sealed",
			      (unsigned long long)at->entries + 1, (unsigned long long)at->entries);
	else if (got->size != at->entries)
		verify_failed(
			s->v, place,
			"has %llu entries; %llu were sealed. It is known by its root only: which "
			"of them differ cannot be told",
			(unsigned long long)got->size, (unsigned long long)at->entries);
	else if (got->torn && digest_eq(&got->root, &at->root))
		verify_failed(s->v, place, "has %llu bytes behind its last entry",
			      (unsigned long long)got->torn);
	else
		verify_failed(s->v, place,
			      "its %llu entries are not those that were sealed. It is known by its "
			      "root only: which of them differ cannot be told",
			      (unsigned long long)got->size);
	at->state = VERIFY_BROKEN;
	return false;
}

static void check_file(struct verify *s, struct verify_session *at, int fd, const char *place)
{
	struct file f = { .at = at, .some = at->cut };
	struct slog_read got = { 0 };
	struct writ_err no = { 0 };

	if (slog_read(fd, each_line, &f, &got, &no) < 0) {
		verify_failed(s->v, place, "entry %llu: %s", (unsigned long long)f.lines, no.what);
		at->state = VERIFY_BROKEN;
		return;
	}
	if (at->end == VERIFY_NONE)
		at->entries = got.size;
	if (at->end != VERIFY_NONE && !check_sealed(s, at, &f, &got, fd, place))
		return;
	if (got.size && (!f.starts || (at->end != VERIFY_NONE && !at->cut && !f.ends))) {
		verify_failed(s->v, place, "does not begin with start, or not end with end");
		at->state = VERIFY_BROKEN;
		return;
	}
	if (at->state == VERIFY_UNCHECKED)
		at->state = at->end >= s->claimed ? VERIFY_UNSIGNED
			    : at->cut		  ? VERIFY_CUT
						  : VERIFY_SEALED;
}

void verify_sessions(struct verify *s)
{
	scoped_fd dir = open_dir(s);
	char name[FILE_NAME], place[FILE_NAME + 16];

	for (size_t i = 0; i < s->v->sessions.n; i++) {
		struct verify_session *at = &s->v->sessions.v[i];
		scoped_fd fd = -1;

		if (s->opt->only.n && !sv_eq(at->id, s->opt->only))
			continue;
		fd = open_file(dir, at->id, name);
		(void)snprintf(place, sizeof(place), "sessions/%s", name);
		if (fd >= 0)
			check_file(s, at, fd, place);
		else if (errno == ENOENT || dir < 0)
			at->state = VERIFY_GONE;
		else
			verify_failed(s->v, place, "cannot be read: %s", strerror(errno));
	}
}
