#include "tap.h"

#include "codec/json.h"
#include "conform/conform.h"

/* --- verdicts: the whole table --- */

/*
 * What stands where a row's two trials meet. Rows are bare, columns inside, each in
 * the order silent, held, escaped, skipped.
 *   -  n.a.
 *   e  ESCAPED, or gap if that was declared or the policy refused
 *   s  NOT RUN, or gap if the policy is refused
 *   h  held, or blocked if the control fails
 *   W  works   B  BROKEN
 */
static const char *const plain[SEEN_COUNT] = { "--e-", "--e-", "she-", "she-" };
static const char *const inherent[SEEN_COUNT] = { "she-", "she-", "she-", "she-" };
static const char *const positive[SEEN_COUNT] = { "----", "----", "BBWB", "----" };

static enum conform_verdict expected(const struct conform_case *c)
{
	const char *const *table = c->flags & ROW_POSITIVE   ? positive
				   : c->flags & ROW_INHERENT ? inherent
							     : plain;

	switch (table[c->bare][c->inside]) {
	case 'e':
		return c->declared || c->refused ? ROW_GAP : ROW_ESCAPED;
	case 's':
		return c->refused ? ROW_GAP : ROW_NOT_RUN;
	case 'h':
		return c->control == CONTROL_FAILS ? ROW_BLOCKED : ROW_HELD;
	case 'W':
		return ROW_WORKS;
	case 'B':
		return ROW_BROKEN;
	default:
		return ROW_NA;
	}
}

static bool verdicts_agree(unsigned flags, size_t *cases)
{
	for (unsigned i = 0; i < SEEN_COUNT * SEEN_COUNT * CONTROL_COUNT * 4; i++) {
		const struct conform_case c = {
			.flags = flags,
			.bare = (enum conform_seen)(i % SEEN_COUNT),
			.inside = (enum conform_seen)(i / SEEN_COUNT % SEEN_COUNT),
			.control =
				(enum conform_control)(i / SEEN_COUNT / SEEN_COUNT % CONTROL_COUNT),
			.declared = i / SEEN_COUNT / SEEN_COUNT / CONTROL_COUNT & 1,
			.refused = i / SEEN_COUNT / SEEN_COUNT / CONTROL_COUNT & 2,
		};

		++*cases;
		if (conform_judge(&c) != expected(&c)) {
			tap_note("flags %x bare %s inside %s control %d declared %d refused %d: %s",
				 flags, conform_seen_name(c.bare), conform_seen_name(c.inside),
				 (int)c.control, c.declared, c.refused,
				 conform_verdict_name(conform_judge(&c)));
			return false;
		}
	}
	return true;
}

static void test_verdicts(void)
{
	static const char passing[] = "held blocked gap n.a. works";
	size_t cases = 0;
	bool good = true;

	for (unsigned flags = 0; flags < ROW_FLAGS_END; flags++)
		good &= verdicts_agree(flags, &cases);
	ok(good && cases == (size_t)ROW_FLAGS_END * 192, "%zu cases have the verdict of the table",
	   cases);
	for (unsigned v = 0; v < ROW_COUNT; v++) {
		const char *name = conform_verdict_name((enum conform_verdict)v);

		ok(conform_passes((enum conform_verdict)v) == (strstr(passing, name) != NULL),
		   "%s %s", name, strstr(passing, name) ? "passes" : "fails");
	}
}

/* --- what is declared --- */

