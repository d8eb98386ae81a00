#include "facts/advisory.h"

#include <time.h>

#include "base/banned.h"

extern const unsigned char advisory_table[];
extern const size_t advisory_table_len;

enum { TEXT_MAX = 512 * 1024, RECORDS_MAX = 2000, LINE_MAX_LEN = 400, YEAR_FIRST = 1970 };

static const char *const severity_names[] = {
	[SEVERITY_CRITICAL] = "critical", [SEVERITY_HIGH] = "high",
	[SEVERITY_MEDIUM] = "medium", [SEVERITY_LOW] = "low",
};

/*
 * For each component, the fact that contains its version. A loose row names the version of a
 * different program, which only hints at the version of the component.
 */
static const struct {
	const char *component, *fact;
	bool loose;
} components[] = {
	{ "kernel", "kernel_base", false }, { "runc", "runc", false },
	{ "crun", "crun", false },	    { "gvisor", "runsc", false },
	{ "podman", "podman", false },	    { "docker", "docker", false },
	{ "containerd", "docker", true },   { "bubblewrap", "bwrap", false },
	{ "qemu", "qemu", false },	    { "firecracker", "firecracker", false },
	{ "wasmtime", "wasmtime", false },
};

struct sv advisory_builtin(void)
{
	return (struct sv){ (const char *)advisory_table, advisory_table_len };
}

/* ---- dates ---- */

/* Takes exactly @n digits off the front of *@s. */
static bool take_digits(struct sv *s, size_t n, uint32_t *ret_v)
{
	uint32_t v = 0;

	if (s->n < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return false;
		v = v * 10 + (uint32_t)(s->p[i] - '0');
	}
	*s = sv_skip(*s, n);
	*ret_v = v;
	return true;
}

static bool take_char(struct sv *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = sv_skip(*s, 1);
	return true;
}

bool advisory_day(struct sv date, uint32_t *ret_day)
{
	uint32_t y, m, d;
	struct tm tm = { 0 };
	time_t t;

	if (!take_digits(&date, 4, &y) || !take_char(&date, '-') || !take_digits(&date, 2, &m) ||
	    !take_char(&date, '-') || !take_digits(&date, 2, &d) || date.n || y < YEAR_FIRST)
		return false;
	tm.tm_year = (int)y - 1900;
	tm.tm_mon = (int)m - 1;
	tm.tm_mday = (int)d;
	t = timegm(&tm);
	/* timegm() turns a day that does not exist into another day. */
	if (tm.tm_mon != (int)m - 1 || tm.tm_mday != (int)d)
		return false;
	*ret_day = (uint32_t)(t / 86400);
	return true;
}

uint32_t advisory_age(const struct advisory_db *db, uint32_t today)
{
	return today > db->day ? today - db->day : 0;
}

/* ---- versions ---- */

static bool take_uint(struct sv *s, uint32_t *ret_v)
{
	size_t n = 0;

	while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
		n++;
	return n > 0 && n < 10 && take_digits(s, n, ret_v);
}

/* Takes a release candidate suffix off the front of *@s: "-rc.3", "~rc93" or "-rc7". */
static bool take_rc(struct sv *s, uint32_t *ret_rc)
{
	struct sv t = *s;

	if (!take_char(&t, '-'))
		(void)take_char(&t, '~');
	if (!sv_starts(t, SV("rc")))
		return false;
	t = sv_skip(t, 2);
	(void)take_char(&t, '.');
	if (!take_uint(&t, ret_rc))
		return false;
	*s = t;
	return true;
}

/* Takes a version off the front of *@s; the rest stays in *@s. */
static bool take_version(struct sv *s, struct advisory_version *ret_v)
{
	struct advisory_version v = { .rc = UINT32_MAX };

	for (size_t i = 0; i < ARRAY_LEN(v.n); i++) {
		if (!take_uint(s, &v.n[i]))
			return false;
		if (s->n < 2 || s->p[0] != '.' || s->p[1] < '0' || s->p[1] > '9')
			break;
		*s = sv_skip(*s, 1);
	}
	(void)take_rc(s, &v.rc);
	*ret_v = v;
	return true;
}

static int version_cmp(const struct advisory_version *a, const struct advisory_version *b)
{
	for (size_t i = 0; i < ARRAY_LEN(a->n); i++)
		if (a->n[i] != b->n[i])
			return a->n[i] < b->n[i] ? -1 : 1;
	return a->rc < b->rc ? -1 : a->rc > b->rc;
}

