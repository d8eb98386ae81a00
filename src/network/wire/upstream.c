#include "wire/upstream.h"

#include "codec/base64.h"
#include "wire/wire_priv.h"

#include "base/banned.h"

enum { VERSION = 9, STATUS = 3 }; /* lengths of "HTTP/1.1 " and of the three status digits */

int upstream_parse(struct sv url, struct upstream *ret, struct writ_err *err)
{
	struct upstream u = { 0 };

	if (!sv_starts(url, SV("http://")))
		return writ_fail_lit(err, WRIT_E_SYNTAX, 0,
				     "an upstream proxy is written http://HOST:PORT");
	url = sv_skip(url, 7);
	if (url.n && url.p[url.n - 1] == '/')
		url.n--;
	if (sv_find(url, '@') != SIZE_MAX)
		return writ_fail_lit(err, WRIT_E_SYNTAX, 0,
				     "the login of an upstream proxy stands in a file of its own");
	if (wire_authority_parse(url, 0, &u.at, err) < 0)
		return err->code;
	*ret = u;
	return 0;
}

int upstream_login(struct upstream *u, struct sv line, struct writ_err *err)
{
	if (line.n && line.p[line.n - 1] == '\n')
		line.n--;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (line.n > UPSTREAM_PAIR_MAX || sv_find(line, ':') == SIZE_MAX)
		return writ_fail_lit(err, WRIT_E_SYNTAX, 0,
				     "the login of an upstream proxy is one line NAME:PASSWORD");
	for (size_t i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] < 0x20 || line.p[i] == 0x7f)
			return writ_fail_lit(err, WRIT_E_SYNTAX, 0,
					     "the login of an upstream proxy has a control byte");
	base64_put(BASE64_PADDED, line, u->login);
	u->login[base64_length(BASE64_PADDED, line.n)] = 0;
	return 0;
}

void upstream_put(const struct upstream *u, const struct cap_net_addr *to, uint16_t port,
		  struct buf *b)
{
	struct wire_host host = to->v6 ? wire_host_v6(to->b) : wire_host_v4(to->b);
	scoped_buf where = BUF_INIT(128);

	wire_host_print(&host, &where);
	buf_fmt(b, "CONNECT " SV_FMT ":%u HTTP/1.1\r\nHost: " SV_FMT ":%u\r\n",
		SV_ARG(buf_view(&where)), port, SV_ARG(buf_view(&where)), port);
	if (u->login[0])
		buf_fmt(b, "Proxy-Authorization: Basic %s\r\n", u->login);
	buf_str(b, "\r\n");
	b->failed |= where.failed;
}

enum wire_state upstream_answer(struct sv bytes, size_t *ret_used, unsigned *ret_status,
				struct writ_err *err)
{
	static const char end[] = "\r\n\r\n";
	const char *at = bytes.n ? memmem(bytes.p, bytes.n, end, 4) : NULL;
	const struct sv start = sv_sub(bytes, 0, 7), rest = sv_skip(bytes, VERSION);
	unsigned status = 0;

	if (!sv_starts(SV("HTTP/1."), start))
		return wire_bad(err, "upstream proxy that does not speak HTTP");
	if (!at && bytes.n >= UPSTREAM_HEAD_MAX)
		return wire_limit(err, "answer of an upstream proxy without an end");
	if (!at)
		return WIRE_MORE;
	if (bytes.p[VERSION - 1] != ' ' || rest.n < STATUS + 1 || !memchr(" \r", rest.p[STATUS], 2))
		return wire_bad(err, "upstream proxy that does not speak HTTP");
	for (size_t i = 0; i < STATUS; i++) {
		if (rest.p[i] < '0' || rest.p[i] > '9')
			return wire_bad(err, "upstream proxy that does not speak HTTP");
		status = status * 10 + (unsigned)(rest.p[i] - '0');
	}
	*ret_used = (size_t)(at - bytes.p) + 4;
	*ret_status = status;
	return WIRE_DONE;
}
