#include "tlog/cosign.h"

#include <inttypes.h>
#include <string.h>

#include "tlog/checkpoint.h"

#include "base/banned.h"

/*
 * Builds the message that a cosignature covers: two header lines, then the text of the checkpoint.
 */
static int put_message(uint64_t time, struct sv text, struct buf *b, struct writ_err *err)
{
	if (time > COSIGN_TIME_MAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the time of a cosignature is too large");
	buf_fmt(b, "cosignature/v1\ntime %" PRIu64 "\n", time);
	buf_sv(b, text);
	return buf_check(b, err);
}

int cosign_sign(const struct note_key *key, const struct sign_secret *sec, uint64_t time,
		struct sv text, struct buf *b, struct writ_err *err)
{
	scoped_buf message = BUF_INIT(NOTE_MAX + 64);
	struct checkpoint checkpoint;
	uint8_t bytes[COSIGN_BYTES];
	struct signature sig;
	int r;

	if (key->type != NOTE_KEY_COSIGNATURE)
		return writ_fail(err, WRIT_E_BUG, 0, "this key does not cosign");
	if ((r = checkpoint_parse(text, &checkpoint, err)) < 0 ||
	    (r = put_message(time, text, &message, err)) < 0)
		return r;
	sig = sign_bytes(sec, buf_view(&message));
	if (sign_verify(&key->pub, buf_view(&message), &sig, err) < 0)
		return writ_fail(err, WRIT_E_BUG, 0,
				 "the secret key is not that of the public one");
	for (size_t i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(time >> (56 - 8 * i));
	memcpy(bytes + 8, sig.b, sizeof(sig.b));
	note_put_sig(key, (struct sv){ (const char *)bytes, sizeof(bytes) }, b);
	return buf_check(b, err);
}

int cosign_verify(const struct note_key *key, struct sv text,
		  const uint8_t bytes[static COSIGN_BYTES], uint64_t *ret_time,
		  struct writ_err *err)
{
	scoped_buf message = BUF_INIT(NOTE_MAX + 64);
	struct signature sig;
	uint64_t time = 0;
	int r;

	if (key->type != NOTE_KEY_COSIGNATURE)
		return writ_fail(err, WRIT_E_BUG, 0, "this key does not cosign");
	for (size_t i = 0; i < 8; i++)
		time = time << 8 | bytes[i];
	memcpy(sig.b, bytes + 8, sizeof(sig.b));
	if ((r = put_message(time, text, &message, err)) < 0 ||
	    (r = sign_verify(&key->pub, buf_view(&message), &sig, err)) < 0)
		return r;
	*ret_time = time;
	return 0;
}
