#include "attest/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/sv.h"

#include "base/banned.h"

const char *attest_boundary_name(enum boundary b)
{
	static const char *const names[BOUNDARIES] = {
		[BOUNDARY_FILESYSTEM] = "filesystem",	[BOUNDARY_NETWORK] = "network",
		[BOUNDARY_PROCESS] = "process",		[BOUNDARY_RESOURCES] = "resources",
		[BOUNDARY_CREDENTIALS] = "credentials",
	};

	return names[b];
}

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = { [VERDICT_UNKNOWN] = "unknown",
					     [VERDICT_HELD] = "held",
					     [VERDICT_VIOLATED] = "violated",
					     [VERDICT_NOT_ENFORCED] = "not enforced" };

	return names[v];
}

/* --- reading entries: assume nothing about their types --- */

static struct sv text_of(const json_t *entry, const char *key)
{
	const char *s = json_string_value(json_object_get(entry, key));

	return s ? sv_from(s) : SV("");
}

static bool boundary_of(const json_t *entry, enum boundary *ret)
{
	const struct sv name = text_of(entry, "boundary");

	for (int i = 0; i < BOUNDARIES; i++)
		if (sv_is(name, attest_boundary_name((enum boundary)i))) {
			*ret = (enum boundary)i;
			return true;
		}
	return false;
}

static bool is_one_of(struct sv word, const char *const *list)
{
	while (*list && !sv_is(word, *list))
		list++;
	return *list != NULL;
}

/* Splits a string into exactly @n words separated by single spaces. */
static bool cut_words(const json_t *value, struct sv *ret, size_t n)
{
	const char *s = json_string_value(value);
	struct sv rest = s ? sv_from(s) : SV("");

	for (size_t i = 0; i < n; i++) {
		const bool more = sv_find(rest, ' ') != SIZE_MAX;

		ret[i] = sv_cut(&rest, ' ');
		if (ret[i].n == 0 || more != (i + 1 < n))
			return false;
	}
	return true;
}

static uint64_t number_of(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) > 0
		       ? (uint64_t)json_integer_value(value)
		       : 0;
}

/* Appends the strings of a JSON list to the text @to for people: "res.disk, res.cpu". */
static void join(const json_t *list, char *to, size_t room)
{
	size_t n = strlen(to);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *s = json_string_value(json_array_get(list, i));
		const int k = snprintf(to + n, room - n, "%s%s", n ? ", " : "", s ? s : "?");

		if (k < 0 || (size_t)k >= room - n)
			break;
		n += (size_t)k;
	}
}

static void note_violation(struct judgement *j, enum boundary b, enum strength by, struct sv what)
{
	struct judge_seen *s = &j->seen[b];

	if (!s->violated) {
		j->of[b].entry = j->entries;
		snprintf(s->what, sizeof(s->what), SV_FMT, SV_ARG(sv_sub(what, 0, 40)));
	}
	if (!s->violated || by > s->by)
		s->by = by;
	s->violated = true;
}

/* --- event applied --- */

/*
 * Judges rows of the form "NAME WANTED FOUND". @counts: the session read the found values back from
 * the kernel; otherwise the values are only the session's claim.
 */
static void judge_rows(struct judgement *j, enum boundary b, const json_t *list, bool counts)
{
	struct judge_seen *s = &j->seen[b];

	for (size_t i = 0; i < json_array_size(list); i++) {
		struct sv word[3];

		if (!cut_words(json_array_get(list, i), word, 3) || sv_is(word[2], "?"))
			s->unread |= counts;
		else if (!sv_eq(word[1], word[2]))
			note_violation(j, b, STRENGTH_E1, word[0]);
		else
			s->read |= counts;
	}
}

static void judge_applied(struct judgement *j, const json_t *entry)
{
	const json_t *none = json_object_get(entry, "none");
	struct judge_seen *s;
	enum boundary b;

	if (!boundary_of(entry, &b))
		return;
	s = &j->seen[b];
	s->applied = true;
	s->late |= j->released || j->early;
	join(none, s->none, sizeof(s->none));
	/*
	 * Treat the boundary as not enforced if `none` is not a list or contains only empty names:
	 * such an entry does not show that no control is missing.
	 */
	if (s->none[0] == 0 && (!json_is_array(none) || json_array_size(none) ||
				sv_is(text_of(entry, "level"), "none")))
		snprintf(s->none, sizeof(s->none), "nothing said of it");
	join(json_object_get(entry, "partial"), s->partial, sizeof(s->partial));
	join(json_object_get(entry, "unasked"), s->unasked, sizeof(s->unasked));
	judge_rows(j, b, json_object_get(entry, "read_back"), true);
	judge_rows(j, b, json_object_get(entry, "said"), false);
}

