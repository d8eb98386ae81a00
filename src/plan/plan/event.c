#include "plan/event.h"

#include <string.h>

#include "base/banned.h"

/*
 * Encoding of an event that one process sends to another: the members of fixed size, then the two
 * strings with their NULs.
 */

enum { HEAD = offsetof(struct mediate_event, object) };

size_t event_encode(const struct mediate_event *e, char *ret_bytes)
{
	const size_t object = strlen(e->object) + 1, extra = strlen(e->extra) + 1;

	memcpy(ret_bytes, e, HEAD);
	memcpy(ret_bytes + HEAD, e->object, object);
	memcpy(ret_bytes + HEAD + object, e->extra, extra);
	return HEAD + object + extra;
}

/*
 * SECURITY: the sender of an event may be compromised. Check the bytes of enum, bool and text
 * before copying them into a struct, where an invalid value would be undefined behaviour.
 */
static bool is_head(const char *p)
{
	int32_t op;
	char denied;
	uint8_t reason;
	uint16_t cause;

	memcpy(&op, p + offsetof(struct mediate_event, op), sizeof(op));
	memcpy(&denied, p + offsetof(struct mediate_event, denied), sizeof(denied));
	memcpy(&reason, p + offsetof(struct mediate_event, reason), sizeof(reason));
	memcpy(&cause, p + offsetof(struct mediate_event, cause), sizeof(cause));
	return op >= MEDIATE_NONE && op <= MEDIATE_META && (denied == 0 || denied == 1) &&
	       reason < CAP_REASONS && cause < CAUSES &&
	       memchr(p + offsetof(struct mediate_event, comm), 0,
		      sizeof(((struct mediate_event *)0)->comm));
}

bool event_decode(const char *bytes, size_t n, struct mediate_event *ret)
{
	size_t object, extra;

	if (n < HEAD + 2 || n > sizeof(*ret) || bytes[n - 1] != 0 || !is_head(bytes))
		return false;
	object = strlen(bytes + HEAD) + 1;
	if (HEAD + object >= n || object > sizeof(ret->object))
		return false;
	extra = strlen(bytes + HEAD + object) + 1;
	if (HEAD + object + extra != n || extra > sizeof(ret->extra))
		return false;
	*ret = (struct mediate_event){ 0 };
	memcpy(ret, bytes, HEAD);
	memcpy(ret->object, bytes + HEAD, object);
	memcpy(ret->extra, bytes + HEAD + object, extra);
	return true;
}
