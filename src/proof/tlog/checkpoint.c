#include "tlog/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "tlog/lines_priv.h"

#include "base/banned.h"

int checkpoint_origin_check(struct sv origin, struct writ_err *err)
{
	static const struct sv others[] = { SV_INIT("eyJ"), SV_INIT("DSSEv1"),
					    SV_INIT("cosignature") };
	const int r = note_name_check(origin, err);

	if (r < 0)
		return r;
	if (sv_find(origin, '/') == SIZE_MAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the origin of a log needs a slash");
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (sv_starts(origin, others[i]))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "the origin of a log must not begin with " SV_FMT,
					 SV_ARG(others[i]));
	return 0;
}

/* Checks that size, root and origin of a checkpoint are possible together. */
static int check_head(const struct checkpoint *c, struct writ_err *err)
{
	const struct digest nothing = tree_empty();

	if (c->size > TREE_SIZE_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "tree size above 2^62");
	if (c->size == 0 && !digest_eq(&c->root, &nothing))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the root of an empty log is another");
	return checkpoint_origin_check(c->origin, err);
}

int checkpoint_parse(struct sv text, struct checkpoint *ret_c, struct writ_err *err)
{
	struct checkpoint c = { 0 };
	struct sv size, root;
	int r;

	if (!tlog_line_take(&text, &c.origin) || !tlog_line_take(&text, &size) ||
	    !tlog_line_take(&text, &root))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a checkpoint has three lines");
	if (text.n)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a checkpoint with more than three lines");
	if (!sv_to_u64(size, UINT64_MAX, &c.size))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the size of a checkpoint is no number");
	if (!tlog_line_hash(root, &c.root))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the root of a checkpoint is no hash");
	r = check_head(&c, err);
	if (r < 0)
		return r;
	*ret_c = c;
	return 0;
}

int checkpoint_print(const struct checkpoint *c, struct buf *b, struct writ_err *err)
{
	const int r = check_head(c, err);

	if (r < 0)
		return r;
	buf_sv(b, c->origin);
	buf_fmt(b, "\n%" PRIu64 "\n", c->size);
	tlog_line_put_hash(&c->root, b);
	return buf_check(b, err);
}

int checkpoint_sign(const struct checkpoint *c, const struct note_key *key,
		    const struct sign_secret *sec, struct buf *b, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(NOTE_MAX), line = BUF_INIT(NOTE_MAX);
	int r = checkpoint_print(c, &text, err);

	if (r < 0)
		return r;
	if (!sv_eq(key->name, c->origin))
		return writ_fail(err, WRIT_E_BUG, 0, "the key is not that of the log");
	r = note_sign(key, sec, buf_view(&text), &line, err);
	if (r < 0)
		return r;
	buf_sv(b, buf_view(&text));
	buf_ch(b, '\n');
	buf_sv(b, buf_view(&line));
	return buf_check(b, err);
}

int checkpoint_open(struct sv bytes, const struct note_key *log, struct note *ret_note,
		    struct checkpoint *ret_c, struct writ_err *err)
{
	struct note_signers who;
	struct checkpoint c;
	struct note n;
	int r;

	if ((r = note_parse(bytes, &n, err)) < 0 || (r = note_verify(&n, log, 1, &who, err)) < 0 ||
	    (r = checkpoint_parse(n.text, &c, err)) < 0)
		return r;
	if (log->type != NOTE_KEY_ED25519 || !sv_eq(c.origin, log->name))
		return writ_fail(err, WRIT_E_DENIED, 0, "a checkpoint of another log");
	if (ret_note)
		*ret_note = n;
	*ret_c = c;
	return 0;
}

int checkpoint_read(struct sv bytes, struct note *ret_note, struct checkpoint *ret_c,
		    struct writ_err *err)
{
	struct note n;
	int r;

	if ((r = note_parse(bytes, &n, err)) < 0 || (r = checkpoint_parse(n.text, ret_c, err)) < 0)
		return r;
	if (ret_note)
		*ret_note = n;
	return 0;
}

/* --- cosignatures --- */

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