static bool same_series(const struct advisory_version *a, const struct advisory_version *b)
{
	return a->n[0] == b->n[0] && a->n[1] == b->n[1];
}

static bool affected(const struct advisory *adv, const struct advisory_version *v)
{
	if (version_cmp(v, &adv->since) < 0)
		return false;
	for (size_t i = 0; i < adv->fixed_n; i++)
		if (same_series(v, &adv->fixed[i]))
			return version_cmp(v, &adv->fixed[i]) < 0;
	return adv->fixed_n == 0 || version_cmp(v, &adv->fixed[adv->fixed_n - 1]) < 0;
}

/* ---- parsing ---- */

enum key {
	KEY_NONE = 0, KEY_COMPONENT, KEY_PRIMITIVE, KEY_SEVERITY, KEY_SINCE, KEY_FIXED,
	KEY_DISTRO, KEY_RANGE, KEY_CLOSES, KEY_TEXT, KEY_COUNT
};

static const char *const key_names[KEY_COUNT] = {
	[KEY_NONE] = "", [KEY_COMPONENT] = "component", [KEY_PRIMITIVE] = "primitive",
	[KEY_SEVERITY] = "severity", [KEY_SINCE] = "since", [KEY_FIXED] = "fixed",
	[KEY_DISTRO] = "distro", [KEY_RANGE] = "range", [KEY_CLOSES] = "closes",
	[KEY_TEXT] = "text",
};

static const unsigned needed = 1u << KEY_COMPONENT | 1u << KEY_PRIMITIVE | 1u << KEY_SEVERITY |
			       1u << KEY_FIXED | 1u << KEY_CLOSES | 1u << KEY_TEXT;

static enum key find_key(struct sv name)
{
	const size_t i = sv_index(name, key_names, KEY_COUNT);

	return i < KEY_COUNT ? (enum key)i : KEY_NONE;
}

/* Accepts up to 39 lower-case letters, digits, '-' and '_'. */
static bool is_word(struct sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return s.n > 0 && s.n < 40;
}

static bool set_primitives(struct advisory *adv, struct sv v)
{
	while (v.n) {
		const struct sv word = sv_cut(&v, ' ');

		if (!is_word(word) || adv->primitive_n == ADVISORY_PRIMITIVES_MAX)
			return false;
		adv->primitive[adv->primitive_n++] = word;
	}
	return adv->primitive_n > 0;
}

static bool set_severity(struct advisory *adv, struct sv v)
{
	const size_t i = sv_index(v, severity_names, ARRAY_LEN(severity_names));

	if (i < ARRAY_LEN(severity_names))
		adv->severity = (enum advisory_severity)i;
	return i < ARRAY_LEN(severity_names);
}

/*
 * Parses the fixed versions. They must be ascending, one per series (the first two numbers);
 * otherwise the verdict would depend on their order.
 */
static bool set_fixed(struct advisory *adv, struct sv v)
{
	if (sv_is(v, "none"))
		return true;
	while (v.n) {
		struct sv word = sv_cut(&v, ' ');
		struct advisory_version *f = &adv->fixed[adv->fixed_n];

		if (adv->fixed_n == ADVISORY_FIXED_MAX || !take_version(&word, f) || word.n)
			return false;
		if (adv->fixed_n && (version_cmp(f - 1, f) >= 0 || same_series(f - 1, f)))
			return false;
		adv->fixed_n++;
	}
	return adv->fixed_n > 0;
}

static bool set_word(struct sv *ret_w, struct sv v)
{
	*ret_w = v;
	return is_word(v);
}

static bool set_line(struct sv *ret_l, struct sv v)
{
	*ret_l = v;
	return v.n > 0 && sv_eq(v, sv_trim(v));
}

static bool set_key(struct advisory *adv, enum key key, struct sv v)
{
	switch (key) {
	case KEY_COMPONENT:
		return set_word(&adv->component, v);
	case KEY_PRIMITIVE:
		return set_primitives(adv, v);
	case KEY_SEVERITY:
		return set_severity(adv, v);
	case KEY_SINCE:
		return take_version(&v, &adv->since) && v.n == 0;
	case KEY_FIXED:
		return set_fixed(adv, v);
	case KEY_DISTRO:
		return set_word(&adv->distro, v);
	case KEY_RANGE:
		adv->uncertain = sv_is(v, "uncertain");
		return adv->uncertain;
	case KEY_CLOSES:
		return set_line(&adv->closes, v);
	case KEY_TEXT:
		return set_line(&adv->text, v);
	case KEY_NONE:
	case KEY_COUNT:
		break;
	}
	return false;
}

