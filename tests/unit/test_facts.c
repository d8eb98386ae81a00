#include "tap.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/fd.h"
#include "facts/facts.h"

static const char *src(void)
{
	const char *dir = getenv("SRC");

	return dir ? dir : ".";
}

/* Every member gets a value that is not zero and not its neighbour's. */
static void fill(struct host_facts *f)
{
	*f = (struct host_facts){ 0 };
	for (size_t i = 0; i < facts_count(); i++) {
		const struct fact *row = facts_at(i);
		char *at = (char *)f + row->offset;
		const uint64_t num = row->max > i ? i + 1 : row->max;
		const bool on = true;

		if (row->type == FACT_BOOL)
			memcpy(at, &on, sizeof(on));
		else if (row->type == FACT_TEXT)
			(void)snprintf(at, row->size, "text %zu", i);
		else
			memcpy(at, &num, sizeof(num));
	}
}

static bool same(const struct host_facts *a, const struct host_facts *b)
{
	for (size_t i = 0; i < facts_count(); i++) {
		const struct fact *row = facts_at(i);

		if (memcmp((const char *)a + row->offset, (const char *)b + row->offset, row->size))
			return false;
	}
	return true;
}

static void test_table(void)
{
	static bool covered[sizeof(struct host_facts)];
	bool unique = true, sized = true, twice = false;
	size_t gap = 0, worst = 0;

	for (size_t i = 0; i < facts_count(); i++) {
		const struct fact *row = facts_at(i);

		unique = unique && facts_find(sv_from(row->name)) == row;
		switch (row->type) {
		case FACT_BOOL:
			sized = sized && row->size == sizeof(bool);
			break;
		case FACT_NUM:
		case FACT_WORD:
			sized = sized && row->size == sizeof(uint64_t);
			break;
		case FACT_TEXT:
			sized = sized && row->size == FACT_STR;
			break;
		}
		for (size_t at = row->offset; at < row->offset + row->size; at++) {
			twice = twice || covered[at];
			covered[at] = true;
		}
	}
	for (size_t at = 0; at < sizeof(struct host_facts); at++) {
		gap = covered[at] ? 0 : gap + 1;
		if (gap > worst)
			worst = gap;
	}
	ok(unique, "names are unique");
	ok(sized, "sizes fit the types");
	ok(!twice, "no byte belongs to two rows");
	ok(worst < 8, "no member is missing from the table: the widest gap is %zu", worst);
	ok(!facts_at(facts_count()), "NULL past the end");
	ok(!facts_find(SV("no_such_fact")), "an unknown name is not found");
}

static void test_round_trip(void)
{
	struct host_facts f, g = { 0 };
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(1 << 16);
	scoped_buf again = BUF_INIT(1 << 16);

	fill(&f);
	facts_print(&f, &b);
	ok(facts_parse(buf_view(&b), &g, &err) == 0, "a full record parses (%s)", err.what);
	ok(same(&f, &g), "and gives every member back");
	facts_print(&g, &again);
	is_sv(buf_view(&again), buf_view(&b), "and prints the same");
	buf_clear(&b);
	f = (struct host_facts){ 0 };
	facts_print(&f, &b);
	ok(facts_parse(buf_view(&b), &g, &err) == 0 && same(&f, &g), "an empty record as well");
}

/* A record with the line of @name replaced by @line ("" removes it). */
static void edited(struct buf *b, const char *name, const char *line)
{
	struct host_facts f;
	scoped_buf all = BUF_INIT(1 << 16);
	struct sv rest;

	fill(&f);
	facts_print(&f, &all);
	for (rest = buf_view(&all); rest.n;) {
		const struct sv one = sv_cut(&rest, '\n');
		struct sv tail = one;

		if (!sv_is(sv_cut(&tail, ' '), name)) {
			buf_sv(b, one);
			buf_ch(b, '\n');
		} else if (line[0]) {
			buf_fmt(b, "%s\n", line);
		}
	}
}

static void refused(const char *name, const char *line, const char *want)
{
	scoped_buf b = BUF_INIT(1 << 16);
	struct host_facts f = { .uid = 77 };
	struct writ_err err = { 0 };
	int r;

	edited(&b, name, line);
	r = facts_parse(buf_view(&b), &f, &err);
	if (!ok(r < 0 && strstr(err.what, want) && f.uid == 77, "refused %s: %s", name, want))
		tap_note("got %d '%s' for '%s'", r, err.what, line);
}

static void test_refused(void)
{
	refused("root", "", "no value for root");
	refused("root", "root yes\nroot yes", "line 8: root again");
	refused("root", "toor yes", "line 7: unknown fact 'toor'");
	refused("root", "root 1", "line 7: bad value for root");
	refused("root", "root", "bad value for root");
	refused("root", "root yes ", "bad value for root");
	refused("root", " root yes", "unknown fact");
	refused("root", "root\tyes", "line 7: control character");
	refused("root", "root yes\r", "control character");
	refused("uid", "uid 4294967296", "bad value for uid");
	refused("uid", "uid -1", "bad value for uid");
	refused("uid", "uid 007", "bad value for uid");
	refused("yama", "yama 4", "bad value for yama");
	refused("cgroup", "cgroup v3", "bad value for cgroup");
	refused("cgroup", "cgroup 3", "bad value for cgroup");
	refused("where", "where moon", "bad value for where");
	refused("lsm", "lsm ", "bad value for lsm");
	refused("lsm", "lsm  x", "bad value for lsm");
	refused("lsm", "lsm a\"b", "bad value for lsm");
	refused("lsm", "lsm a\\b", "bad value for lsm");
	refused("lsm", "lsm caf\xc3\xa9", "bad value for lsm");
	refused("lsm", "lsm a\x1b[2J", "control character");
	refused("lsm", "lsm 0123456789012345678901234567890123456789012345678901234567890123",
		"bad value for lsm");
	refused("writ-facts", "", "expected 'writ-facts 1'");
	refused("writ-facts", "writ-facts 2", "line 1: expected 'writ-facts 1'");
}

