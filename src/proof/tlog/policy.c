#include "tlog/policy.h"

#include <string.h>

#include "base/banned.h"

/* Parser state: which witnesses and groups of the tlog policy are already members of a group. */
struct parse {
	struct tlog_policy *p;
	uint32_t used_witnesses, used_groups;
};

/* Takes the next word off *@line; returns an empty view at the end of the line. */
static struct sv next_word(struct sv *line)
{
	size_t n = 0;
	struct sv word;

	*line = sv_trim(*line);
	while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t')
		n++;
	word = sv_sub(*line, 0, n);
	*line = sv_trim(sv_skip(*line, n));
	return word;
}

static size_t find_witness(const struct tlog_policy *p, struct sv name)
{
	for (size_t i = 0; i < p->witnesses_n; i++)
		if (sv_eq(p->witness[i].name, name))
			return i;
	return SIZE_MAX;
}

static size_t find_group(const struct tlog_policy *p, struct sv name)
{
	for (size_t i = 0; i < p->groups_n; i++)
		if (sv_eq(p->group[i].name, name))
			return i;
	return SIZE_MAX;
}

bool tlog_policy_has_name(const struct tlog_policy *p, struct sv name)
{
	return find_witness(p, name) != SIZE_MAX || find_group(p, name) != SIZE_MAX;
}

static int check_new_name(const struct tlog_policy *p, struct sv name, struct writ_err *err)
{
	if (name.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a name is missing");
	if (sv_is(name, "none"))
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "none is not a name for a witness or group");
	if (tlog_policy_has_name(p, name))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "two witnesses or groups of one name");
	return 0;
}

static bool same_key(const struct note_key *a, const struct note_key *b)
{
	return memcmp(a->pub.b, b->pub.b, sizeof(a->pub.b)) == 0;
}

static int parse_log(struct parse *s, struct sv line, struct writ_err *err)
{
	struct tlog_policy *p = s->p;
	const struct sv vkey = next_word(&line), url = next_word(&line);
	struct note_key key;
	const int r = note_key_parse(vkey, &key, err);

	if (r < 0)
		return r;
	if (line.n)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "log takes a key and perhaps a URL");
	if (p->logs_n == TLOG_LOGS_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than 32 logs");
	if (key.type != NOTE_KEY_ED25519)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the key of a log must be of type Ed25519");
	for (size_t i = 0; i < p->logs_n; i++)
		if (same_key(&p->log[i].key, &key))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "two logs with one key");
	p->log[p->logs_n++] = (struct tlog_log){ .key = key, .url = url };
	return 0;
}

static int parse_witness(struct parse *s, struct sv line, struct writ_err *err)
{
	struct tlog_policy *p = s->p;
	const struct sv name = next_word(&line), vkey = next_word(&line), url = next_word(&line);
	struct note_key key;
	int r;

	if ((r = check_new_name(p, name, err)) < 0 || (r = note_key_parse(vkey, &key, err)) < 0)
		return r;
	if (line.n)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "witness takes a name, a key and perhaps a URL");
	if (p->witnesses_n == TLOG_WITNESSES_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than 32 witnesses");
	if (key.type != NOTE_KEY_COSIGNATURE)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "the key of a witness must be of type cosignature");
	/*
	 * SECURITY: refuse a witness key under a second name: the key would count twice towards the
	 * quorum.
	 */
	for (size_t i = 0; i < p->witnesses_n; i++)
		if (same_key(&p->witness[i].key, &key))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "two witnesses with one key");
	p->witness[p->witnesses_n++] =
		(struct tlog_witness){ .name = name, .key = key, .url = url };
	return 0;
}

/*
 * Adds the witness or group called @name to the group @g.
 * SECURITY: each witness or group may be a member of only one group, so that no witness counts
 * twice.
 */
