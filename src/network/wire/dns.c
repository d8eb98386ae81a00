#include "wire/dns.h"

#include "wire/wire_priv.h"

#include "base/banned.h"

enum {
	HEAD = 12,
	CLASS_IN = 1,
	/* bits of the flags field, the second 16 bits of a DNS message */
	QR = 0x8000,
	OPCODE = 0x7800,
	TC = 0x0200,
	RD = 0x0100,
	RA = 0x0080,
	AD = 0x0020,
	CD = 0x0010,
	RR_HEAD = 12, /* length of a record's name pointer, type, class, TTL and data length */
	OPT_SIZE = 11,
};

static enum dns_verdict refuse(struct dns_query *q, enum dns_rcode rcode, struct writ_err *err,
			       const char *what)
{
	q->rcode = rcode;
	wire_set_error(err, WRIT_E_SYNTAX, what);
	return DNS_REFUSE;
}

static enum dns_verdict drop(struct writ_err *err, const char *what)
{
	wire_set_error(err, WRIT_E_SYNTAX, what);
	return DNS_DROP;
}

/*
 * Reads a name from @c and writes the name as text, without the trailing dot, to @text. Refuses a
 * label that contains a dot: in text the label would look like two labels.
 */
static bool labels_read(struct cursor *c, char text[static 256], size_t *ret_n)
{
	size_t n = 0;

	for (;;) {
		const uint32_t len = cursor_uint(c, 1);
		const struct cursor label = cursor_take(c, len > 63 ? SIZE_MAX : len);

		if (c->failed)
			return false;
		if (len == 0)
			break;
		if (n + (n != 0) + len > WIRE_NAME_MAX || memchr(label.p, '.', label.n))
			return false;
		if (n)
			text[n++] = '.';
		memcpy(text + n, label.p, label.n);
		n += label.n;
	}
	*ret_n = n;
	return true;
}

static bool options_ok(struct cursor data)
{
	while (data.n) {
		(void)cursor_uint(&data, 2);
		(void)cursor_part(&data, 2);
	}
	return !data.failed;
}

/* Reads the OPT record (EDNS), the only record that a query may contain. */
static bool opt_read(struct cursor *c, struct dns_query *q, uint32_t *ret_version)
{
	const uint32_t root = cursor_uint(c, 1);
	const uint32_t type = cursor_uint(c, 2);
	const uint32_t size = cursor_uint(c, 2);
	const uint32_t flags = cursor_uint(c, 4);
	const struct cursor data = cursor_part(c, 2);

	if (c->failed || root != 0 || type != DNS_OPT || flags >> 24 != 0 || !options_ok(data))
		return false;
	q->edns = true;
	q->udp_size = (uint16_t)(size < DNS_UDP_MAX ? DNS_UDP_MAX : size);
	*ret_version = flags >> 16 & 0xff;
	return true;
}

/* Decodes the question and the OPT record, which follow the header of a query. */
static enum dns_verdict body_decode(struct cursor c, uint32_t records, struct dns_query *q,
				    struct writ_err *err)
{
	const uint8_t *start = c.p;
	uint32_t class, version = 0;
	char text[256];
	size_t text_n;

	if (!labels_read(&c, text, &text_n))
		return refuse(q, DNS_FORMERR, err, "DNS question with a malformed name");
	q->type = (uint16_t)cursor_uint(&c, 2);
	class = cursor_uint(&c, 2);
	if (c.failed)
		return refuse(q, DNS_FORMERR, err, "DNS question that ends early");
	q->question_n = (uint16_t)(c.p - start);
	memcpy(q->question, start, q->question_n);
	if (records && !opt_read(&c, q, &version))
		return refuse(q, DNS_FORMERR, err, "DNS query with a malformed OPT record");
	if (c.n)
		return refuse(q, DNS_FORMERR, err, "DNS query with bytes behind its end");
	if (version != 0)
		return refuse(q, DNS_BADVERS, err, "DNS query of a later EDNS version");
	if (class != CLASS_IN || text_n == 0)
		return refuse(q, DNS_REFUSED, err, "DNS question that is not about a host");
	if (wire_name_parse((struct sv){ text, text_n }, &q->name, err) < 0)
		return refuse(q, DNS_NXDOMAIN, err, "DNS question that is not about a host name");
	return DNS_ASK;
}

enum dns_verdict dns_query_decode(struct sv msg, bool tcp, struct dns_query *ret_query,
				  struct writ_err *err)
{
	struct dns_query q = { .udp_size = DNS_UDP_MAX };
	struct cursor c = cursor_on(msg);
	uint32_t flags, questions, answers, records;
	enum dns_verdict v;

