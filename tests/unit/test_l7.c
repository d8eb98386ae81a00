/*
 * test_l7 - what writ-l7 is told, what it puts in place of secrets, and how bytes wait
 */
#include <stdlib.h>

#include "codec/json.h"
#include "l7/fifo.h"
#include "l7/placeholder.h"
#include "l7/settings.h"
#include "tap.h"

#define ID "00112233445566778899aabbccddeeff"

static struct cap_entry *add(struct arena *a, struct cap_set *s, enum cap_kind kind,
			     const char *text)
{
	struct cap_entry *e = kind == CAP_DENIAL ? vec_push(a, &s->nots) : vec_push(a, &s->caps);
	struct writ_err err;

	if (!e || cap_parse(a, kind, sv_from(text), &e->cap, &err) < 0) {
		printf("Bail out! %s\n", text);
		exit(1);
	}
	e->rule = 0;
	return e;
}

static void fill(struct arena *a, struct l7_settings *s)
{
	struct cap_rule *r;
	struct l7_secret *secret;

	*s = (struct l7_settings){ .realm = SV("local"), .session = SV("7f3a"), .id = SV(ID) };
	s->set.net_level = NET_LEVEL_SIGNED;
	s->set.limits[LIMIT_UP] = 5000;
	r = vec_push(a, &s->set.rules);
	secret = vec_push(a, &s->secrets);
	if (!r || !secret)
		exit(1);
	*r = (struct cap_rule){ .text = SV("net https://a.test/\"quoted\"") };
	*secret = (struct l7_secret){ SV("TOKEN"), SV("header:x-key"), SV("https://a.test:443/**"),
				      SV("v\xe4lue\"\\12") };
	add(a, &s->set, CAP_GRANT, "http.request:local:https://a.test:443/v1/**;m=GET;n=3;q=any");
	add(a, &s->set, CAP_GRANT, "fs.read:local:/etc/**");
	add(a, &s->set, CAP_GRANT, "net.connect:local:tcp/b.test:22");
	add(a, &s->set, CAP_DENIAL, "http.request:local:https://a.test:443/v1/x");
}

static void test_round_trip(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf first = BUF_INIT(1 << 16);
	scoped_buf second = BUF_INIT(1 << 16);
	struct l7_settings s, t;
	struct writ_err err = { 0 };

	fill(&a, &s);
	ok(l7_settings_encode(&s, &first, &err) == 0, "settings are encoded");
	ok(l7_settings_decode(&a, buf_view(&first), &t, &err) == 0, "and decoded: %s", err.what);
	ok(t.set.caps.n == 2 && t.set.nots.n == 1, "only what has to do with the network");
	is_sv(t.set.caps.v[0].cap.text, s.set.caps.v[0].cap.text, "a capability");
	ok(t.set.caps.v[0].cap.n == 3 && t.set.caps.v[0].rule == 0, "with its price and rule");
	is_sv(t.set.rules.v[0].text, s.set.rules.v[0].text, "a rule's text");
	ok(t.set.net_level == NET_LEVEL_SIGNED && t.set.limits[LIMIT_UP] == 5000,
	   "level and limits");
	is_sv(t.secrets.v[0].value, s.secrets.v[0].value, "a value, byte for byte");
	is_sv(t.secrets.v[0].as, SV("header:x-key"), "its form");
	is_sv(t.realm, SV("local"), "the realm");
	ok(l7_settings_encode(&t, &second, &err) == 0 && sv_eq(buf_view(&first), buf_view(&second)),
	   "encoding again gives the same bytes");
}

