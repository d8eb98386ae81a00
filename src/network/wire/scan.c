#include "wire/scan.h"

#include <stdlib.h>

#include "wire/wire_priv.h"

#include "base/banned.h"

enum {
	HEAD = SCAN_VALUE_MIN, /* number of leading bytes of a pattern that index @slots */
	GRAM = 3,	       /* number of bytes that index @shift */
	SPAN_MAX = 24,	       /* most leading bytes of a pattern that @shift covers */
	SHIFT_BITS = 14,
	FORMS_MAX = 14,
};

struct pattern {
	struct sv bytes;
	uint32_t id;
	enum scan_form form;
};

/*
 * A set of patterns for a variant of the Wu-Manber search. @v holds the patterns, sorted, without
 * duplicates. @span is the length of the shortest pattern, at most SPAN_MAX. @shift maps the last
 * three of the next @span bytes to the distance to the nearest position where a pattern could
 * begin; 0 means that a pattern may begin at the current position. @slots is a hash table from
 * eight bytes to the first pattern that begins with these eight bytes.
 */
struct scan_set {
	struct pattern *v;
	size_t n, span, longest, slots_mask;
	uint16_t *slots; /* hash table of indexes into @v, plus 1; 0: empty slot */
	uint8_t shift[1 << SHIFT_BITS];
};

/* --- Encodings of a value. --- */

struct builder {
	struct arena *a;
	struct scan_set *set;
	const struct scan_value *value;
};

static void pattern_add(struct builder *b, enum scan_form form, const char *p, size_t n)
{
	b->set->v[b->set->n++] =
		(struct pattern){ .bytes = { p, n }, .id = b->value->id, .form = form };
}

static bool add_raw(struct builder *b)
{
	struct sv copy;

	if (!arena_sv(b->a, b->value->bytes, &copy))
		return false;
	pattern_add(b, SCAN_RAW, copy.p, copy.n);
	return true;
}

/* Returns the sextet at @bit of a text that consists of @skip unknown bytes and @s. */
static unsigned sextet(struct sv s, size_t skip, size_t bit)
{
	unsigned v = 0;

	for (size_t i = bit; i < bit + 6; i++)
		v = v << 1 | ((unsigned char)s.p[i / 8 - skip] >> (7 - i % 8) & 1);
	return v;
}

/*
 * Adds the base64 digits that depend only on the value. The value may start at any offset (@skip)
 * in a group of three bytes, and the digits at the ends of the value then also depend on the
 * neighbouring bytes.
 */
static bool add_base64(struct builder *b, enum scan_form form, size_t skip)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	const size_t first = (skip * 8 + 5) / 6, end = (skip + b->value->bytes.n) * 8 / 6;
	char *p = arena_array(b->a, char, end - first);

	if (!p)
		return false;
	for (size_t i = first; i < end; i++) {
		const unsigned v = sextet(b->value->bytes, skip, i * 6);
		const bool url = form == SCAN_BASE64URL;

		p[i - first] = v < 62 ? digits[v] : v == 62 ? (url ? '-' : '+') : (url ? '_' : '/');
	}
	pattern_add(b, form, p, end - first);
	return true;
}

static size_t put_hex(char *to, unsigned char c, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";

	to[0] = digits[c >> 4];
	to[1] = digits[c & 15];
	return 2;
}

static bool add_hex(struct builder *b, bool upper)
{
	const struct sv s = b->value->bytes;
	char *p = arena_array(b->a, char, 2 * s.n);

	if (!p)
		return false;
	for (size_t i = 0; i < s.n; i++)
		(void)put_hex(p + 2 * i, (unsigned char)s.p[i], upper);
	pattern_add(b, SCAN_HEX, p, 2 * s.n);
	return true;
}

static bool add_percent(struct builder *b, bool upper, bool every)
{
	const struct sv s = b->value->bytes;
	char *p = arena_array(b->a, char, 3 * s.n);
	size_t n = 0;

	if (!p)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!every && is_unreserved(s.p[i])) {
			p[n++] = s.p[i];
			continue;
		}
		p[n++] = '%';
		n += put_hex(p + n, (unsigned char)s.p[i], upper);
	}
	pattern_add(b, SCAN_PERCENT, p, n);
	return true;
}

static bool add_json(struct builder *b)
{
	const struct sv s = b->value->bytes;
	char *p = arena_array(b->a, char, 2 * s.n);
	size_t n = 0;

	if (!p)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (memchr("/\"\\", s.p[i], 3))
			p[n++] = '\\';
		p[n++] = s.p[i];
	}
	pattern_add(b, SCAN_JSON, p, n);
	return true;
}

