#include "l7/l7_priv.h"

#include "base/banned.h"

/* Copies text and replaces bytes that are not printable ASCII by '?': a person may see the text. */
void l7_copy_safe(char *to, size_t room, struct sv from)
{
	const size_t n = from.n < room ? from.n : room - 1;

	for (size_t i = 0; i < n; i++)
		to[i] = (char)(from.p[i] >= 0x20 && from.p[i] < 0x7f ? from.p[i] : '?');
	to[n] = 0;
}

struct cap_why l7_why(enum cap_cause cause, const char *detail)
{
	struct cap_why w = cap_why(cause, NULL);

	l7_copy_safe(w.detail, sizeof(w.detail), sv_from(detail));
	return w;
}

static bool send_message(struct l7 *l, struct egress_message *m)
{
	if (l->offline)
		return true;
	/* SECURITY: stop the reader if it cannot send an event; nothing may happen unrecorded. */
	if (egress_send(l->supervisor, m, NULL, 0) == 1)
		return true;
	l->stop = true;
	return false;
}

static bool send_event(struct l7 *l, enum egress_type type, uint32_t id,
		       const struct egress_event *e)
{
	struct egress_message m = { .type = type, .id = id, .text_n = sizeof(*e) };

	_Static_assert(sizeof(*e) <= EGRESS_TEXT, "an event is one message");
	memcpy(m.text, e, sizeof(*e));
	return send_message(l, &m);
}

/*
 * Tests for a request that a rule allowed but that the reader then refused or stopped, because of a
 * placeholder, a secret in the response, or a limit that is used up.
 */
static bool was_stopped(const struct call *c)
{
	return c->why.cause != CAUSE_NONE &&
	       (c->status == 403 || c->why.cause == CAUSE_SECRET_FOUND ||
		c->why.cause == CAUSE_SECRET_GUESSED);
}

static struct egress_event about(const struct call *c)
{
	const struct client *k = c->client;
	struct egress_event e = { .what = EGRESS_REQUEST,
				  .answer = c->charged && !was_stopped(c) ? CAP_ALLOW : CAP_DENY,
				  .rule = c->verdict.rule,
				  .flow = k->flow,
				  .status = c->status,
				  .port = c->port,
				  .way = REACH_READ,
				  .proxy = k->proxy,
				  .reason = (uint8_t)c->verdict.reason,
				  .why = c->why,
				  .up = c->log.bytes_up,
				  .down = c->log.bytes_down,
				  .asked_us = c->log.asked_us,
				  .dialled_us = c->log.dialled_us,
				  .lasted_us = c->l7->now_us - c->start_us };
	const struct sv path = c->target.path.n ? c->target.path : c->q.target;

	l7_copy_safe(e.host, sizeof(e.host), c->host);
	l7_copy_safe(e.address, sizeof(e.address), sv_from(c->address));
	l7_copy_safe(e.method, sizeof(e.method), c->q.method);
	if (path.n)
		l7_copy_safe(e.path, sizeof(e.path), sv_sub(path, 0, sv_find(path, '?')));
	l7_copy_safe(e.credential, sizeof(e.credential), sv_from(c->log.credential));
	return e;
}

void l7_event_request(const struct call *c)
{
	const struct egress_event e = about(c);

	(void)send_event(c->l7, EGRESS_EVENT, 0, &e);
}

bool l7_event_ask(const struct call *c, uint32_t id)
{
	struct egress_event e = about(c);

	/* SECURITY: the query is part of what a person approves, so the question shows it. */
	l7_copy_safe(e.path, sizeof(e.path), c->target.text);
	e.answer = CAP_ASK;
	return send_event(c->l7, EGRESS_ASK, id, &e);
}

void l7_event_close(const struct client *c)
{
	const bool denied = c->why.cause != CAUSE_NONE && !c->cut;
	struct egress_event e = { .what = EGRESS_CLOSE,
				  .answer = denied ? CAP_DENY : CAP_ALLOW,
				  .rule = RULE_NONE,
				  .flow = c->flow,
				  .port = c->port,
				  .way = REACH_READ,
				  .proxy = c->proxy,
				  .why = c->why,
				  .up = c->up,
				  .down = c->down,
				  .lasted_us = c->link.l7->now_us - c->start_us };

	l7_copy_safe(e.host, sizeof(e.host), c->host);
	(void)send_event(c->link.l7, EGRESS_EVENT, 0, &e);
}

void l7_event_ready(struct l7 *l, struct sv pem)
{
	struct egress_message m = { .type = EGRESS_READY };

	if (pem.n > EGRESS_TEXT) {
		l->stop = true;
		return;
	}
	m.text_n = (uint32_t)pem.n;
	memcpy(m.text, pem.p, pem.n);
	(void)send_message(l, &m);
}

void l7_event_finished(struct l7 *l)
{
	struct egress_message m = { .type = EGRESS_FINISHED };

	(void)send_message(l, &m);
}

/* Appends the command line that would allow the request, ready to paste. */
static void put_rule(const struct call *c, struct buf *b)
{
	char path[512];

	l7_copy_safe(path, sizeof(path), c->target.path);
	buf_fmt(b, "to allow it, outside: writ allow " SV_FMT " 'net:%s://" SV_FMT,
		SV_ARG(c->l7->settings.session), c->tls ? "https" : "http", SV_ARG(c->host));
	if (c->port != (c->tls ? 443 : 80))
		buf_fmt(b, ":%u", c->port);
	buf_fmt(b, "%s;methods=" SV_FMT "'\n", path, SV_ARG(c->q.method));
}

void l7_event_page(const struct call *c, unsigned status, const char *why, struct buf *b)
{
	const struct cap_set *set = &c->l7->settings.set;
	char path[512];

	l7_copy_safe(path, sizeof(path), sv_sub(c->q.target, 0, sv_find(c->q.target, '?')));
	buf_fmt(b,
		"writ did not %s this request.\nhost: " SV_FMT ":%u\nrequest: " SV_FMT
		" %s\nreason: %s\n",
		c->charged && status == 502 ? "finish" : "send", SV_ARG(c->host), c->port,
		SV_ARG(c->q.method), path, why);
	if (c->verdict.rule != RULE_NONE && c->verdict.rule < set->rules.n)
		buf_fmt(b, "rule: " SV_FMT "\n", SV_ARG(set->rules.v[c->verdict.rule].text));
	if (status == 403 && c->verdict.answer == CAP_DENY && c->target.path.n &&
	    c->verdict.rule == RULE_NONE)
		put_rule(c, b);
}
