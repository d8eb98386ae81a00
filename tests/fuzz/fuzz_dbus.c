#include "fuzz.h"
#include "facts/dbus.h"

static void inside(struct sv all, struct sv part)
{
	if (part.n && (part.p < all.p || part.p + part.n > all.p + all.n))
		__builtin_trap();
}

/* What systemd, or who pretends to be it, says to us. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv all = { (const char *)data, size };
	struct writ_err err;
	struct dbus_message m;
	struct dbus_reader r;
	struct sv s;
	uint32_t v;
	size_t n;

	if (dbus_length(all, &n, &err) == 0 && (n < DBUS_HEAD || n > DBUS_MAX))
		__builtin_trap();
	if (dbus_decode(all, &m, &err) < 0)
		return 0;
	inside(all, m.path);
	inside(all, m.interface);
	inside(all, m.member);
	inside(all, m.error);
	inside(all, m.signature);
	inside(all, m.body);
	if ((m.type == DBUS_RETURN || m.type == DBUS_ERROR) && m.reply_to == 0)
		__builtin_trap();
	r = (struct dbus_reader){ .bytes = m.body };
	while (dbus_get_str(&r, &s)) {
		inside(m.body, s);
		if (sv_find(s, 0) != SIZE_MAX)
			__builtin_trap();
	}
	r = (struct dbus_reader){ .bytes = m.body };
	while (dbus_get_u32(&r, &v))
		;
	return 0;
}