	if (msg.n < HEAD || msg.n > (tcp ? DNS_TCP_MAX : DNS_UDP_MAX))
		return drop(err, "DNS message of a wrong length");
	q.id = (uint16_t)cursor_uint(&c, 2);
	flags = cursor_uint(&c, 2);
	questions = cursor_uint(&c, 2);
	answers = cursor_uint(&c, 4); /* number of answer and authority records */
	records = cursor_uint(&c, 2);
	if (flags & QR)
		return drop(err, "DNS message that is no query");
	q.want_recursion = flags & RD;
	if (flags & OPCODE)
		v = refuse(&q, DNS_NOTIMP, err, "DNS message that is no standard query");
	else if (flags & ~(unsigned)(RD | AD | CD) || questions != 1 || answers || records > 1)
		v = refuse(&q, DNS_FORMERR, err, "DNS query that is not one question");
	else
		v = body_decode(c, records, &q, err);
	*ret_query = q;
	return v;
}

static uint8_t *record_put(uint8_t *to, enum dns_type type, uint32_t ttl, size_t n)
{
	to = put_uint(to, 0xc000 | HEAD, 2); /* compression pointer to the question's name */
	to = put_uint(to, type, 2);
	to = put_uint(to, CLASS_IN, 2);
	to = put_uint(to, ttl, 4);
	return put_uint(to, (uint32_t)n, 2);
}

static uint8_t *name_put(uint8_t *to, struct sv name)
{
	while (name.n) {
		const struct sv label = sv_cut(&name, '.');

		*to++ = (uint8_t)label.n;
		memcpy(to, label.p, label.n);
		to += label.n;
	}
	*to++ = 0;
	return to;
}

static size_t records_size(const struct dns_answer *a)
{
	return a->a_n * (RR_HEAD + 4) + (a->ptr.n ? RR_HEAD + a->ptr.n + 2 : 0);
}

size_t dns_reply_encode(const struct dns_query *q, const struct dns_answer *a, uint8_t *out,
			size_t room)
{
	const size_t fixed = (size_t)HEAD + q->question_n + (q->edns ? OPT_SIZE : 0);
	const bool any = a->rcode == DNS_NOERROR && q->question_n && (a->a_n || a->ptr.n);
	const bool cut = any && (a->a_n > UINT8_MAX || a->ptr.n > WIRE_NAME_MAX ||
				 fixed + records_size(a) > room);
	const size_t a_n = any && !cut ? a->a_n : 0;
	const bool ptr = any && !cut && a->ptr.n;
	uint8_t *to = out;

	if (fixed > room)
		return 0;
	to = put_uint(to, q->id, 2);
	to = put_uint(to,
		      (uint32_t)(QR | RA | (q->want_recursion ? RD : 0) | (cut ? TC : 0)) |
			      (a->rcode & 15),
		      2);
	to = put_uint(to, q->question_n != 0, 2);
	to = put_uint(to, (uint32_t)a_n + ptr, 2);
	to = put_uint(to, q->edns, 4);
	memcpy(to, q->question, q->question_n);
	to += q->question_n;
	for (size_t i = 0; i < a_n; i++) {
		to = record_put(to, DNS_A, a->ttl, 4);
		memcpy(to, a->a[i], 4);
		to += 4;
	}
	if (ptr)
		to = name_put(record_put(to, DNS_PTR, a->ttl, a->ptr.n + 2), a->ptr);
	if (q->edns) {
		to = put_uint(to, 0, 1);
		to = put_uint(to, DNS_OPT, 2);
		to = put_uint(to, DNS_REPLY_ROOM, 2);
		to = put_uint(to, (uint32_t)a->rcode >> 4 << 24, 4);
		to = put_uint(to, 0, 2);
	}
	return (size_t)(to - out);
}

bool dns_ptr_v4(struct sv name, uint8_t ret_addr[static 4])
{
	uint8_t b[4];

	for (size_t i = 4; i-- > 0;) {
		uint64_t v;

		if (!sv_to_u64(sv_cut(&name, '.'), 255, &v))
			return false;
		b[i] = (uint8_t)v;
	}
	if (!sv_is(name, "in-addr.arpa"))
		return false;
	memcpy(ret_addr, b, sizeof(b));
	return true;
}

enum wire_state dns_frame(struct sv bytes, struct sv *ret_msg, struct writ_err *err)
{
	struct cursor c = cursor_on(bytes);
	const uint32_t n = cursor_uint(&c, 2);

	if (c.failed)
		return WIRE_MORE;
	if (n < HEAD)
		return wire_bad(err, "DNS message of a wrong length");
	if (c.n < n)
		return WIRE_MORE;
	*ret_msg = cursor_sv(cursor_take(&c, n));
	return WIRE_DONE;
}

void dns_frame_put(uint8_t out[static 2], size_t n)
{
	(void)put_uint(out, (uint32_t)n, 2);
}
