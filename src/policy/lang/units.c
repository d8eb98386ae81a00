#include "lang/lower_priv.h"

#include "base/banned.h"

/* 2^53 - 1, the largest integer that every JSON parser preserves */
#define VALUE_MAX UINT64_C(9007199254740991)

bool lang_size_parse(struct sv s, uint64_t *ret_bytes)
{
	static const struct {
		char unit;
		unsigned shift;
	} units[] = { { 'K', 10 }, { 'M', 20 }, { 'G', 30 }, { 'T', 40 } };
	unsigned shift = 0;
	uint64_t v;

	for (size_t i = 0; s.n && i < ARRAY_LEN(units); i++)
		if (s.p[s.n - 1] == units[i].unit) {
			shift = units[i].shift;
			s.n--;
			break;
		}
	if (!sv_to_u64(s, VALUE_MAX >> shift, &v) || v == 0)
		return false;
	*ret_bytes = v << shift;
	return true;
}

bool policy_duration(struct sv s, uint64_t *ret_seconds)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = { { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
	uint64_t total = 0;

	if (s.n == 0)
		return false;
	/* Accept each unit at most once, larger units first: 1h30m. */
	for (size_t i = 0; i < ARRAY_LEN(units) && s.n; i++) {
		const size_t end = sv_find(s, units[i].unit);
		uint64_t v;

		if (end == SIZE_MAX)
			continue;
		if (!sv_to_u64(sv_sub(s, 0, end), 36500 * UINT64_C(86400), &v))
			return false;
		total += v * units[i].seconds;
		s = sv_skip(s, end + 1);
	}
	if (s.n || total == 0 || total > VALUE_MAX)
		return false;
	*ret_seconds = total;
	return true;
}

/* Parses a CPU limit such as "2", "1.5" or "150%" into thousandths of a core. */
static bool cpu_parse(struct sv s, uint64_t *ret_milli)
{
	uint64_t whole, part = 0;
	struct sv frac = s;
	struct sv head;

	if (sv_ends(s, SV("%"))) {
		if (!sv_to_u64(sv_sub(s, 0, s.n - 1), 1000000, &whole) || whole == 0)
			return false;
		*ret_milli = whole * 10;
		return true;
	}
	head = sv_cut(&frac, '.');
	if (!sv_to_u64(head, 10000, &whole))
		return false;
	if (head.n != s.n) {
		if (frac.n == 0 || frac.n > 3)
			return false;
		for (size_t i = 0; i < 3; i++) {
			const char c = i < frac.n ? frac.p[i] : '0';

			if (c < '0' || c > '9')
				return false;
			part = part * 10 + (uint64_t)(c - '0');
		}
	}
	if (whole == 0 && part == 0)
		return false;
	*ret_milli = whole * 1000 + part;
	return true;
}

enum unit { UNIT_COUNT = 0, UNIT_BYTES, UNIT_SECONDS, UNIT_CPU };

/* clang-format off */
static const struct {
	enum unit unit;
	const char *example;
} limit_units[LIMIT_COUNT] = {
	[LIMIT_COMMAND]  = { UNIT_SECONDS, "limit command 10m" },
	[LIMIT_CPU]      = { UNIT_CPU,     "limit cpu 1.5 (cores) or limit cpu 150%" },
	[LIMIT_DISK]     = { UNIT_BYTES,   "limit disk 5G" },
	[LIMIT_DOWN]     = { UNIT_BYTES,   "limit down 100M" },
	[LIMIT_FILES]    = { UNIT_COUNT,   "limit files 1024" },
	[LIMIT_IDLE]     = { UNIT_SECONDS, "limit idle 15m" },
	[LIMIT_MEMORY]   = { UNIT_BYTES,   "limit memory 2G" },
	[LIMIT_OUTPUT]   = { UNIT_BYTES,   "limit output 10M" },
	[LIMIT_PIDS]     = { UNIT_COUNT,   "limit pids 256" },
	[LIMIT_REQUESTS] = { UNIT_COUNT,   "limit requests 1000" },
	[LIMIT_SESSION]  = { UNIT_SECONDS, "limit session 2h" },
	[LIMIT_UP]       = { UNIT_BYTES,   "limit up 10M" },
};
static const char *const limit_words[] = {
	"memory", "cpu", "pids", "disk", "files", "command", "time", "session", "idle", "output",
	"up", "down", "requests", NULL,
};
/* clang-format on */

static bool limit_value(enum unit unit, struct sv s, uint64_t *ret)
{
	switch (unit) {
	case UNIT_COUNT:
		return sv_to_u64(s, VALUE_MAX, ret) && *ret > 0;
	case UNIT_BYTES:
		return lang_size_parse(s, ret);
	case UNIT_SECONDS:
		return policy_duration(s, ret);
	case UNIT_CPU:
		return cpu_parse(s, ret);
	}
	return false;
}

bool lower_limit(struct lower *l, const struct stmt *s)
{
	const struct word *key = &s->w[1];
	enum cap_limit limit;
	uint64_t v;

	if (sv_is(key->text, "time")) {
		limit = LIMIT_COMMAND;
	} else if (!cap_limit_parse(key->text, &limit)) {
		return diag_add(l->d, DIAG_ERROR, lang_word_place(s, key),
				diag_suggest(l->a, key->text, limit_words,
					     "memory cpu pids disk files command session idle "
					     "output up down requests"),
				"unknown limit \"" SV_FMT "\"", SV_ARG(key->text));
	}
	if (!limit_value(limit_units[limit].unit, s->w[2].text, &v))
		return lang_error(l->d, s, &s->w[2],
				  arena_fmt(l->a, "for example: %s", limit_units[limit].example),
				  "\"" SV_FMT "\" is not a limit for %s", SV_ARG(s->w[2].text),
				  cap_limit_name(limit));
	/*
	 * If several files set the same limit, the smallest value applies, in any order of the
	 * files.
	 */
	if (l->set->limits[limit] == 0 || v < l->set->limits[limit]) {
		l->set->limits[limit] = v;
		l->set->limit_rule[limit] = l->rule;
	}
	return true;
}
