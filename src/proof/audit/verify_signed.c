#include <string.h>

#include "audit/logkey.h"
#include "audit/realm_priv.h"
#include "audit/verify_priv.h"

#include "base/banned.h"

/*
 * Loads a checkpoint file into s->marks. A missing file adds no mark; a malformed file adds a
 * failure.
 */
static int load(struct verify *s, const char *file, struct writ_err *err)
{
	struct verify_mark m = { .file = file }, *kept;
	scoped_buf boot = BUF_INIT(64), bytes = BUF_INIT(NOTE_MAX);
	struct writ_err no = { 0 };
	struct checkpoint c;
	struct sv rest;
	int r = realm_read(&s->log, file, &bytes, &no);

	if (r == 0 && bytes.n == 0)
		return 0;
	rest = buf_view(&bytes);
	if (r == 0 && strcmp(file, "latest") == 0) {
		const struct sv when = sv_cut(&rest, '\n');

		m.lost = realm_read_boot_id(&boot, &no) < 0 || !sv_eq(when, buf_view(&boot));
	}
	if (!arena_sv(s->v->a, rest, &rest))
		return writ_nomem(err);
	if (r < 0 || checkpoint_read(rest, &m.note, &c, &no) < 0) {
		verify_failed(s->v, file, "cannot be read: %s", no.what);
		return 0;
	}
	if (!sv_eq(c.origin, s->opt->origin))
		verify_failed(s->v, file, "is of another log");
	m.size = c.size;
	m.root = c.root;
	kept = vec_push(s->v->a, &s->marks);
	if (!kept)
		return writ_nomem(err);
	*kept = m;
	return 0;
}

int verify_load_marks(struct verify *s, struct writ_err *err)
{
	static const char *const files[] = { "checkpoint", "latest", "cosigned" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
		r = load(s, files[i], err);
	return r;
}

static void compare_one(struct verify *s, struct verify_mark *m)
{
	struct digest root;

	if (m->seen || m->size != s->tree.size)
		return;
	m->seen = true;
	root = tree_frontier_root(&s->tree);
	if (!digest_eq(&root, &m->root))
		verify_failed(s->v, m->file,
			      "one of the first %llu entries is not as it was signed",
			      (unsigned long long)m->size);
}

void verify_check_marks(struct verify *s)
{
	for (size_t i = 0; i < s->marks.n; i++)
		compare_one(s, &s->marks.v[i]);
	/*
	 * Load the checkpoint of each rotation, signed by both keys; its size is that of the log
	 * right after the key.rotate entry.
	 */
	for (size_t i = 0; i < s->rotations.n; i++)
		if (s->rotations.v[i].index + 1 == s->tree.size) {
			char name[ROTATED_NAME];
			struct writ_err no = { 0 };
			const char *kept;

			audit_rotated_name(s->tree.size, name);
			kept = arena_str(s->v->a, sv_from(name));
			if (kept && load(s, kept, &no) == 0 && s->marks.n)
				compare_one(s, &s->marks.v[s->marks.n - 1]);
		}
}

static bool is_signed_by(const struct verify_mark *m, const struct note_key *key)
{
	struct note_signers who;
	struct writ_err no = { 0 };

	return note_verify(&m->note, key, 1, &who, &no) == 0;
}

static const struct verify_mark *find_mark(const struct verify *s, const char *name)
{
	for (size_t i = 0; i < s->marks.n; i++)
		if (strcmp(s->marks.v[i].file, name) == 0)
			return &s->marks.v[i];
	return NULL;
}

/* Checks that both keys signed the checkpoint of a rotation. */
static bool check_rotation(struct verify *s, const struct verify_rotation *at,
			   const struct note_key *old, const struct note_key *next)
{
	const struct verify_mark *m;
	char name[ROTATED_NAME];

	audit_rotated_name(at->index + 1, name);
	m = find_mark(s, name);
	if (!m) {
		verify_failed(s->v, name,
			      "is missing: nothing says that the log's key was to be "
			      "another one");
		return false;
	}
	if (is_signed_by(m, old) && is_signed_by(m, next))
		return true;
	verify_failed(s->v, name, "is not signed by both keys that entry %llu names",
		      (unsigned long long)at->index);
	return false;
}

/*
 * Collects the keys of the log in the order in which they signed: keys[0] from the beginning,
 * keys[i] after rotation i. For a log without a rotation, collects the keys pinned for the log.
 */
static size_t key_chain(struct verify *s, struct note_key *keys, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < s->rotations.n && n + 1 < room; i++) {
		const struct verify_rotation *at = &s->rotations.v[i];
		struct writ_err no = { 0 };
		struct note_key old, next;

		if (note_key_parse(at->old_vkey, &old, &no) < 0 ||
		    note_key_parse(at->new_vkey, &next, &no) < 0 ||
		    !sv_eq(old.name, s->opt->origin) || !sv_eq(next.name, s->opt->origin) ||
		    (n && memcmp(&keys[n - 1].pub, &old.pub, sizeof(old.pub)) != 0)) {
			verify_failed(s->v, "log", "entry %llu does not go on from the key before",
				      (unsigned long long)at->index);
			return 0;
		}
		if (!check_rotation(s, at, &old, &next))
			return 0;
		if (n == 0)
			keys[n++] = old;
		keys[n++] = next;
	}
	for (size_t i = 0; n == 0 && i < s->opt->pins->logs_n; i++)
		if (sv_eq(s->opt->pins->log[i].key.name, s->opt->origin))
			keys[n++] = s->opt->pins->log[i].key;
	return n;
}