struct reading {
	struct arena *a;
	VEC(struct advisory) v;
	unsigned seen; /* bit mask of keys in the current record */
	bool headed, dated;
	struct sv date;
	uint32_t day;
};

/*
 * Checks that the current record is complete. Called before another record starts and at the end of
 * the text.
 */
must_check
static int end_record(const struct reading *r, size_t at, struct writ_err *err)
{
	if (r->v.n && (r->seen & needed) != needed)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "line %zu: record before it has no %s", at,
				 key_names[__builtin_ctz(needed & ~r->seen)]);
	return 0;
}

static bool is_id(struct sv s)
{
	return s.n > 0 && s.n < 64 && sv_is_graph(s);
}

must_check
static int begin_record(struct reading *r, struct sv id, size_t at, struct writ_err *err)
{
	struct advisory *adv;
	int ret = end_record(r, at, err);

	if (ret < 0)
		return ret;
	if (!is_id(id))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: bad id", at);
	for (size_t i = 0; i < r->v.n; i++)
		if (sv_eq(r->v.v[i].id, id))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: " SV_FMT " again", at,
					 SV_ARG(id));
	if (r->v.n == RECORDS_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "line %zu: too many records", at);
	adv = vec_push(r->a, &r->v);
	if (!adv)
		return writ_nomem(err);
	adv->id = id;
	adv->since.rc = 0;
	adv->distro = adv->component = adv->closes = adv->text = SV("");
	r->seen = 0;
	return 0;
}

must_check
static int read_head(struct reading *r, struct sv line, size_t at, struct writ_err *err)
{
	if (!r->headed) {
		if (!sv_is(line, "writ-advisories 1"))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "line %zu: expected 'writ-advisories 1'", at);
		r->headed = true;
		return 0;
	}
	if (!sv_is(sv_cut(&line, ' '), "date") || !advisory_day(line, &r->day))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: expected 'date YYYY-MM-DD'", at);
	r->date = line;
	r->dated = true;
	return 0;
}

must_check
static int read_line(struct reading *r, struct sv line, size_t at, struct writ_err *err)
{
	struct sv value = line;
	const struct sv name = sv_cut(&value, ' ');
	enum key key;

	if (!r->dated)
		return read_head(r, line, at, err);
	if (sv_is(name, "id"))
		return begin_record(r, value, at, err);
	key = find_key(name);
	if (key == KEY_NONE || r->v.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: unexpected '" SV_FMT "'", at,
				 SV_ARG(sv_sub(name, 0, 30)));
	if (r->seen & 1u << key)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: %s again", at, key_names[key]);
	if (!set_key(&r->v.v[r->v.n - 1], key, value))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: bad %s: '" SV_FMT "'", at,
				 key_names[key], SV_ARG(sv_sub(value, 0, 40)));
	r->seen |= 1u << key;
	return 0;
}

/* SECURITY: writ prints the texts of the table on a terminal, so accept printable ASCII only. */
static bool line_ok(struct sv line)
{
	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] < 0x20 || line.p[i] > 0x7e)
			return false;
	return line.n <= LINE_MAX_LEN;
}

int advisory_parse(struct sv text, struct arena *a, struct advisory_db *ret_db,
		   struct writ_err *err)
{
	struct reading r = { .a = a };
	size_t at = 1;
	int ret;

	if (text.n > TEXT_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than %d bytes", (int)TEXT_MAX);
	for (; text.n; at++) {
		const struct sv line = sv_cut(&text, '\n');

		if (!line_ok(line))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "line %zu: too long or not printable ASCII", at);
		if (line.n == 0 || line.p[0] == '#')
			continue;
		ret = read_line(&r, line, at, err);
		if (ret < 0)
			return ret;
	}
	if (!r.dated)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "no 'writ-advisories 1' and date");
	ret = end_record(&r, at, err);
	if (ret < 0)
		return ret;
	*ret_db = (struct advisory_db){ .day = r.day, .date = r.date, .v = r.v.v, .n = r.v.n };
	return 0;
}

/* ---- verdicts ---- */

/* Recognises the kernel of a distribution, which may contain backported fixes: "6.1.0-18-amd64",
 * "5.14.0-427.el9", "6.12.115+deb12". */