static bool add_forms(struct builder *b)
{
	for (size_t skip = 0; skip < 3; skip++)
		if (!add_base64(b, SCAN_BASE64, skip) || !add_base64(b, SCAN_BASE64URL, skip))
			return false;
	for (int upper = 0; upper < 2; upper++)
		if (!add_hex(b, upper) || !add_percent(b, upper, false) ||
		    !add_percent(b, upper, true))
			return false;
	return add_raw(b) && add_json(b);
}

/* --- The set. --- */

/*
 * Compares two patterns by their bytes. Among patterns with equal bytes, the plainest encoding and
 * the smallest id come first; patterns_sort() keeps only the first of them.
 */
static int pattern_order(const void *x, const void *y)
{
	const struct pattern *a = x, *b = y;
	const int d = sv_cmp(a->bytes, b->bytes);

	if (d)
		return d;
	if (a->form != b->form)
		return a->form < b->form ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static void patterns_sort(struct scan_set *set)
{
	size_t n = 0;

	qsort(set->v, set->n, sizeof(set->v[0]), pattern_order);
	for (size_t i = 0; i < set->n; i++)
		if (n == 0 || !sv_eq(set->v[n - 1].bytes, set->v[i].bytes))
			set->v[n++] = set->v[i];
	set->n = n;
}

static uint32_t gram_hash(const char *p)
{
	uint16_t two;

	memcpy(&two, p, sizeof(two));
	return ((two | (uint32_t)(unsigned char)p[2] << 16) * UINT32_C(0x9e3779b1)) >>
	       (32 - SHIFT_BITS);
}

static void lengths_fill(struct scan_set *set)
{
	set->span = SPAN_MAX;
	for (size_t i = 0; i < set->n; i++) {
		const size_t n = set->v[i].bytes.n;

		set->span = n < set->span ? n : set->span;
		set->longest = n > set->longest ? n : set->longest;
	}
}

static void shifts_fill(struct scan_set *set)
{
	const size_t most = set->span - GRAM;

	memset(set->shift, (int)most + 1, sizeof(set->shift));
	for (size_t i = 0; i < set->n; i++) {
		for (size_t at = 0; at <= most; at++) {
			uint8_t *shift = &set->shift[gram_hash(set->v[i].bytes.p + at)];

			if (*shift > most - at)
				*shift = (uint8_t)(most - at);
		}
	}
}

static size_t head_hash(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return (size_t)((v * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

static bool same_head(const char *a, const char *b)
{
	return memcmp(a, b, HEAD) == 0;
}

static bool slots_fill(struct arena *a, struct scan_set *set)
{
	size_t slots = 64;

	while (slots < 4 * set->n)
		slots *= 2;
	set->slots = arena_array(a, uint16_t, slots);
	if (!set->slots)
		return false;
	set->slots_mask = slots - 1;
	for (size_t i = 0; i < set->n; i++) {
		size_t slot = head_hash(set->v[i].bytes.p) & set->slots_mask;

		if (i && same_head(set->v[i].bytes.p, set->v[i - 1].bytes.p))
			continue;
		while (set->slots[slot])
			slot = (slot + 1) & set->slots_mask;
		set->slots[slot] = (uint16_t)(i + 1);
	}
	return true;
}

static bool is_size_ok(const struct scan_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i].bytes.n < SCAN_VALUE_MIN || values[i].bytes.n > SCAN_VALUE_MAX)
			return false;
	return n <= SCAN_VALUES_MAX;
}

int scan_set_new(struct arena *a, const struct scan_value *values, size_t n,
		 const struct scan_set **ret_set, struct writ_err *err)
{
	struct scan_set *set = arena_new(a, struct scan_set);

	if (!is_size_ok(values, n))
		return writ_fail_lit(err, WRIT_E_LIMIT, 0,
				     "value that is too short or too long to be looked for");
	if (!set)
		return writ_nomem(err);
	set->v = arena_array(a, struct pattern, n * FORMS_MAX + 1);
	if (!set->v)
		return writ_nomem(err);
	for (size_t i = 0; i < n; i++)
		if (!add_forms(&(struct builder){ a, set, &values[i] }))
			return writ_nomem(err);
	patterns_sort(set);
	lengths_fill(set);
	shifts_fill(set);
	if (!slots_fill(a, set))
		return writ_nomem(err);
	*ret_set = set;
	return 0;
}

size_t scan_room_min(const struct scan_set *set)
{
	return 2 * (set->longest > SPAN_MAX ? set->longest : SPAN_MAX);
}

/* --- Search. --- */

struct found {
	size_t at;		    /* no pattern begins before this offset */
	const struct pattern *what; /* the pattern at @at; NULL: none, or undecided */
	bool pending;		    /* the bytes at @at may become a pattern */
};

/*
 * Compares the text at @p, of which @n >= HEAD bytes have arrived, with all patterns. Returns the
 * longest pattern that is complete, and whether a longer one may follow.
 */
static struct found look_at(const struct scan_set *set, const char *p, size_t n)
{
	size_t slot = head_hash(p) & set->slots_mask;
	struct found f = { 0 };

	while (set->slots[slot] && !same_head(set->v[set->slots[slot] - 1].bytes.p, p))
		slot = (slot + 1) & set->slots_mask;
	if (set->slots[slot] == 0)
		return f;
	for (size_t i = set->slots[slot] - (size_t)1; i < set->n; i++) {
		const struct sv v = set->v[i].bytes;

		if (!same_head(v.p, p))
			break;
		if (memcmp(v.p, p, v.n < n ? v.n : n) != 0)
			continue;
		if (v.n > n)
			f.pending = true;
		else
			/* the patterns are sorted, so a longer match comes later */
			f.what = &set->v[i];
	}
	return f;
}

/*
 * Returns the index of the first pattern that sorts at or after @s. All patterns with the prefix @s
 * begin at this index.
 */
static size_t first_from(const struct scan_set *set, struct sv s)
{
	size_t lo = 0, hi = set->n;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (sv_cmp(set->v[mid].bytes, s) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Tests whether a pattern begins with @s, which is shorter than every pattern. */
static bool is_beginning(const struct scan_set *set, struct sv s)
{
	const size_t i = first_from(set, s);

	return i < set->n && sv_starts(set->v[i].bytes, s);
}

static struct found look(const struct scan_set *set, struct sv text, bool last)
{
	const size_t span = set->span;
	size_t i = 0;

	while (i + span <= text.n) {
		const uint8_t shift = set->shift[gram_hash(text.p + i + span - GRAM)];
		struct found f;

		if (shift) {
			i += shift;
			continue;
		}
		f = look_at(set, text.p + i, text.n - i);
		f.at = i;
		f.pending = f.pending && !last;
		if (f.pending || f.what)
			return f;
		i++;
	}
	for (; !last && i < text.n; i++)
		if (is_beginning(set, sv_skip(text, i)))
			return (struct found){ .at = i, .pending = true };
	return (struct found){ .at = text.n };
}

void scan_init(struct scan *s, const struct scan_set *set, void *window, size_t room)
{
	*s = (struct scan){ .set = set, .window = window, .room = room };
}

/* Moves the undecided bytes to the front of the window and appends bytes of *@in. */
static void refill(struct scan *s, struct sv *in)
{
	size_t n;

	s->n -= s->at;
	memmove(s->window, s->window + s->at, s->n);
	s->at = 0;
	n = in->n < s->room - s->n ? in->n : s->room - s->n;
	memcpy(s->window + s->n, in->p, n);
	s->n += n;
	*in = sv_skip(*in, n);
}

enum scan_state scan_next(struct scan *s, struct sv *in, bool last, struct scan_out *ret_out)
{
	for (;;) {
		const struct sv text = { s->window + s->at, s->n - s->at };
		const struct found f = look(s->set, text, last && in->n == 0);

		if (f.at) {
			*ret_out = (struct scan_out){ .bytes = sv_sub(text, 0, f.at) };
			s->at += f.at;
			return SCAN_CLEAN;
		}
		if (f.what && !f.pending) {
			*ret_out = (struct scan_out){ .bytes = sv_sub(text, 0, f.what->bytes.n),
						      .id = f.what->id,
						      .form = f.what->form };
			s->at += f.what->bytes.n;
			return SCAN_HIT;
		}
		if (in->n == 0)
			return SCAN_MORE;
		refill(s, in);
	}
}

unsigned scan_held(const struct scan *s)
{
	const struct sv held = { s->window + s->at, s->n - s->at };
	size_t most = 0;

	for (size_t i = first_from(s->set, held);
	     held.n && i < s->set->n && sv_starts(s->set->v[i].bytes, held); i++) {
		const size_t part = held.n * 1000 / s->set->v[i].bytes.n;

		most = part > most ? part : most;
	}
	return (unsigned)most;
}
