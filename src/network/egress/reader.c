#include "egress/egress_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "egress/reader.h"

#include "base/banned.h"

static bool send_reader(const struct egress *e, const struct reader_message *m, const char *bytes,
			int fd)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)m, sizeof(*m) },
				{ (void *)(uintptr_t)bytes, m->bytes_n } };
	struct writ_err err;

	return packet_send_parts(e->reader.fd, iov, m->bytes_n ? 2 : 1, &fd, fd >= 0, &err) == 0;
}

/*
 * Makes a flow wait for a reader, and asks the supervisor for one. The supervisor starts no reader
 * while no rule needs one, so a plain HTTP request to the proxy port may be the first to need a
 * reader.
 */
static void wait_for_reader(struct egress *e, struct flow *f)
{
	f->state = FLOW_UNREAD;
	f->setup->limit_ms = e->now_ms + HEAD_MS;
	flow_set_due(e, f, f->setup->limit_ms);
	if (!e->reader.wanted)
		egress_notify(e, EGRESS_WANT_READER, 0, NULL, 0);
	e->reader.wanted = true;
}

void reader_attached(struct egress *e)
{
	struct flow *next;

	e->reader.wanted = false;
	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (f->state == FLOW_UNREAD)
			reader_hand_over(e, f);
	}
}

/*
 * Hands the client connection of a flow, and the bytes read from it, to the reader. If there is no
 * reader, makes the flow wait for one.
 */
void reader_hand_over(struct egress *e, struct flow *f)
{
	struct reader_message m = { .type = READER_TAKE,
				    .id = f->id,
				    .port = f->port,
				    .proxy = f->proxy && !f->setup->replied,
				    .tls = reach_is_tls(&e->reach, f->host, f->port),
				    .bytes_n = (uint32_t)f->setup->head_n };

	if (e->reader.fd < 0) {
		wait_for_reader(e, f);
		return;
	}
	egress_copy_text(m.host, sizeof(m.host), f->host);
	if (!send_reader(e, &m, f->setup->head, f->fd[0])) {
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_NO_READER);
		return;
	}
	flow_drop(e, f, false);
}

void reader_send_last(struct egress *e)
{
	const struct reader_message m = { .type = READER_LAST };

	if (e->reader.fd >= 0)
		(void)send_reader(e, &m, NULL, -1);
}

/* Dials a server for the reader, as a flow without a client connection. */
static void on_dial(struct egress *e, const struct reader_message *m)
{
	const struct sv host = { m->host, strnlen(m->host, sizeof(m->host)) };
	struct flow *f = flow_for_reader(e, m->id);
	struct sv kept = SV("");

	if (f && reach_way(&e->reach, host, m->port) != REACH_CLOSED)
		kept = egress_head_intern(e, host);
	if (!f)
		return;
	f->host = kept.n ? kept : host;
	f->port = m->port;
	f->way = REACH_READ;
	if (kept.n == 0)
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_NO_RULE);
	else
		dial_start(e, f);
}

void reader_lost(struct egress *e)
{
	if (e->reader.fd < 0)
		return;
	egress_unwatch(e, e->reader.fd);
	close(e->reader.fd);
	e->reader.fd = -1;
	flow_reader_lost(e);
}

void reader_receive(struct egress *e)
{
	struct reader_message m;
	const ssize_t n = recv(e->reader.fd, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n != (ssize_t)sizeof(m)) {
		reader_lost(e);
		return;
	}
	if (m.type == READER_DIAL)
		on_dial(e, &m);
}

void reader_dialled(struct egress *e, struct flow *f, int fd, const struct cap_net_addr *to,
		    const struct cap_why *why)
{
	struct reader_message m = { .type = READER_DIALLED, .id = f->reader_id };
	scoped_buf b = BUF_INIT(64);

	if (to)
		cap_addr_print(to, &b);
	egress_copy_text(m.host, sizeof(m.host), buf_view(&b));
	if (why)
		m.why = *why;
	if (fd >= 0)
		egress_unwatch(e, fd);
	if (e->reader.fd >= 0)
		(void)send_reader(e, &m, NULL, fd);
	if (fd >= 0)
		close(fd);
	flow_drop(e, f, false);
}
