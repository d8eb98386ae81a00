#include <openssl/err.h>
#include <stdlib.h>
#include <unistd.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

static bool start_tls(struct client *c)
{
	struct link *k = &c->link;

	c->origin = origin_get(k->l7, c->host, c->port, true);
	if (!c->origin || !link_tls(k, tls_accept(k->l7)))
		return false;
	SSL_set_app_data(k->ssl, c);
	return true;
}

/* NULL: not taken; @fd was closed then, and egress' own event is all that is on record. */
struct client *client_new(struct l7 *l, const struct reader_message *m, int fd)
{
	struct client *c = l->clients_n < L7_CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	link_open(l, &c->link, LINK_CLIENT, fd);
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
		link_kill(&c->link);
	link_wake(&c->link);
	return c;
}

void client_close(struct client *c, const char *why)
{
	if (c->why)
		return;
	copy_safe(c->why_room, sizeof(c->why_room), sv_from(why));
	c->why = c->why_room;
}

void client_bury(struct client *c)
{
	struct l7 *l = c->link.l7;

	/* Its calls still look at it while they end. */
	while (c->calls)
		call_end(c->calls);
	event_close(c);
	if (c->is_shaking)
		for (struct client **p = &c->origin->shaking; *p; p = &(*p)->next_shaking)
			if (*p == c) {
				*p = c->next_shaking;
				break;
			}
	nghttp2_session_del(c->h2);
	l->leaving -= c->link.mute;
	link_close(&c->link);
	l->clients_n--;
	free(c);
}

void client_verified(struct client *c, const char *why)
{
	c->is_shaking = false;
	if (why)
		client_close(c, why);
	link_wake(&c->link);
}

void client_more(struct call *k)
{
	if (k->client->h2)
		client2_wake(k);
	else
		link_wake(&k->client->link);
}

static void shake(struct client *c)
{
	int r;

	/* Until the server has shown who it is, nothing can be said. */
	if (c->is_shaking)
		return;
	r = link_shake(&c->link);
	if (r < 0) {
		const char *e = ERR_reason_error_string(ERR_peek_error());

		client_close(c, e ? e : "the client hung up in the handshake");
		link_kill(&c->link);
	}
	if (r != 1)
		return;
	c->link.readable = true;
	c->link.deadline_ms = l7_now_ms(c->link.l7) + L7_HEAD_MS;
	if (tls_is_h2(c->link.ssl))
		client2_start(c);
}

void client_step(struct client *c)
{
	struct link *k = &c->link;

	if (k->shaking)
		shake(c);
	if (k->shaking || k->dead)
		return;
	if (k->closing) {
		link_read(k);
		link_write(k);
		return;
	}
	if (c->h2)
		client2_step(c);
	else
		client1_step(c);
	link_write(k);
	/* What full buffers kept back may go on now. */
	if ((k->readable && fifo_left(&k->in) >= L7_IN / 2 && !k->eof) ||
	    (c->call && c->call->answered && c->call->down.n && k->out.n < L7_OUT))
		link_wake(k);
}