static void test_declared(void)
{
	static const struct {
		const char *text;
		int weak[3]; /* guarantees, -1: none; 99: refused as an error */
	} cases[] = {
		{ "", { -1, -1, -1 } },
		{ "fs.read=none", { G_FS_READ, -1, -1 } },
		{ "fs.read=none,ipc=partial", { G_FS_READ, G_IPC, -1 } },
		{ " fs.read = none , ipc = partial ", { G_FS_READ, G_IPC, -1 } },
		{ "fs.read=exact,ipc=stricter", { -1, -1, -1 } },
		{ "fs.read=none,fs.read=exact", { -1, -1, -1 } }, /* the last one counts */
		{ "res.pids=none,", { G_RES_PIDS, -1, -1 } },
		{ "fs.reed=none", { 99 } },
		{ "fs.read", { 99 } },
		{ "fs.read=", { 99 } },
		{ "fs.read=weak", { 99 } },
		{ "=none", { 99 } },
		{ ",", { 99 } },
		{ "fs.read=none=none", { 99 } },
		{ "fs.read=none ipc=none", { 99 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct conform_levels l = { 0 };
		struct writ_err err = { 0 };
		const int r = conform_read_declared(sv_from(cases[i].text), &l, &err);
		bool good = (r < 0) == (cases[i].weak[0] == 99);

		for (int g = 0; g < G_COUNT && r == 0; g++) {
			const bool want = g == cases[i].weak[0] || g == cases[i].weak[1] ||
					  g == cases[i].weak[2];
			good &= l.weak[g] == want;
		}
		ok(good && (r == 0 || err.what[0]), "declared \"%s\"", cases[i].text);
	}
}

static const char plan_text[] =
	"{\"version\":1,\"tier\":\"B\",\"refused\":1,\"guarantees\":{"
	"\"fs.read\":{\"level\":\"exact\"},\"ipc\":{\"level\":\"partial\"},"
	"\"res.memory\":{\"level\":\"none\"},\"net\":{\"level\":\"stricter\"}},"
	"\"gaps\":[{\"what\":\"sockets\",\"why\":\"x\"},{\"what\":\"bounding set\"}]}";

static void test_explain(void)
{
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"{}",
		"{\"refused\":0,\"guarantees\":{}}",
		"{\"refused\":0,\"gaps\":[]}",
		"{\"refused\":\"0\",\"gaps\":[],\"guarantees\":{}}",
		"{\"refused\":0,\"gaps\":{},\"guarantees\":{}}",
	};
	scoped_arena a = ARENA_INIT(1 << 20);
	struct conform_levels l = { 0 };
	struct conform_row row = { .guarantee = SV("fs.read"), .gap = SV("") };
	struct writ_err err = { 0 };

	ok(conform_read_explain(sv_from(plan_text), &a, &l, &err) == 0, "a plan is read");
	is_sv(l.tier, SV("B"), "its tier");
	ok(l.refused && l.weak[G_IPC] && l.weak[G_RES_MEMORY] && !l.weak[G_NET] &&
		   !l.weak[G_FS_READ] && !l.weak[G_EXEC],
	   "its levels; what it does not name is not declared");
	ok(!conform_declared(&l, &row), "a row whose guarantee holds");
	row.gap = SV("sockets");
	ok(conform_declared(&l, &row), "a row that a gap names");
	row.gap = SV("socket");
	ok(!conform_declared(&l, &row), "a gap of almost that name");
	row = (struct conform_row){ .guarantee = SV("ipc"), .gap = SV("") };
	ok(conform_declared(&l, &row), "a row whose guarantee does not hold");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(conform_read_explain(sv_from(bad[i]), &a, &l, &err) < 0, "no plan: \"%s\"",
		   bad[i]);
}

/* --- rows and trials --- */

#define ROW(id, flags)                                                                             \
	"{\"id\":\"" id "\",\"bound\":\"fs\",\"guarantee\":\"fs.write\",\"what\":\"w\","           \
	"\"judged\":\"outside\",\"control\":true,\"policy\":\"\",\"gap\":\"sockets\",\"flags\":"   \
	"[" flags "]}"

static void test_rows(void)
{
	static const char *const bad[] = {
		"{}",
		"[{}]",
		"[" ROW("A-1", "\"own\"") "," ROW("A-1", "") "]",
		"[" ROW("A-1", "\"unheard\"") "]",
		"[" ROW("A-1", "3") "]",
		"[" ROW("", "") "]",
		"[" ROW("a,b", "") "]",
		"[" ROW("a/b", "") "]",
		"[" ROW("..", "") "]",
		"[" ROW("-x", "") "]",
		"[" ROW("a b", "") "]",
		"[{\"id\":\"A-1\",\"bound\":\"fs\",\"guarantee\":\"fs.fly\",\"flags\":[]}]",
		"[{\"id\":\"A-1\",\"bound\":\"fs\",\"guarantee\":\"fs.read\"}]",
	};
	scoped_arena a = ARENA_INIT(1 << 20);
	struct conform_rows rows = { 0 };
	struct writ_err err = { 0 };

	ok(conform_read_rows(SV("[" ROW("A-1", "\"own\",\"timed\"") "," ROW("A-2", "") "]"), &a,
			     &rows, &err) == 0 &&
		   rows.rows.n == 2,
	   "rows are read");
	ok(rows.rows.n == 2 && rows.rows.v[0].flags == (ROW_OWN | ROW_TIMED) &&
		   rows.rows.v[1].flags == 0 && rows.rows.v[0].control && rows.rows.v[0].outside,
	   "and what they say of themselves");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(conform_read_rows(sv_from(bad[i]), &a, &rows, &err) < 0 && rows.rows.n == 2,
		   "refused: %.60s", bad[i]);
}

static void test_trials(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf kept = BUF_INIT(1 << 16);
	struct conform_rows rows = { 0 };
	struct conform_trial t[2] = { 0 }, again[2] = { 0 };
	struct writ_err err = { 0 };

	if (conform_read_rows(SV("[" ROW("A-1", "") "," ROW("A-2", "") "]"), &a, &rows, &err) < 0)
		return;
	conform_read_judged(
		SV("A-2\tESCAPED\tchanged: \"f\"\t0\nA-1\tHELD\t\t-13 no\nA-3\tHELD\t\t\n"
		   "A-1\tFLYING\tx\ty\nA-1\n\n"),
		&rows, t);
	ok(t[0].seen == SEEN_HELD && t[1].seen == SEEN_ESCAPED, "what was judged");
	is_str(t[1].why, "changed: \"f\"", "why");
	is_str(t[0].said, "-13 no", "its own words");
	conform_put_bare(&kept, &rows, t);
	ok(conform_read_bare(buf_view(&kept), &rows, again, &err) == 1 &&
		   memcmp(t, again, sizeof(t)) == 0,
	   "kept and read again it is the same");
	ok(conform_read_bare(SV("{\"A-1\":[\"HELD\",\"\",\"\"]}"), &rows, again, &err) == 0,
	   "a row is missing");
	ok(conform_read_bare(SV("{\"A-1\":[\"FELD\",\"\",\"\"]}"), &rows, again, &err) < 0 &&
		   conform_read_bare(SV("{\"A-1\":[\"HELD\",\"\"]}"), &rows, again, &err) < 0 &&
		   conform_read_bare(SV("{\"A-1\":[\"HELD\",1,\"\"]}"), &rows, again, &err) < 0 &&
		   conform_read_bare(SV("[]"), &rows, again, &err) < 0,
	   "files that keep something else");
}

/* --- words --- */

static void test_split(void)
{
	static const struct {
		const char *text, *words; /* with | behind each; NULL: an error */
	} cases[] = {
		{ "", "" },
		{ "  \t\n", "" },
		{ "a", "a|" },
		{ " a  b\tc ", "a|b|c|" },
		{ "'a b' c", "a b|c|" },
		{ "a'b'\"c\"d", "abcd|" },
		{ "'' \"\"", "||" },
		{ "a\\ b \\' \\\\", "a b|'|\\|" },
		{ "\"a\\\"b\" \"a\\nb\" '\\'", "a\"b|a\\nb|\\|" },
		{ "bwrap --bind {work} {work}", "bwrap|--bind|{work}|{work}|" },
		{ "a # b", "a|#|b|" },
		{ "a\\", "a\\|" },
		{ "'a", NULL },
		{ "a \"b", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scoped_arena a = ARENA_INIT(1 << 20);
		scoped_buf got = BUF_INIT(1 << 10);
		struct conform_words w = { 0 };
		struct writ_err err = { 0 };
		const int r = conform_split(sv_from(cases[i].text), &a, &w, &err);

		for (size_t k = 0; k < w.words.n; k++)
			buf_fmt(&got, "%s|", w.words.v[k]);
		if (cases[i].words)
			is_sv(buf_view(&got), sv_from(cases[i].words), cases[i].text);
		else
			ok(r < 0 && w.words.n == 0, "not closed: %s", cases[i].text);
	}
}

/* --- what is printed --- */

static void test_show(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf text = BUF_INIT(1 << 16), json = BUF_INIT(1 << 16);
	struct conform_report r = { .tested = "writ run", .tier = SV("A"), .user = SV("sam") };
	struct conform_rows rows = { 0 };
	struct writ_err err = { 0 };
	struct conform_result *slot;
	scoped_json *v = NULL;

	ok(!conform_report_passes(&r), "a report of nothing does not pass");
	if (conform_read_rows(SV("[" ROW("A-1", "") "]"), &a, &rows, &err) < 0)
		return;
	slot = vec_push(&a, &r.results);
	if (!slot)
		return;
	*slot = (struct conform_result){ .row = &rows.rows.v[0],
					 .verdict = ROW_ESCAPED,
					 .inside = { SEEN_ESCAPED, "out\033[2J", "\"0\"" } };
	conform_show(&r, false, &text);
	ok(strstr(text.p, "ESCAPED: got out\n  A-1     fs.write    w  [out.[2J]\n") != NULL,
	   "an escape is shown, and its reason does not steer the terminal");
	ok(strstr(text.p, "\ntested: writ run, tier A, as sam\n1 of 1 attempts") != NULL,
	   "what was tested");
	conform_json(&r, &json);
	ok(json_decode(buf_view(&json), 1 << 20, &v, &err) == 0 &&
		   json_is_false(json_object_get(v, "passed")) &&
		   json_array_size(json_object_get(v, "rows")) == 1,
	   "it is JSON");
	ok(!conform_report_passes(&r), "it does not pass");
	slot->verdict = ROW_HELD;
	ok(conform_report_passes(&r), "it passes");
}

int main(void)
{
	test_verdicts();
	test_declared();
	test_explain();
	test_rows();
	test_trials();
	test_split();
	test_show();
	return tap_done();
}
