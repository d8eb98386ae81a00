#include "wire/socks.h"

#include "wire/wire_priv.h"

#include "base/banned.h"

enum { TEXT_MAX = 255, V4 = 1, DOMAIN = 3, V6 = 4 };

enum wire_protocol wire_protocol_of(uint8_t first)
{
	switch (first) {
	case 5:
		return WIRE_SOCKS5;
	case 4:
		return WIRE_SOCKS4;
	case 0x16:
		return WIRE_TLS;
	default:
		return first >= 'A' && first <= 'Z' ? WIRE_HTTP : WIRE_UNKNOWN;
	}
}

static enum socks_command command_of(uint32_t v, enum socks_command last)
{
	return v <= last ? (enum socks_command)v : SOCKS_OTHER;
}

enum wire_state socks5_greeting_parse(struct sv bytes, bool *ret_none, size_t *ret_used,
				      struct writ_err *err)
{
	struct cursor c = cursor_on(bytes);
	const uint32_t version = cursor_uint(&c, 1);
	const uint32_t n = cursor_uint(&c, 1);
	const struct cursor methods = cursor_take(&c, n);

	if (bytes.n && version != 5)
		return wire_bad(err, "not SOCKS 5");
	if (bytes.n >= 2 && n == 0)
		return wire_bad(err, "SOCKS greeting without a method");
	if (c.failed)
		return WIRE_MORE;
	*ret_none = memchr(methods.p, 0, methods.n) != NULL;
	*ret_used = bytes.n - c.n;
	return WIRE_DONE;
}

void socks5_greeting_reply(bool none, uint8_t out[static SOCKS_GREETING_SIZE])
{
	out[0] = 5;
	out[1] = none ? 0 : 0xff;
}

/*
 * Reads the address of a SOCKS 5 request. If the result is false, @c->failed tells that bytes are
 * missing; otherwise the address is invalid.
 */
static bool host_read(struct cursor *c, uint32_t kind, struct wire_host *ret_host,
		      struct writ_err *err)
{
	struct cursor part;

	if (kind == DOMAIN) {
		part = cursor_part(c, 1);
		return !c->failed && wire_host_parse(cursor_sv(part), ret_host, err) == 0;
	}
	part = cursor_take(c, kind == V4 ? 4 : 16);
	if (c->failed)
		return false;
	*ret_host = kind == V4 ? wire_host_v4(part.p) : wire_host_v6(part.p);
	return true;
}

enum wire_state socks5_request_parse(struct sv bytes, struct socks_request *ret_request,
				     size_t *ret_used, enum socks_reply *ret_reply,
				     struct writ_err *err)
{
	struct cursor c = cursor_on(bytes);
	const uint32_t version = cursor_uint(&c, 1);
	const uint32_t command = cursor_uint(&c, 1);
	const uint32_t reserved = cursor_uint(&c, 1);
	const uint32_t kind = cursor_uint(&c, 1);
	struct socks_request q = { .command = command_of(command, SOCKS_UDP) };
	bool good;

	*ret_reply = SOCKS_FAILED;
	if ((bytes.n && version != 5) || reserved != 0)
		return wire_bad(err, "malformed SOCKS 5 request");
	if (c.failed)
		return WIRE_MORE;
	*ret_reply = SOCKS_BAD_ADDRESS;
	if (kind != V4 && kind != DOMAIN && kind != V6)
		return wire_bad(err, "SOCKS 5 request with an unknown kind of address");
	good = host_read(&c, kind, &q.host, err);
	if (!c.failed && !good)
		return WIRE_BAD;
	q.port = (uint16_t)cursor_uint(&c, 2);
	if (c.failed)
		return WIRE_MORE;
	if (q.port == 0 && q.command == SOCKS_CONNECT)
		return wire_bad(err, "SOCKS request without a port");
	*ret_reply = q.command == SOCKS_CONNECT ? SOCKS_OK : SOCKS_BAD_COMMAND;
	*ret_request = q;
	*ret_used = bytes.n - c.n;
	return WIRE_DONE;
}

void socks5_reply(enum socks_reply reply, uint8_t out[static SOCKS5_REPLY_SIZE])
{
	/*
	 * SECURITY: leave the bound address in the reply zero, because it would reveal
	 * the operator's own address.
	 */
	memset(out, 0, SOCKS5_REPLY_SIZE);
	out[0] = 5;
	out[1] = (uint8_t)reply;
	out[3] = V4;
}

/* Reads a NUL-terminated text of a SOCKS 4 request. */
static enum wire_state text_read(struct cursor *c, struct sv *ret_text, struct writ_err *err)
{
	const uint8_t *nul = memchr(c->p, 0, c->n);
	const size_t n = nul ? (size_t)(nul - c->p) : c->n;

	if (n > TEXT_MAX)
		return wire_limit(err, "SOCKS 4 request that is too long");
	if (!nul)
		return WIRE_MORE;
	*ret_text = cursor_sv(cursor_take(c, n));
	(void)cursor_take(c, 1);
	return WIRE_DONE;
}

enum wire_state socks4_request_parse(struct sv bytes, struct socks_request *ret_request,
				     size_t *ret_used, struct writ_err *err)
{
	struct cursor c = cursor_on(bytes);
	const uint32_t version = cursor_uint(&c, 1);
	const uint32_t command = cursor_uint(&c, 1);
	struct socks_request q = { .port = (uint16_t)cursor_uint(&c, 2) };
	const struct cursor ip = cursor_take(&c, 4);
	enum wire_state s;
	struct sv text;

	if (bytes.n && version != 4)
		return wire_bad(err, "not SOCKS 4");
	if (c.failed)
		return WIRE_MORE;
	if (q.port == 0)
		return wire_bad(err, "SOCKS request without a port");
	q.command = command_of(command, SOCKS_BIND);
	s = text_read(&c, &text, err); /* skip the user id */
	if (s != WIRE_DONE)
		return s;
	if (ip.p[0] == 0 && ip.p[1] == 0 && ip.p[2] == 0 && ip.p[3] != 0) {
		s = text_read(&c, &text, err);
		if (s != WIRE_DONE)
			return s;
		if (wire_host_parse(text, &q.host, err) < 0)
			return WIRE_BAD;
	} else {
		q.host = wire_host_v4(ip.p);
	}
	*ret_request = q;
	*ret_used = bytes.n - c.n;
	return WIRE_DONE;
}

void socks4_reply(bool granted, uint8_t out[static SOCKS4_REPLY_SIZE])
{
	memset(out, 0, SOCKS4_REPLY_SIZE);
	out[1] = granted ? 90 : 91;
}