static int add_member(struct parse *s, struct sv name, struct tlog_group *g, struct writ_err *err)
{
	const size_t w = find_witness(s->p, name), at = find_group(s->p, name);
	uint32_t *used = w != SIZE_MAX ? &s->used_witnesses : &s->used_groups;
	uint32_t *members = w != SIZE_MAX ? &g->witnesses : &g->groups;
	uint32_t bit;

	if (w == SIZE_MAX && at == SIZE_MAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a member of a group is not defined above");
	bit = (uint32_t)1 << (w != SIZE_MAX ? w : at);
	if (*used & bit)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a witness or group is a member twice");
	*used |= bit;
	*members |= bit;
	return 0;
}

static int parse_group(struct parse *s, struct sv line, struct writ_err *err)
{
	const struct sv name = next_word(&line), threshold = next_word(&line);
	struct tlog_group g = { .name = name };
	uint64_t k = 1, n = 0;
	int r = check_new_name(s->p, name, err);

	if (r < 0)
		return r;
	if (s->p->groups_n == TLOG_GROUPS_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than 32 groups");
	for (; line.n; n++) {
		r = add_member(s, next_word(&line), &g, err);
		if (r < 0)
			return r;
	}
	if (n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a group without members");
	if (sv_is(threshold, "all"))
		k = n;
	else if (!sv_is(threshold, "any") && (!sv_to_u64(threshold, n, &k) || k == 0))
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "a group needs all, any, or a number up to that of its members");
	g.k = (uint32_t)k;
	s->p->group[s->p->groups_n++] = g;
	return 0;
}

static int parse_quorum(struct parse *s, struct sv line, struct writ_err *err)
{
	const struct sv name = next_word(&line);
	const size_t w = find_witness(s->p, name), g = find_group(s->p, name);

	if (s->p->quorum != TLOG_QUORUM_UNSET)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "two lines of quorum");
	if (line.n)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "quorum takes one name");
	if (sv_is(name, "none")) {
		s->p->quorum = TLOG_QUORUM_NONE;
	} else if (w != SIZE_MAX) {
		s->p->quorum = TLOG_QUORUM_WITNESS;
		s->p->quorum_at = (uint32_t)w;
	} else if (g != SIZE_MAX) {
		s->p->quorum = TLOG_QUORUM_GROUP;
		s->p->quorum_at = (uint32_t)g;
	} else {
		return writ_fail(err, WRIT_E_SYNTAX, 0, "quorum names what is not defined above");
	}
	return 0;
}

static int parse_line(struct parse *s, struct sv line, struct writ_err *err)
{
	static const struct {
		struct sv word;
		int (*parse)(struct parse *s, struct sv line, struct writ_err *err);
	} lines[] = {
		{ SV_INIT("log"), parse_log },
		{ SV_INIT("witness"), parse_witness },
		{ SV_INIT("group"), parse_group },
		{ SV_INIT("quorum"), parse_quorum },
	};
	const struct sv word = next_word(&line);

	if (word.n == 0 || word.p[0] == '#')
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (sv_eq(word, lines[i].word))
			return lines[i].parse(s, line, err);
	return writ_fail(err, WRIT_E_SYNTAX, 0, "a line is not log, witness, group or quorum");
}

static int check_bytes(struct sv text, struct writ_err *err)
{
	if (text.n > TLOG_POLICY_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a policy of more than 64 KiB");
	if (text.n && !sv_ends(text, SV("\n")))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the last line has no newline");
	for (size_t i = 0; i < text.n; i++) {
		const uint8_t c = (uint8_t)text.p[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a control character in a policy");
	}
	return 0;
}

int tlog_policy_parse(struct sv text, struct tlog_policy *ret_p, struct writ_err *err)
{
	struct tlog_policy p = { 0 };
	struct parse s = { .p = &p };
	int r = check_bytes(text, err);

	while (r == 0 && text.n)
		r = parse_line(&s, sv_cut(&text, '\n'), err);
	if (r < 0)
		return r;
	if (p.quorum == TLOG_QUORUM_UNSET)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a policy without a quorum");
	*ret_p = p;
	return 0;
}

bool tlog_policy_met(const struct tlog_policy *p, uint32_t cosigned)
{
	uint32_t met = 0;

	/*
	 * A group can contain only groups defined above the group, so one pass in order is enough.
	 */
	for (size_t i = 0; i < p->groups_n; i++) {
		const struct tlog_group *g = &p->group[i];
		const int n = __builtin_popcount(g->witnesses & cosigned) +
			      __builtin_popcount(g->groups & met);

		if (g->k > 0 && (uint32_t)n >= g->k)
			met |= (uint32_t)1 << i;
	}
	switch (p->quorum) {
	case TLOG_QUORUM_UNSET:
		return false;
	case TLOG_QUORUM_NONE:
		return true;
	case TLOG_QUORUM_WITNESS:
		return cosigned >> p->quorum_at & 1;
	case TLOG_QUORUM_GROUP:
		return met >> p->quorum_at & 1;
	}
	return false;
}