/* --- event probed --- */

enum shown { SHOWN_NOTHING = 0, SHOWN_REFUSED, SHOWN_WORKS, SHOWN_OPEN };

/* Judges one probe, a row of the form "NAME EXPECTED GOT OUTSIDE". */
static enum shown judge_probe(const struct sv word[4])
{
	static const char *const refusals[] = {
		"EPERM",	   "EACCES",	      "ENOENT",	      "ENOSYS",
		"EROFS",	   "ESRCH",	      "ENOTDIR",      "ENXIO",
		"ECONNREFUSED",	   "ENETUNREACH",     "EHOSTUNREACH", "EAFNOSUPPORT",
		"EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "other",	      NULL,
	};
	/*
	 * Results which show that the kernel processed the arguments of a call, so that no filter
	 * had refused the call.
	 */
	static const char *const reached[] = { "ok", "EINVAL", "EFAULT", "EBADF", NULL };

	if (sv_is(word[1], "works"))
		return sv_is(word[2], "ok") && sv_is(word[3], "-") ? SHOWN_WORKS : SHOWN_NOTHING;
	if (!sv_is(word[1], "refused"))
		return SHOWN_NOTHING;
	if (is_one_of(word[2], reached) || sv_is(word[3], "touched"))
		return SHOWN_OPEN;
	if (!is_one_of(word[2], refusals) || !(sv_is(word[3], "-") || sv_is(word[3], "there")))
		return SHOWN_NOTHING;
	return SHOWN_REFUSED;
}

static void judge_probed(struct judgement *j, const json_t *entry)
{
	const json_t *list = json_object_get(entry, "probes");
	const json_t *known = json_object_get(entry, "known");
	const bool end = sv_is(text_of(entry, "phase"), "end");
	const bool start = sv_is(text_of(entry, "phase"), "start");
	uint64_t refused = 0, works = 0;
	bool vague = !json_is_array(list);
	struct judge_seen *s;
	enum boundary b;

	if (!boundary_of(entry, &b))
		return;
	s = &j->seen[b];
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct sv word[4] = { { 0 } };
		const enum shown shown = cut_words(json_array_get(list, i), word, 4)
						 ? judge_probe(word)
						 : SHOWN_NOTHING;

		refused += shown == SHOWN_REFUSED;
		works += shown == SHOWN_WORKS;
		if (shown == SHOWN_OPEN)
			note_violation(j, b, STRENGTH_E2, word[0]);
		if (shown == SHOWN_NOTHING && !vague && !s->violated)
			snprintf(s->what, sizeof(s->what), SV_FMT, SV_ARG(sv_sub(word[0], 0, 40)));
		vague |= shown == SHOWN_NOTHING;
	}
	/* A violation counts in any phase; the following checks need a known phase. */
	if (!start && !end)
		return;
	vague |= refused == 0 || works == 0;
	/* Start probes must run before the first program, end probes after it. */
	if (end ? !j->released : j->released || j->early)
		vague = true;
	if (!*(end ? &s->end : &s->start) || refused < s->refused[end])
		s->refused[end] = refused;
	*(end ? &s->end : &s->start) = true;
	*(end ? &s->end_vague : &s->start_vague) |= vague;
	if (number_of(known) > j->of[b].known)
		j->of[b].known = number_of(known);
}

/* --- other events --- */

static void count_denial(struct judgement *j, const json_t *entry)
{
	const struct sv op = text_of(entry, "op");
	const bool net = sv_is(op, "net") || sv_is(op, "listen") || sv_is(op, "git");
	const bool files = sv_is(op, "read") || sv_is(op, "write");

	j->of[net ? BOUNDARY_NETWORK : files ? BOUNDARY_FILESYSTEM : BOUNDARY_PROCESS].denials++;
}

static void count_net(struct judgement *j, const json_t *entry)
{
	const json_t *count = json_object_get(entry, "count");

	if (sv_is(text_of(entry, "answer"), "deny"))
		j->of[BOUNDARY_NETWORK].denials += number_of(count) ? number_of(count) : 1;
}

