#include "audit/entry.h"
#include "cli/cli.h"
#include "codec/json.h"
#include "parts/session.h"

#include "base/banned.h"

/* The verb net: shows the network activity of a session from its record. */

static uint64_t number_of(const json_t *o, const char *key)
{
	const json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

/* Parses @line; returns NULL if the line is not a network event. */
static json_t *net_event_of(struct sv line)
{
	struct writ_err ignored = { 0 };
	json_t *o = NULL;

	if (!sv_is(entry_event(line), "net") || json_decode(line, 1 << 20, &o, &ignored) < 0)
		return NULL;
	return o;
}

static void put_size(struct buf *b, uint64_t n)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	size_t u = 0;

	while (n >= 10240 && u + 1 < ARRAY_LEN(units)) {
		n /= 1024;
		u++;
	}
	buf_fmt(b, "%llu%s", (unsigned long long)n, units[u]);
}

/* --- tail --- */

static bool tail_line(void *ctx, struct sv line)
{
	const struct args *a = ctx;
	scoped_arena room = ARENA_INIT(1 << 20);
	scoped_json *o = net_event_of(line);
	struct buf b = BUF_INIT(65536);
	struct sv what;

	if (!o)
		return true;
	if (a->given[OPT_JSON]) {
		buf_sv(&b, line);
		return cli_out(&b, 0) == 0;
	}
	what = entry_text(o, "what", &room);
	buf_fmt(&b, "%-6s%-10s", entry_text(o, "answer", &room).p, what.p);
	diag_put_safe(&b, entry_text(o, "host", &room));
	if (number_of(o, "port"))
		buf_fmt(&b, ":%llu", (unsigned long long)number_of(o, "port"));
	if (entry_text(o, "method", &room).n) {
		buf_fmt(&b, "  " SV_FMT " ", SV_ARG(entry_text(o, "method", &room)));
		diag_put_safe(&b, entry_text(o, "path", &room));
		buf_fmt(&b, " %llu", (unsigned long long)number_of(o, "status"));
	}
	if (entry_text(o, "address", &room).n)
		buf_fmt(&b, "  " SV_FMT, SV_ARG(entry_text(o, "address", &room)));
	if (sv_is(what, "closed") || sv_is(what, "request")) {
		buf_str(&b, "  up ");
		put_size(&b, number_of(o, "up"));
		buf_str(&b, " down ");
		put_size(&b, number_of(o, "down"));
	}
	if (number_of(o, "count"))
		buf_fmt(&b, "  %llu times", (unsigned long long)number_of(o, "count"));
	if (entry_text(o, "why", &room).n) {
		buf_str(&b, "  ");
		diag_put_safe(&b, entry_text(o, "why", &room));
	}
	buf_ch(&b, '\n');
	return cli_out(&b, 0) == 0;
}

/* --- summary --- */

struct peer {
	struct sv host;
	uint64_t port, connections, requests, denied, up, down;
};

struct summary {
	struct arena *a;
	VEC(struct peer) peers;
};

static struct peer *peer_of(struct summary *s, struct sv host, uint64_t port)
{
	struct peer *p;

	for (size_t i = 0; i < s->peers.n; i++)
		if (s->peers.v[i].port == port && sv_eq(s->peers.v[i].host, host))
			return &s->peers.v[i];
	p = vec_push(s->a, &s->peers);
	if (!p)
		return NULL;
	*p = (struct peer){ .port = port };
	return arena_sv(s->a, host, &p->host) ? p : NULL;
}

static bool summary_line(void *ctx, struct sv line)
{
	scoped_arena room = ARENA_INIT(1 << 20);
	scoped_json *o = net_event_of(line);
	struct peer *p;
	struct sv what, answer;

	if (!o)
		return true;
	p = peer_of(ctx, entry_text(o, "host", &room), number_of(o, "port"));
	if (!p)
		return false;
	what = entry_text(o, "what", &room);
	answer = entry_text(o, "answer", &room);
	/* An entry can stand for many denials of one name; its member "count" has their number. */
	if (sv_is(answer, "deny"))
		p->denied += number_of(o, "count") ? number_of(o, "count") : 1;
	p->connections += sv_is(what, "connect") && sv_is(answer, "allow");
	p->requests += sv_is(what, "request") && sv_is(answer, "allow");
	if (sv_is(what, "closed") || sv_is(what, "request")) {
		p->up += number_of(o, "up");
		p->down += number_of(o, "down");
	}
	return true;
}

static void put_summary(const struct summary *s, bool json, struct buf *b)
{
	if (json)
		buf_ch(b, '[');
	else if (s->peers.n)
		buf_fmt(b, "%-11s %-9s %-7s %-8s %-8s %s\n", "CONNECTIONS", "REQUESTS", "DENIED",
			"UP", "DOWN", "HOST");
	for (size_t i = 0; i < s->peers.n; i++) {
		const struct peer *p = &s->peers.v[i];
		scoped_buf up = BUF_INIT(32), down = BUF_INIT(32);

		if (json) {
			buf_fmt(b, "%s{\"host\":", i ? "," : "");
			json_put_str(b, p->host);
			buf_fmt(b,
				",\"port\":%llu,\"connections\":%llu,\"requests\":%llu,"
				"\"denied\":%llu,\"up\":%llu,\"down\":%llu}",
				(unsigned long long)p->port, (unsigned long long)p->connections,
				(unsigned long long)p->requests, (unsigned long long)p->denied,
				(unsigned long long)p->up, (unsigned long long)p->down);
			continue;
		}
		put_size(&up, p->up);
		put_size(&down, p->down);
		buf_fmt(b, "%-11llu %-9llu %-7llu %-8s %-8s ", (unsigned long long)p->connections,
			(unsigned long long)p->requests, (unsigned long long)p->denied, up.p,
			down.p);
		diag_put_safe(b, p->host);
		if (p->port)
			buf_fmt(b, ":%llu", (unsigned long long)p->port);
		buf_ch(b, '\n');

	}
	if (json)
		buf_str(b, "]\n");
}

int cmd_net(struct args *a)
{
	const struct sv what = sv_from(a->operands.n ? a->operands.v[0] : "");
	struct summary s = { .a = a->arena };
	struct find_where w;
	struct writ_err err = { 0 };
	struct buf b = BUF_INIT(OUT_MAX);
	int r;

	if (a->operands.n != 2 || (!sv_is(what, "tail") && !sv_is(what, "summary")))
		return cli_end(EXIT_FAILED, "as in: writ net summary 7f3a, or writ net tail 7f3a");
	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	if (sv_is(what, "tail")) {
		r = session_lines(w.state, sv_from(a->operands.v[1]), true, tail_line, a, &err);
		return r < 0 ? cli_fail(&err, NULL) : EXIT_DONE;
	}
	r = session_lines(w.state, sv_from(a->operands.v[1]), false, summary_line, &s, &err);
	if (r < 0)
		return cli_fail(&err, NULL);
	put_summary(&s, a->given[OPT_JSON], &b);
	if (s.peers.n == 0 && !a->given[OPT_JSON])
		cli_note("that session did nothing on the network");
	return cli_out(&b, EXIT_DONE);
}
