/* Exchange messages with egress, and receive messages of the supervisor. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/packet.h"
#include "l7/l7_priv.h"

#include "base/banned.h"

bool l7_egress_dial(struct l7 *l, const struct origin *o, uint32_t id)
{
	struct reader_message m = { .type = READER_DIAL, .id = id, .port = o->port };
	struct writ_err err;

	if (l->offline)
		return true;
	if (o->host.n >= sizeof(m.host))
		return false;
	memcpy(m.host, o->host.p, o->host.n);
	return packet_send(l->egress, (struct sv){ (const char *)&m, sizeof(m) }, NULL, 0, &err) ==
	       0;
}

struct reader_packet {
	struct reader_message m;
	char bytes[READER_BYTES];
};

/*
 * Receives a message of egress. Returns 1 for a message, 0 at the end of the stream or for an
 * invalid message, -1 if no message is waiting.
 */
static int receive(int socket, struct reader_packet *h, int *ret_fd)
{
	size_t fds_n;
	ssize_t n;

	*ret_fd = -1;
	n = egress_receive_packet(socket, h, sizeof(*h), ret_fd, 1, &fds_n);
	if (n < 0)
		return -1;
	if (n < (ssize_t)sizeof(h->m) || h->m.bytes_n > READER_BYTES ||
	    (size_t)n != sizeof(h->m) + h->m.bytes_n) {
		if (*ret_fd >= 0)
			close(*ret_fd);
		return 0;
	}
	h->m.host[sizeof(h->m.host) - 1] = 0;
	if (!cap_why_receive(&h->m.why))
		h->m.why.cause = CAUSE_NONE;
	return 1;
}

static void on_client(struct l7 *l, const struct reader_packet *h, int fd)
{
	struct client *c;

	if (fd < 0)
		return;
	c = client_new(l, &h->m, fd);
	if (c && !fifo_add(&c->link.first, (struct sv){ h->bytes, h->m.bytes_n }))
		l7_link_kill(&c->link);
}

void l7_egress_receive(struct l7 *l)
{
	struct reader_packet *h = malloc(sizeof(*h));
	int fd, r = h ? 1 : 0;

	while (r == 1) {
		r = receive(l->egress, h, &fd);
		if (r != 1)
			break;
		if (fd >= 0)
			(void)fcntl(fd, F_SETFL, O_NONBLOCK);
		switch ((enum reader_type)h->m.type) {
		case READER_TAKE:
			on_client(l, h, fd);
			break;
		case READER_DIALLED:
			origin_dialled(l, &h->m, fd);
			break;
		case READER_LAST:
			l->finish.last = true;
			break;
		case READER_NOTHING:
		case READER_DIAL:
			if (fd >= 0)
				close(fd);
			break;
		}
	}
	free(h);
	if (r == 0)
		l->stop = true;
}

/* --- messages of the supervisor --- */

/* Stops the calls whose grant was revoked and whose response is not complete. */
static void end_revoked(struct l7 *l)
{
	for (struct link *k = l->links; k; k = k->next) {
		struct client *c = (struct client *)k;

		for (struct call *q = k->what == LINK_CLIENT ? c->calls : NULL; q; q = q->next)
			if (q->charged && q->verdict.bill.entry < l->settings.set.caps.n &&
			    l->settings.set.caps.v[q->verdict.bill.entry].cap.action == CAP_NONE &&
			    !q->resp.ended)
				call_fail(q, CAUSE_RULE_REVOKED);
	}
}

void l7_supervisor_receive(struct l7 *l)
{
	struct egress_message m;
	int fds[EGRESS_FDS];
	size_t n;
	int r;

	while ((r = egress_receive(l->supervisor, &m, fds, &n)) == 1) {
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
		switch ((enum egress_type)m.type) {
		case EGRESS_ANSWER:
			call_asked(l, m.id, m.count != 0);
			break;
		case EGRESS_GRANT:
		case EGRESS_REVOKE:
			/*
			 * SECURITY: a message that cannot be parsed may be a revocation. Stop the
			 * reader, rather than keep a grant that the operator revoked.
			 */
			if (!egress_rule_apply(&m, &l->arena, &l->settings.set))
				l->stop = true;
			if (m.type == EGRESS_REVOKE)
				end_revoked(l);
			break;
		case EGRESS_FINISH:
			l7_finish_begin(l, m.count);
			break;
		case EGRESS_NOTHING:
		case EGRESS_LISTENERS:
		case EGRESS_BOUND:
		case EGRESS_RESOLVER:
		case EGRESS_READER:
		case EGRESS_BIND:
		case EGRESS_WANT_RESOLVER:
		case EGRESS_WANT_READER:
		case EGRESS_ASK:
		case EGRESS_EVENT:
		case EGRESS_GIT:
		case EGRESS_READY:
		case EGRESS_FINISHED:
			break;
		}
	}
	if (r == 0)
		l->stop = true;
}
