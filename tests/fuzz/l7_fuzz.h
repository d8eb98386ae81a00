/*
 * l7_fuzz.h - a reader of requests without sockets: bytes go into its links and come out
 *
 * The client's and the server's bytes are cut from one input. A record is one byte of
 * who (even: client, odd: server), one of length, and the bytes. Checked is what must
 * hold whatever they are: nothing is sent on that was not allowed, no secret comes back,
 * memory stays bounded.
 */
#ifndef WRIT_TESTS_L7_FUZZ_H
#define WRIT_TESTS_L7_FUZZ_H

#include <stdlib.h>

#include "l7/l7_priv.h"

#define FUZZ_ID "00112233445566778899aabbccddeeff"
#define FUZZ_VALUE "s3cr3t-value-42"

static const char fuzz_settings[] =
	"{\"caps\":[{\"rule\":0,\"text\":\"http.request:local:https://a.test:443/v1/"
	"**;m=*;q=any\"},"
	"{\"rule\":0,\"text\":\"http.request:local:http://a.test:80/v1/**;m=*;q=any\"}],"
	"\"id\":\"" FUZZ_ID
	"\",\"level\":0,\"limits\":{\"down\":0,\"requests\":0,\"session\":0,\"up\":0},"
	"\"nots\":[],\"prices\":[],\"realm\":\"local\",\"rules\":[{\"n\":0,\"text\":\"net\"}],"
	"\"secrets\":[{\"as\":\"bearer\",\"name\":\"T\",\"to\":\"https://a.test:443/v1/"
	"**\",\"value\":"
	"\"7333637233742d76616c75652d3432\"}],\"session\":\"7f3a\"}";

struct fuzz {
	struct l7 l;
	struct client *client;
	struct buf to_client, to_server, from_client;
};

/* A server in place of the one that was asked for. */
static inline struct server *fuzz_server(struct fuzz *f, bool h2)
{
	for (struct link *k = f->l.links; k; k = k->next) {
		struct server *s = (struct server *)k;

		if (k->what != LINK_SERVER || k->dead)
			continue;
		if (s->dialling) {
			s->dialling = false;
			s->ready = true;
			if (h2)
				server_h2_start(s);
			server_idle(s);
			origin_serve(s->origin);
		}
		return s;
	}
	return NULL;
}

/* Keys are made once: they would be all that is tried. */
static inline struct fuzz *fuzz_start(bool tls)
{
	static struct fuzz one, *f;
	struct reader_message m = { .port = tls ? 443 : 80, .tls = tls, .host = "a.test" };
	struct writ_err err;

	if (!f && l7_init(&one.l, sv_from(fuzz_settings), SV(""), &err) < 0)
		abort();
	f = &one;
	f->l.offline = true;
	f->l.now_us = 1000000;
	f->to_client.max = f->to_server.max = f->from_client.max = 64 << 20;
	f->client = client_new(&f->l, &m, -1);
	if (!f->client)
		abort();
	return f;
}

static inline void fuzz_drain(struct link *k, struct buf *to)
{
	const struct sv v = fifo_view(&k->out);

	if (k->in.n > L7_IN || v.n > L7_OUT_MAX)
		abort();
	buf_sv(to, v);
	fifo_drop(&k->out, v.n);
	l7_link_wake(k);
}

/* Runs until nothing moves; false: the client is gone. */
static inline bool fuzz_run(struct fuzz *f, bool h2)
{
	for (int i = 0; i < 50; i++) {
		struct server *s;

		l7_run_woken(&f->l);
		s = fuzz_server(f, h2);
		if (s)
			fuzz_drain(&s->link, &f->to_server);
		fuzz_drain(&f->client->link, &f->to_client);
		if (f->client->link.dead || f->client->link.closing)
			return false;
		l7_run_woken(&f->l);
		if (f->client->link.dead)
			return false;
		l7_free_dead(&f->l);
	}
	return true;
}

static inline void fuzz_feed(struct fuzz *f, bool client, struct sv bytes, bool h2)
{
	struct server *s = client ? NULL : fuzz_server(f, h2);
	struct link *k = client ? &f->client->link : s ? &s->link : NULL;

	if (!k || !fifo_add(&k->in, bytes))
		return;
	if (client)
		buf_sv(&f->from_client, bytes);
	l7_link_wake(k);
}

static inline void fuzz_records(struct fuzz *f, const uint8_t *data, size_t size, bool h2)
{
	while (size >= 2) {
		const bool client = data[0] % 2 == 0;
		size_t n = data[1];

		data += 2;
		size -= 2;
		n = n < size ? n : size;
		fuzz_feed(f, client, (struct sv){ (const char *)data, n }, h2);
		data += n;
		size -= n;
		f->l.now_us += 1000;
		if (!fuzz_run(f, h2))
			break;
	}
}

static inline bool fuzz_has(const struct buf *b, const char *what)
{
	return b->n && memmem(b->p, b->n, what, strlen(what));
}

/* What stands for the secret goes to nobody who does not get the secret itself. */
static inline void fuzz_no_placeholder(struct sv text)
{
	static const char placeholder[] = "writ-placeholder-T-" FUZZ_ID;

	if (text.n && memmem(text.p, text.n, placeholder, sizeof(placeholder) - 1))
		abort();
}

/*
 * Every head that went to a server of HTTP/1 is one we could have written. @bears: the
 * secret goes with it, and then its body may have what stands for it.
 */
static inline void fuzz_check_sent(struct sv sent, bool bears)
{
	struct http1_field fields[L7_FIELDS + L7_SET_MAX];
	struct buf whole = BUF_INIT(64 << 20);
	struct http1_find find = { 0 };
	struct http1_request q;
	struct http1_body body;
	struct writ_err err;
	enum wire_state state;
	struct sv piece;
	size_t n;

	while (sent.n) {
		find = (struct http1_find){ 0 };
		if (http1_head_find(&find, sent, &http1_limits_default, &n, &err) != WIRE_DONE)
			return; /* cut off, or after 101 */
		if (http1_request_parse(sv_sub(sent, 0, n), 443, fields, ARRAY_LEN(fields), &q,
					&err) < 0)
			return;
		fuzz_no_placeholder(sv_sub(sent, 0, n));
		if (!sv_starts(q.target, SV("/v1")) ||
		    !sv_is(wire_host_name(&q.host.host), "a.test"))
			abort();
		if (q.websocket.n)
			return;
		sent = sv_skip(sent, n);
		http1_body_init(&body, q.framing, q.length, NULL);
		do {
			state = http1_body_next(&body, &sent, &piece, &err);
			buf_sv(&whole, state == WIRE_BAD ? SV("") : piece);
		} while (state == WIRE_MORE && sent.n);
		if (!bears)
			fuzz_no_placeholder(buf_view(&whole));
		buf_clear(&whole);
		if (state != WIRE_DONE)
			return;
	}
}

static inline void fuzz_end(struct fuzz *f)
{
	/* Who says the value knows it: a page may repeat the path. */
	if (fuzz_has(&f->to_client, FUZZ_VALUE) && !fuzz_has(&f->from_client, FUZZ_VALUE))
		abort();
	while (f->l.links) {
		for (struct link *k = f->l.links; k; k = k->next)
			l7_link_kill(k);
		l7_free_dead(&f->l);
	}
	for (struct origin *o = f->l.origins; o; o = o->next)
		o->only_h2 = o->no_h2 = false;
	if (f->l.links || f->l.woken || f->l.dead || f->l.clients_n)
		abort();
	buf_clear(&f->to_client);
	buf_clear(&f->to_server);
	buf_clear(&f->from_client);
}

#endif
