#include "wire/http1_priv.h"
#include "wire/target.h"

#include "base/banned.h"

/*
 * The sets HTTP1_IN_* to which each byte belongs, as bits. Control bytes other than TAB, and DEL,
 * are in no set; TAB, blanks and bytes above 0x7f are allowed only in values.
 */
/* clang-format off */
const uint8_t http1_bytes[256] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	2, 7, 6, 7, 7, 7, 7, 7, 6, 6, 7, 7, 6, 7, 7, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6,
	6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 7, 6, 7, 0,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
};

static const struct {
	struct sv name;
	enum http1_id id;
} names[] = {
	{ SV_INIT("te"), HTTP1_HOP },
	{ SV_INIT("age"), HTTP1_END },
	{ SV_INIT("date"), HTTP1_END },
	{ SV_INIT("host"), HTTP1_HOST },
	{ SV_INIT("vary"), HTTP1_END },
	{ SV_INIT("range"), HTTP1_END },
	{ SV_INIT("cookie"), HTTP1_END },
	{ SV_INIT("expect"), HTTP1_EXPECT },
	{ SV_INIT("pragma"), HTTP1_END },
	{ SV_INIT("alt-svc"), HTTP1_ALT_SVC },
	{ SV_INIT("expires"), HTTP1_END },
	{ SV_INIT("trailer"), HTTP1_HOP },
	{ SV_INIT("upgrade"), HTTP1_UPGRADE },
	{ SV_INIT("alt-used"), HTTP1_HOP },
	{ SV_INIT("location"), HTTP1_END },
	{ SV_INIT("connection"), HTTP1_CONNECTION },
	{ SV_INIT("keep-alive"), HTTP1_HOP },
	{ SV_INIT("set-cookie"), HTTP1_END },
	{ SV_INIT("retry-after"), HTTP1_END },
	{ SV_INIT("content-type"), HTTP1_END },
	{ SV_INIT("max-forwards"), HTTP1_END },
	{ SV_INIT("authorization"), HTTP1_END },
	{ SV_INIT("cache-control"), HTTP1_END },
	{ SV_INIT("content-range"), HTTP1_END },
	{ SV_INIT("content-length"), HTTP1_CONTENT_LENGTH },
	{ SV_INIT("http2-settings"), HTTP1_HOP },
	{ SV_INIT("content-encoding"), HTTP1_END },
	{ SV_INIT("proxy-connection"), HTTP1_HOP },
	{ SV_INIT("www-authenticate"), HTTP1_END },
	{ SV_INIT("sec-websocket-key"), HTTP1_WS_KEY },
	{ SV_INIT("transfer-encoding"), HTTP1_TRANSFER_ENCODING },
	{ SV_INIT("proxy-authenticate"), HTTP1_HOP },
	{ SV_INIT("proxy-authorization"), HTTP1_HOP },
	{ SV_INIT("sec-websocket-accept"), HTTP1_WS_ACCEPT },
	{ SV_INIT("sec-websocket-version"), HTTP1_WS_VERSION },
	{ SV_INIT("proxy-authentication-info"), HTTP1_HOP },
};
/* clang-format on */

enum http1_id http1_id_of(struct sv name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (same_field(name, names[i].name))
			return names[i].id;
	return target_is_override(name) ? HTTP1_OVERRIDE : HTTP1_OTHER;
}

bool http1_field_check(struct sv name, struct sv value)
{
	return name.n && http1_all(name, HTTP1_IN_TOKEN) && http1_all(value, HTTP1_IN_VALUE);
}

const struct http1_rule http1_rules[] = {
	[HTTP1_OTHER] = { .single = false, .ours = false },
	[HTTP1_HOST] = { .single = true, .ours = true },
	[HTTP1_CONNECTION] = { .single = false, .ours = true },
	[HTTP1_CONTENT_LENGTH] = { .single = true, .ours = true },
	[HTTP1_TRANSFER_ENCODING] = { .single = true, .ours = true },
	[HTTP1_UPGRADE] = { .single = true, .ours = true },
	[HTTP1_EXPECT] = { .single = true, .ours = true },
	[HTTP1_WS_KEY] = { .single = true, .ours = false },
	[HTTP1_WS_VERSION] = { .single = true, .ours = false },
	[HTTP1_WS_ACCEPT] = { .single = true, .ours = false },
	[HTTP1_HOP] = { .single = false, .ours = true },
	[HTTP1_ALT_SVC] = { .single = false, .ours = false },
	[HTTP1_OVERRIDE] = { .single = false, .ours = false },
	[HTTP1_END] = { .single = false, .ours = false },
};
