/*
 * test_attest_judge.c - verdicts by the vectors, and what taking entries away does to them
 */
#include "tap.h"

#include "judged.h"
#include "vectors.h"

enum { ENTRIES_MAX = 64 };

static size_t entries_of(const json_t *test, json_t *ret[static ENTRIES_MAX])
{
	const json_t *list = json_object_get(test, "entries");
	size_t n = 0;

	while (n < json_array_size(list) && n < ENTRIES_MAX) {
		ret[n] = json_array_get(list, n);
		n++;
	}
	return n;
}

static void check(const char *name, const json_t *expect, const struct judgement *j)
{
	for (int i = 0; i < BOUNDARIES; i++) {
		const struct finding *f = &j->of[i];
		const char *boundary = attest_boundary_name((enum boundary)i);
		const json_t *want = json_object_get(expect, boundary);
		const char *verdict = json_string_value(json_object_get(want, "verdict"));
		const json_t *entry = json_object_get(want, "entry");

		if (!verdict || strcmp(verdict, verdict_name(f->verdict)) != 0 ||
		    (int)f->strength != json_integer_value(json_object_get(want, "strength")) ||
		    (entry && f->entry != (uint64_t)json_integer_value(entry)) || !f->why[0]) {
			ok(false, "%s: %s is %s E%d at %llu (%s), not %s", name, boundary,
			   verdict_name(f->verdict), (int)f->strength, (unsigned long long)f->entry,
			   f->why, verdict ? verdict : "?");
			return;
		}
	}
	ok(true, "%s: %s", name, j->of[0].why);
}

static void test_words(json_t *const *entries, size_t n)
{
	const struct judgement j = judged(entries, n, NULL);

	is_str(j.of[BOUNDARY_FILESYSTEM].why, "2 of 5 probes, at start and end, 1 denial",
	       "a finding says what it rests on");
	ok(j.of[BOUNDARY_FILESYSTEM].denials == 1 && j.started && j.ended && j.entries == n,
	   "denials are counted with their boundary");
}

/* Nothing in an entry has to have a form. */
static void test_odd(void)
{
	static const char *const odd[] = { "{}",
					   "[]",
					   "{\"event\":[]}",
					   "{\"event\":\"probed\"}",
					   "{\"event\":\"applied\",\"boundary\":\"network\"}",
					   "{\"event\":\"end\",\"entries\":-1}" };
	struct judgement j = { 0 };
	bool held = false;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *e = json_loads(odd[i], 0, NULL);

		judge_entry(&j, e);
		json_decref(e);
	}
	judge_end(&j);
	for (int i = 0; i < BOUNDARIES; i++)
		held |= j.of[i].verdict == VERDICT_HELD || !j.of[i].why[0];
	ok(!held, "entries without a form hold nothing");
}

int main(void)
{
	scoped_buf text = BUF_INIT(4 << 20);
	json_t *all, *entries[ENTRIES_MAX];
	size_t full = 0, fewer = 0;
	bool good = true;

	vector_read("attest/verdicts.json", &text);
	all = json_loadb(text.p, text.n, 0, NULL);
	ok(json_array_size(all) > 60, "%zu cases", json_array_size(all));
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *test = json_array_get(all, i);
		const char *name = json_string_value(json_object_get(test, "name"));
		const size_t n = entries_of(test, entries);
		const struct judgement j = judged(entries, n, NULL);

		check(name ? name : "?", json_object_get(test, "expect"), &j);
		if (j.left_out != (uint64_t)json_integer_value(json_object_get(test, "left_out")))
			ok(false, "%s: %llu events are left out", name ? name : "?",
			   (unsigned long long)j.left_out);
		full += j.left_out > 0 &&
			strstr(j.of[BOUNDARY_FILESYSTEM].why, "at least 1 denial");
		fewer += strncmp(j.of[BOUNDARY_FILESYSTEM].why, "1 of 5 probes", 13) == 0;
		good &= removals_hold(entries, n, i == 0 ? 5000 : 100);
		if (i == 0)
			test_words(entries, n);
	}
	ok(full == 3, "what was left out of a full record is said with the denials");
	ok(fewer == 1, "of probes at the start and at the end the fewer count");
	ok(good, "no entry that is taken away makes a finding better");
	test_odd();
	json_decref(all);
	return tap_done();
}
