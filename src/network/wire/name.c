#include "wire/name.h"

#include "wire/wire_priv.h"

#include "base/banned.h"

enum { LABEL_MAX = 63, V6_TEXT_MAX = 41 /* longest text of an IPv6 address, with brackets */ };

/* Tests a label, which is in lower case already. */
static bool is_label(struct sv s)
{
	return s.n > 0 && s.n <= LABEL_MAX && s.p[0] != '-' && s.p[s.n - 1] != '-' &&
	       sv_is_alnum(s, "-_");
}

/*
 * Tests whether the last label @s of a name is a number. SECURITY: inet_aton() and URL parsers read
 * a name with such a label as an IPv4 address, whatever the other labels are.
 */
static bool is_number(struct sv s)
{
	const bool hex = s.n >= 2 && s.p[0] == '0' && s.p[1] == 'x';

	for (size_t i = hex ? 2 : 0; i < s.n; i++)
		if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(hex && sv_hex(s.p[i]) >= 0))
			return false;
	return true;
}

static int labels_check(struct sv name, struct writ_err *err)
{
	struct sv rest = name, label;
	bool last;

	do {
		last = sv_find(rest, '.') == SIZE_MAX;
		label = sv_cut(&rest, '.');
		if (!is_label(label))
			return wire_refuse(err, "host name with a wrong label");
	} while (!last);
	if (is_number(label))
		return wire_refuse(err, "address in a spelling that is not accepted");
	return 0;
}

int wire_name_parse(struct sv text, struct wire_host *ret_host, struct writ_err *err)
{
	struct wire_host h = { .kind = WIRE_HOST_NAME };

	if (text.n && text.p[text.n - 1] == '.')
		text.n--;
	if (text.n == 0 || text.n > WIRE_NAME_MAX)
		return wire_refuse(err, "host name that is empty or too long");
	for (size_t i = 0; i < text.n; i++)
		h.name[i] = sv_lower(text.p[i]);
	h.n = (uint8_t)text.n;
	if (labels_check(wire_host_name(&h), err) < 0)
		return err->code;
	*ret_host = h;
	return 0;
}

struct wire_host wire_host_v4(const uint8_t b[static 4])
{
	struct wire_host h = { .kind = WIRE_HOST_V4, .addr = { .len = 32 } };

	memcpy(h.addr.b, b, 4);
	return h;
}

struct wire_host wire_host_v6(const uint8_t b[static 16])
{
	struct wire_host h = { .kind = WIRE_HOST_V6, .addr = { .len = 128, .v6 = true } };

	memcpy(h.addr.b, b, 16);
	return h;
}

/* Parses a single address; refuses networks. */
static bool address_parse(struct sv text, struct cap_net_addr *ret_addr)
{
	char low[V6_TEXT_MAX];
	struct cap_net_addr a;

	if (text.n > sizeof(low))
		return false;
	for (size_t i = 0; i < text.n; i++)
		low[i] = sv_lower(text.p[i]);
	if (!cap_addr_parse((struct sv){ low, text.n }, &a) || a.len != (a.v6 ? 128 : 32))
		return false;
	*ret_addr = a;
	return true;
}

int wire_host_parse(struct sv text, struct wire_host *ret_host, struct writ_err *err)
{
	struct cap_net_addr a;

	if (address_parse(text, &a)) {
		*ret_host = a.v6 ? wire_host_v6(a.b) : wire_host_v4(a.b);
		return 0;
	}
	if (text.n && text.p[0] == '[')
		return wire_refuse(err, "IPv6 address in a spelling that is not accepted");
	return wire_name_parse(text, ret_host, err);
}

/*
 * Returns the offset in @text of the colon before the port, or SIZE_MAX. Colons inside the brackets
 * of an IPv6 address do not count.
 */
static size_t port_colon(struct sv text)
{
	const size_t bracket = text.n && text.p[0] == '[' ? sv_find(text, ']') : SIZE_MAX;
	size_t colon;

	if (bracket == SIZE_MAX)
		return sv_find(text, ':');
	colon = sv_find(sv_skip(text, bracket), ':');
	return colon == SIZE_MAX ? SIZE_MAX : bracket + colon;
}

int wire_authority_parse(struct sv text, uint16_t port, struct wire_authority *ret_authority,
			 struct writ_err *err)
{
	const size_t colon = port_colon(text);
	struct wire_authority a = { .has_port = colon != SIZE_MAX };
	uint64_t v = port;

	if (a.has_port && !sv_to_u64(sv_skip(text, colon + 1), UINT16_MAX, &v))
		return wire_refuse(err, "port that is not a number");
	if (v == 0)
		return wire_refuse(err, "no port");
	if (wire_host_parse(sv_sub(text, 0, colon), &a.host, err) < 0)
		return err->code;
	a.port = (uint16_t)v;
	*ret_authority = a;
	return 0;
}

struct sv wire_host_name(const struct wire_host *h)
{
	return (struct sv){ h->name, h->n };
}

bool wire_host_eq(const struct wire_host *a, const struct wire_host *b)
{
	return a->kind == b->kind && sv_eq(wire_host_name(a), wire_host_name(b)) &&
	       memcmp(a->addr.b, b->addr.b, sizeof(a->addr.b)) == 0;
}

void wire_host_print(const struct wire_host *h, struct buf *b)
{
	switch (h->kind) {
	case WIRE_HOST_NONE:
		return;
	case WIRE_HOST_NAME:
		buf_sv(b, wire_host_name(h));
		return;
	case WIRE_HOST_V4:
	case WIRE_HOST_V6:
		cap_addr_print(&h->addr, b);
		return;
	}
}