static void test_shapes(void)
{
	scoped_buf b = BUF_INIT(1 << 17);
	struct host_facts f = { 0 };
	struct writ_err err = { 0 };

	edited(&b, "root", "# a comment\n\nroot no");
	ok(facts_parse(buf_view(&b), &f, &err) == 0 && !f.root, "comments are skipped");
	ok(facts_parse(sv_sub(buf_view(&b), 0, b.n - 1), &f, &err) < 0, "a cut line is refused");
	ok(facts_parse(SV(""), &f, &err) == WRIT_E_SYNTAX, "nothing is not a record");
	ok(facts_parse((struct sv){ "writ-facts 1\n\0\n", 15 }, &f, &err) < 0, "NUL is refused");
	buf_fill(&b, '\n', 1 << 16);
	ok(facts_parse(buf_view(&b), &f, &err) == WRIT_E_LIMIT, "a huge record is refused");
	buf_clear(&b);
	edited(&b, "lsm",
	       "lsm 012345678901234567890123456789012345678901234567890123456789012");
	ok(facts_parse(buf_view(&b), &f, &err) == 0 && strlen(f.lsm) == 63, "63 bytes just fit");
}

static void set_text(const char *from, const char *want)
{
	char text[FACT_STR];

	memset(text, 'z', sizeof(text));
	facts_set_text(text, sv_from(from));
	is_str(text, want, want);
}

static void test_set_text(void)
{
	set_text("  debian 12 ", "debian 12");
	set_text("a\nb\x1b\"\\\xc3", "a?b????");
	set_text("-", "");
	set_text("", "");
	set_text("0123456789012345678901234567890123456789012345678901234567890123456789",
		 "012345678901234567890123456789012345678901234567890123456789012");
}

static void test_json(void)
{
	struct host_facts f = { .where = WHERE_WSL2, .uid = 7, .ns_user = true };
	scoped_buf b = BUF_INIT(1 << 16);

	(void)snprintf(f.distro, sizeof(f.distro), "ubuntu 24.04");
	facts_json(&f, &b);
	ok(b.p && b.p[0] == '{' && b.p[b.n - 1] == '}', "an object");
	ok(strstr(b.p, "\"distro\":\"ubuntu 24.04\",\"uid\":7,\"root\":false,") &&
	   strstr(b.p, "\"where\":\"wsl2\",\"container\":\"\",") &&
	   strstr(b.p, "\"ns_user\":true,"), "strings, numbers, words and booleans");
}

static void test_docs(void)
{
	scoped_buf doc = BUF_INIT(1 << 18);
	scoped_buf path = BUF_INIT(4096);
	struct writ_err err = { 0 };

	buf_fmt(&path, "%s/docs/facts.md", src());
	if (!ok(fd_read_file(path.p, &doc, &err) == 0, "read docs/facts.md"))
		return;
	for (size_t i = 0; i < facts_count(); i++) {
		const struct fact *row = facts_at(i);
		char line[512];

		(void)snprintf(line, sizeof(line), "| `%s` | ", row->name);
		ok(strstr(doc.p, line) && strstr(doc.p, row->about),
		   "docs/facts.md has a row for %s: '%s'", row->name, row->about);
	}
}

/* A fixture is exactly what facts_print() writes, after lines that say where it is from. */
static void check_fixture(const char *dir, const char *name)
{
	scoped_buf path = BUF_INIT(4096);
	scoped_buf text = BUF_INIT(1 << 16);
	scoped_buf printed = BUF_INIT(1 << 16);
	struct writ_err err = { 0 };
	struct host_facts f;
	struct sv rest;

	buf_fmt(&path, "%s/%s", dir, name);
	if (fd_read_file(path.p, &text, &err) < 0 || facts_parse(buf_view(&text), &f, &err) < 0) {
		ok(false, "%s: %s", name, err.what);
		return;
	}
	rest = buf_view(&text);
	ok(sv_starts(rest, SV("# recorded")) || sv_starts(rest, SV("# edited from ")),
	   "%s says where it is from", name);
	while (rest.n && rest.p[0] == '#')
		(void)sv_cut(&rest, '\n');
	facts_print(&f, &printed);
	is_sv(rest, buf_view(&printed), name);
}

static void test_fixtures(void)
{
	scoped_buf dir = BUF_INIT(4096);
	struct dirent **names = NULL;
	int n, count = 0;

	buf_fmt(&dir, "%s/tests/fixtures/hosts", src());
	n = scandir(dir.p, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (sv_ends(sv_from(names[i]->d_name), SV(".facts"))) {
			check_fixture(dir.p, names[i]->d_name);
			count++;
		}
		free(names[i]);
	}
	free(names);
	ok(count >= 12, "%d recorded hosts", count);
}

int main(void)
{
	test_table();
	test_round_trip();
	test_refused();
	test_shapes();
	test_set_text();
	test_json();
	test_docs();
	test_fixtures();
	return tap_done();
}
