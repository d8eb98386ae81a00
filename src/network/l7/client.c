#include <openssl/err.h>
#include <stdlib.h>
#include <unistd.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

static bool start_tls(struct client *c)
{
	struct link *k = &c->link;

	c->origin = origin_get(k->l7, c->host, c->port, true);
	if (!c->origin || !l7_link_tls(k, tls_accept(k->l7)))
		return false;
	SSL_set_app_data(k->ssl, c);
	return true;
}

/*
 * Creates a client for the connection @fd. If there are too many clients, closes @fd without a
 * record and returns NULL.
 */
struct client *client_new(struct l7 *l, const struct reader_message *m, int fd)
{
	struct client *c = l->clients_n < L7_CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	l7_link_open(l, &c->link, LINK_CLIENT, fd);
	l->clients_n++;
	memcpy(c->host_room, m->host, sizeof(c->host_room) - 1);
	c->host = sv_from(c->host_room);
	c->flow = m->id;
	c->port = m->port;
	c->proxy = m->proxy;
	c->tls = m->tls && !m->proxy;
	c->start_us = l->now_us;
	c->link.deadline_ms = l7_now_ms(l) + (c->tls ? L7_HANDSHAKE_MS : L7_HEAD_MS);
	if (c->tls && fd >= 0 && !start_tls(c))
		l7_link_kill(&c->link);
	l7_link_wake(&c->link);
	return c;
}

void client_close(struct client *c, enum cap_cause cause, const char *detail)
{
	if (c->why.cause == CAUSE_NONE)
		c->why = l7_why(cause, detail);
}

void client_free(struct client *c)
{
	struct l7 *l = c->link.l7;

	/* End the calls first: the calls refer to the client. */
	while (c->calls)
		call_end(c->calls);
	l7_event_close(c);
	if (c->is_unverified)
		for (struct client **p = &c->origin->unverified; *p; p = &(*p)->next_unverified)
			if (*p == c) {
				*p = c->next_unverified;
				break;
			}
	nghttp2_session_del(c->h2);
	l->finish.leaving -= c->link.peer_gone;
	l7_link_close(&c->link);
	l->clients_n--;
	free(c);
}

void client_verified(struct client *c, enum cap_cause cause, const char *detail)
{
	c->is_unverified = false;
	if (cause != CAUSE_NONE)
		client_close(c, cause, detail);
	l7_link_wake(&c->link);
}

void client_more(struct call *k)
{
	if (k->client->h2)
		client_h2_wake(k);
	else
		l7_link_wake(&k->client->link);
}

static void handshake(struct client *c)
{
	int r;

	/*
	 * Wait until the server has proved its identity: only then does the reader issue the
	 * certificate that the client sees.
	 */
	if (c->is_unverified)
		return;
	r = l7_link_handshake(&c->link);
	if (r < 0) {
		const char *e = ERR_reason_error_string(ERR_peek_error());

		client_close(c, e ? CAUSE_CLIENT_TLS : CAUSE_CLIENT_GONE, e);
		l7_link_kill(&c->link);
	}
	if (r != 1)
		return;
	c->link.readable = true;
	c->link.deadline_ms = l7_now_ms(c->link.l7) + L7_HEAD_MS;
	if (tls_is_h2(c->link.ssl))
		client_h2_start(c);
}

void client_step(struct client *c)
{
	struct link *k = &c->link;

	if (k->shaking)
		handshake(c);
	if (k->shaking || k->dead)
		return;
	if (k->closing) {
		l7_link_read(k);
		l7_link_write(k);
		return;
	}
	if (c->h2)
		client_h2_step(c);
	else
		client_h1_step(c);
	l7_link_write(k);
	/*
	 * Run the link again if a full buffer stopped reading or writing and
	 * the buffer has room now.
	 */
	if ((k->readable && fifo_left(&k->in) >= L7_IN / 2 && !k->eof) ||
	    (c->call && c->call->answered && c->call->resp.bytes.n && k->out.n < L7_OUT))
		l7_link_wake(k);
}