static bool vendor_kernel(struct sv release)
{
	struct advisory_version v;

	if (!take_version(&release, &v) || release.n < 2)
		return false;
	return (release.p[0] == '-' && release.p[1] >= '0' && release.p[1] <= '9') ||
	       release.p[0] == '+';
}

static struct sv fact_text(const struct host_facts *f, const char *name)
{
	const struct fact *row = facts_find(sv_from(name));

	return row && row->type == FACT_TEXT ? facts_text(f, row) : SV("");
}

static bool other_distro(const struct advisory *adv, const struct host_facts *f)
{
	struct sv distro = fact_text(f, "distro");

	return adv->distro.n && !sv_eq(sv_cut(&distro, ' '), adv->distro);
}

static enum advisory_verdict judge(const struct advisory *adv, const struct host_facts *f,
				   struct sv version, bool loose)
{
	const bool kernel = sv_is(adv->component, "kernel");
	struct advisory_version v;
	struct sv rest;
	bool vendor;

	if (kernel && version.n == 0)
		version = fact_text(f, "kernel");
	if (version.n == 0)
		return ADVISORY_CLEAR; /* the component is not installed */
	rest = version;
	if (loose || !take_version(&rest, &v))
		return ADVISORY_MAYBE;
	if (!affected(adv, &v))
		return ADVISORY_CLEAR;
	/* A plus sign marks a packaged version such as "1.1.5+ds1", which may contain the fix. */
	vendor = kernel ? vendor_kernel(fact_text(f, "kernel")) :
			  sv_find(version, '+') != SIZE_MAX;
	return adv->uncertain || vendor ? ADVISORY_MAYBE : ADVISORY_OPEN;
}

enum advisory_verdict advisory_verdict(const struct advisory *adv, const struct host_facts *f)
{
	if (other_distro(adv, f))
		return ADVISORY_CLEAR;
	for (size_t i = 0; i < ARRAY_LEN(components); i++)
		if (sv_is(adv->component, components[i].component))
			return judge(adv, f, fact_text(f, components[i].fact),
				     components[i].loose);
	return ADVISORY_MAYBE; /* the version of this component is not among the facts */
}

size_t advisory_next(const struct advisory_db *db, const struct host_facts *f, size_t from,
		     enum advisory_verdict *ret_v)
{
	for (size_t i = from; i < db->n; i++) {
		const enum advisory_verdict v = advisory_verdict(&db->v[i], f);

		if (v != ADVISORY_CLEAR) {
			*ret_v = v;
			return i;
		}
	}
	return db->n;
}

static bool touches(const struct advisory *adv, struct sv primitive)
{
	for (size_t i = 0; i < adv->primitive_n; i++)
		if (sv_eq(adv->primitive[i], primitive))
			return true;
	return false;
}

enum advisory_verdict advisory_primitive_open(const struct advisory_db *db,
					      const struct host_facts *f, struct sv primitive,
					      const struct advisory **ret_why)
{
	enum advisory_verdict worst = ADVISORY_CLEAR;

	*ret_why = NULL;
	for (size_t i = 0; i < db->n && worst != ADVISORY_OPEN; i++) {
		enum advisory_verdict v;

		if (!touches(&db->v[i], primitive))
			continue;
		v = advisory_verdict(&db->v[i], f);
		if (v < worst) {
			worst = v;
			*ret_why = &db->v[i];
		}
	}
	return worst;
}

int advisory_check(struct sv text, struct sv installed, uint32_t today, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(8 * 1024 * 1024);
	struct advisory_db mine, theirs, old;
	struct writ_err ignored;
	int r;

	r = advisory_parse(text, &a, &theirs, err);
	if (r == 0)
		r = advisory_parse(advisory_builtin(), &a, &mine, err);
	if (r < 0)
		return r;
	if (theirs.day <= mine.day)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "dated " SV_FMT ", not after the built-in " SV_FMT,
				 SV_ARG(theirs.date), SV_ARG(mine.date));
	/*
	 * Refuse a date in the future: a table with such a date would block every genuine table
	 * until then.
	 */
	if (theirs.day > today)
		return writ_fail(err, WRIT_E_DENIED, 0, "dated " SV_FMT ", which is in the future",
				 SV_ARG(theirs.date));
	/* Ignore an installed table that does not parse, so that the new table can replace it. */
	if (installed.n && advisory_parse(installed, &a, &old, &ignored) == 0 &&
	    theirs.day <= old.day)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "dated " SV_FMT ", not after the installed " SV_FMT,
				 SV_ARG(theirs.date), SV_ARG(old.date));
	return 0;
}