/*
 * SECURITY: fail if a pinned key is not among the keys of this log. The log is then an older copy
 * from before a rotation, or another history.
 */
static void check_pins(struct verify *s, const struct note_key *keys, size_t n)
{
	for (size_t i = 0; i < s->opt->pins->logs_n; i++) {
		const struct note_key *k = &s->opt->pins->log[i].key;
		bool known = !sv_eq(k->name, s->opt->origin);

		for (size_t j = 0; !known && j < n; j++)
			known = memcmp(&keys[j].pub, &k->pub, sizeof(k->pub)) == 0;
		if (!known)
			verify_failed(s->v, "log",
				      "it knows nothing of key %08x, which is pinned: it is an "
				      "older copy, or another log",
				      k->id);
	}
	for (size_t i = 0; i < n * s->opt->pins->logs_n; i++)
		s->v->pinned |= note_key_eq(&keys[i % n], &s->opt->pins->log[i / n].key);
}

/* Returns the key that must have signed a checkpoint of @size entries. */
static const struct note_key *key_at(const struct verify *s, const struct note_key *keys,
				     uint64_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < s->rotations.n; i++)
		n += s->rotations.v[i].index + 1 <= size;
	return &keys[n];
}

static void check_mark(struct verify *s, const struct verify_mark *m, const struct note_key *keys)
{
	struct verify_report *v = s->v;

	if (strncmp(m->file, "rotated/", 8) != 0 && !is_signed_by(m, key_at(s, keys, m->size)))
		verify_failed(v, m->file, "is not signed by the key of this log");
	if (m->size > s->tree.size && m->lost)
		verify_failed(
			v, m->file,
			"%llu entries that were signed before this machine was last started are "
			"gone: power was lost, or somebody has removed them",
			(unsigned long long)(m->size - s->tree.size));
	else if (m->size > s->tree.size)
		verify_failed(v, m->file, "%llu entries that were signed are gone",
			      (unsigned long long)(m->size - s->tree.size));
	else if (m->size > v->covered)
		v->covered = m->size;
	if (strcmp(m->file, "checkpoint") == 0)
		v->synced = m->size;
}

int verify_keys(struct verify *s, struct writ_err *err)
{
	struct note_key *keys =
		arena_array(s->v->a, struct note_key, s->rotations.n + 1 + TLOG_LOGS_MAX);
	size_t n;

	if (!keys)
		return writ_nomem(err);
	n = key_chain(s, keys, s->rotations.n + 1 + TLOG_LOGS_MAX);
	/* In a log without a rotation only one pinned key can have signed. Use the first. */
	if (n > 1 && s->rotations.n == 0)
		n = 1;
	check_pins(s, keys, n);
	s->v->keys = n;
	for (size_t i = 0; i < s->marks.n; i++)
		if (s->marks.v[i].size > s->claimed)
			s->claimed = s->marks.v[i].size;
	if (s->marks.n == 0 && s->tree.size)
		verify_failed(s->v, "latest", "nothing in this log is signed");
	if (n == 0) /* no key is pinned, or key_chain() reported a failure */
		return 0;
	for (size_t i = 0; i < s->marks.n; i++)
		check_mark(s, &s->marks.v[i], keys);
	return 0;
}