void judge_entry(struct judgement *j, const json_t *entry)
{
	const struct sv event = text_of(entry, "event");
	const json_t *entries = json_object_get(entry, "entries");
	const json_t *left_out = json_object_get(entry, "not_recorded");

	if (j->entries == 0)
		j->started = sv_is(event, "start");
	j->ended = sv_is(event, "end");
	j->counted = j->ended && json_is_integer(entries) &&
		     (uint64_t)json_integer_value(entries) == j->entries;
	/*
	 * Treat a count of dropped events that is not a number as one event: such a count does not
	 * show that no event was dropped.
	 */
	j->left_out = !j->ended || !left_out	  ? 0
		      : json_is_integer(left_out) ? number_of(left_out)
						  : 1;
	if (sv_is(event, "applied"))
		judge_applied(j, entry);
	else if (sv_is(event, "probed"))
		judge_probed(j, entry);
	else if (sv_is(event, "release"))
		j->released = true;
	else if (sv_is(event, "exec"))
		j->early |= !j->released;
	else if (sv_is(event, "denied"))
		count_denial(j, entry);
	else if (sv_is(event, "net"))
		count_net(j, entry);
	j->entries++;
}

/* Returns a description of the evidence about a boundary that is missing, or NULL. */
static const char *missing(const struct judgement *j, const struct judge_seen *s)
{
	if (!j->started)
		return "the log has no beginning";
	if (!j->ended)
		return "the log has no end";
	if (!j->counted)
		return "entries are missing";
	if (!s->applied)
		return j->released ? "nobody says what was applied" : "nothing ran";
	if (s->late || j->early)
		return "something ran before it was applied";
	return NULL;
}

static const char *unproven(const struct judgement *j, const struct judge_seen *s)
{
	if (!j->released)
		return "nothing ran";
	if (!s->start)
		return "not tried at the start";
	if (!s->end)
		return "not tried at the end";
	if (s->start_vague)
		return "tried at the start, without a result";
	if (s->end_vague)
		return "tried at the end, without a result";
	if (s->unread || !s->read)
		return "not read back";
	return NULL;
}

static void explain_held(const struct judgement *j, struct finding *f, const struct judge_seen *s)
{
	int n = snprintf(f->why, sizeof(f->why), "%llu of %llu probes, at start and end",
			 (unsigned long long)f->tried,
			 (unsigned long long)(f->known > f->tried ? f->known : f->tried));

	if (f->denials && n > 0 && (size_t)n < sizeof(f->why))
		n += snprintf(f->why + n, sizeof(f->why) - (size_t)n, ", %s%llu denial%s",
			      j->left_out ? "at least " : "", (unsigned long long)f->denials,
			      f->denials == 1 ? "" : "s");
	if (s->partial[0] && n > 0 && (size_t)n < sizeof(f->why))
		n += snprintf(f->why + n, sizeof(f->why) - (size_t)n, "; in part: %s", s->partial);
	if (s->unasked[0] && n > 0 && (size_t)n < sizeof(f->why))
		(void)snprintf(f->why + n, sizeof(f->why) - (size_t)n, "; no limit: %s",
			       s->unasked);
}

static void conclude(const struct judgement *j, const struct judge_seen *s, struct finding *f)
{
	const char *gap = missing(j, s), *more = unproven(j, s);

	f->verdict = VERDICT_UNKNOWN;
	f->strength = STRENGTH_E0;
	f->tried = s->refused[0] < s->refused[1] ? s->refused[0] : s->refused[1];
	/* Give a log with gaps no strength above E0. */
	if (!gap && s->read && !s->unread)
		f->strength = more ? STRENGTH_E1 : STRENGTH_E2;
	/*
	 * Report a violation even if the log has gaps: missing entries cannot refute the violation.
	 */
	if (s->violated) {
		f->verdict = VERDICT_VIOLATED;
		f->strength = s->by;
		snprintf(f->why, sizeof(f->why), "entry %llu: %s was open",
			 (unsigned long long)f->entry, s->what);
	} else if (gap) {
		snprintf(f->why, sizeof(f->why), "%s", gap);
	} else if (s->none[0]) {
		f->verdict = VERDICT_NOT_ENFORCED;
		snprintf(f->why, sizeof(f->why), "%s", s->none);
	} else if (more) {
		snprintf(f->why, sizeof(f->why), "%s%s%s", more, s->what[0] ? ": " : "", s->what);
	} else {
		f->verdict = VERDICT_HELD;
		explain_held(j, f, s);
	}
}

void judge_end(struct judgement *j)
{
	for (int i = 0; i < BOUNDARIES; i++)
		conclude(j, &j->seen[i], &j->of[i]);
}