/* @from of the encoded settings replaced by @to is refused. */
static void refuse(const char *name, const char *from, const char *to)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(1 << 16);
	scoped_buf changed = BUF_INIT(1 << 16);
	struct l7_settings s, t = { .realm = SV("untouched") };
	struct writ_err err = { 0 };
	const char *at;

	fill(&a, &s);
	if (l7_settings_encode(&s, &b, &err) < 0 || !(at = strstr(b.p, from))) {
		ok(false, "%s: %s is there", name, from);
		return;
	}
	buf_add(&changed, b.p, (size_t)(at - b.p));
	buf_str(&changed, to);
	buf_str(&changed, at + strlen(from));
	ok(l7_settings_decode(&a, buf_view(&changed), &t, &err) < 0 && sv_is(t.realm, "untouched"),
	   "%s: refused (%s)", name, err.what);
}

static void test_refused(void)
{
	refuse("a value with a line break", "76e46c7565", "76e46c0d0a");
	refuse("a value with NUL", "76e46c7565", "76e46c0065");
	refuse("a value that is too short", "76e46c7565225c3132", "76e46c75");
	refuse("half a byte", "76e46c7565", "76e46c756");
	refuse("no hexadecimal", "76e46c7565", "76e46c75zz");
	refuse("an id of another form", ID, "short");
	refuse("an id with capital letters", ID, "00112233445566778899AABBCCDDEEFF");
	refuse("a secret for plain HTTP", "\"to\":\"https://a.test:443/**\"",
	       "\"to\":\"http://a.test:80/**\"");
	refuse("a secret the agent holds", "header:x-key", "env");
	refuse("a form that is none", "header:x-key", "header:");
	refuse("a capability of another kind", "net.connect:local:tcp/b.test:22",
	       "fs.read:local:/etc/**");
	refuse("a capability that is none", "net.connect:local:tcp/b.test:22", "net.connect:");
	refuse("a rule that is not there", "\"rule\":0", "\"rule\":7");
	refuse("rules out of order", "\"n\":0", "\"n\":1");
	refuse("a negative limit", "\"up\":5000", "\"up\":-1");
	refuse("an unknown level", "\"level\":2", "\"level\":9");
	refuse("no session", "\"session\"", "\"other\"");
	refuse("no JSON", "{", "[");
}

static void test_placeholder(void)
{
	scoped_buf b = BUF_INIT(PLACEHOLDER_MAX);

	placeholder_put(&b, SV("GITHUB_TOKEN"), SV(ID));
	is_sv(buf_view(&b), SV("writ-placeholder-GITHUB_TOKEN-" ID), "a placeholder");
	ok(placeholder_id_check(SV(ID)) && !placeholder_id_check(SV("")), "its id has 32 digits");
}

/* Against a plain copy of everything that was added. */
static void test_fifo(void)
{
	enum { SIZE = 1 << 20, MAX = 5000 };
	struct fifo f = FIFO_INIT(MAX);
	char *all = malloc(SIZE);
	size_t in = 0, out = 0;
	unsigned seed = 7;
	bool same = true;

	if (!all)
		exit(1);
	for (size_t i = 0; i < SIZE; i++)
		all[i] = (char)(i * 31 + i / 251);
	while (in < SIZE) {
		size_t n;
		struct sv v;

		seed = seed * 1103515245 + 12345;
		n = seed / 65536 % 3000;
		n = n < SIZE - in ? n : SIZE - in;
		if (fifo_add(&f, (struct sv){ all + in, n }))
			in += n;
		else
			same = same && n > fifo_left(&f);
		v = fifo_view(&f);
		same = same && v.n == in - out && memcmp(v.p, all + out, v.n) == 0 && v.n <= MAX;
		n = v.n ? seed / 7 % (v.n + 1) : 0;
		f.wipe = seed & 1;
		fifo_drop(&f, n);
		out += n;
	}
	ok(same, "bytes come out as they went in, and never more than the maximum");
	fifo_drop(&f, f.n);
	ok(fifo_view(&f).n == 0 && fifo_left(&f) == MAX, "and it is empty in the end");
	fifo_clear(&f);
	free(all);
}

int main(void)
{
	test_round_trip();
	test_refused();
	test_placeholder();
	test_fifo();
	return tap_done();
}
