/* secret_priv.h - secrets: storage, insertion into requests, search in both directions */
#ifndef WRIT_L7_SECRET_PRIV_H
#define WRIT_L7_SECRET_PRIV_H

#include "l7/fifo.h"
#include "l7/settings.h"
#include "wire/http1.h"
#include "wire/scan.h"

struct l7;
struct call;

enum secret_as { AS_BEARER = 0, AS_BASIC, AS_HEADER, AS_QUERY };

/* A secret, and the requests into which its value is inserted. */
struct secret {
	struct sv name, value, placeholder;
	enum secret_as as;
	struct sv key; /* name of the header or query key */
	struct cap to; /* the requests that get the secret, as one capability */
};

/* All secrets of the session. */
struct vault {
	char *bytes; /* the secret values, in locked memory that core dumps omit */
	size_t size;
	struct secret *v;
	size_t n;
	const struct scan_set *values, *placeholders;
	char *window; /* buffer for searching a whole text */
	size_t window_n;
	/*
	 * longest beginning of a value at the end of a response's bytes, in
	 * thousandths of the value
	 */
	unsigned near;
	unsigned nearer; /* number of times that @near grew */
	/* @nearer is too large: the agent guesses, and no request gets a secret any more */
	bool guessed;
};

must_check int vault_fill(struct l7 *l, const struct l7_settings *s, struct writ_err *err);
void vault_clear(struct vault *v);

/* Tests whether any secret goes to @host and @port; responses of such a server are searched. */
bool l7_secret_bound(const struct l7 *l, struct sv host, uint16_t port);
/*
 * Inserts the secrets that belong to the request. Returns CAUSE_NONE, or the reason why the request
 * must not be sent, such as a placeholder in a place where no secret goes.
 */
enum cap_cause l7_secret_apply(struct call *c);
/* Tests whether the reader searches the request body for placeholders. */
bool l7_secret_searched(const struct call *c);
/* Tests whether a complete text contains a value of @set in some encoding. */
bool l7_secret_found(struct l7 *l, const struct scan_set *set, struct sv text);

/* --- ws_frames.c: WebSocket frames of a client --- */

struct frames;

/* The caller releases the result with free(). */
must_check struct frames *l7_frames_new(const struct l7 *l);
/*
 * Searches the next bytes of a WebSocket client. Returns CAUSE_NONE, or the reason why the bytes
 * must not be forwarded.
 */
must_check enum cap_cause l7_frames_search(struct l7 *l, struct frames *f, struct sv data);

/* --- guard.c: responses of servers that get a secret --- */

struct guard;

/* Drops request fields that would make the response impossible to search. */
void l7_guard_request(struct call *c);
/* Tests for a response that can be searched: complete, and without WebSocket extensions. */
must_check bool l7_guard_sees(const struct http1_response *r);
/*
 * Prepares the search of a response body, or of the frames that a WebSocket server sends. Returns
 * NULL and sets @why if a body in this coding cannot be searched.
 */
must_check struct guard *l7_guard_new(struct l7 *l, struct sv coding, bool websocket,
				      enum cap_cause *why);
void l7_guard_free(struct guard *g);
bool l7_guard_decodes(const struct guard *g);
/*
 * Moves searched bytes from @in to @out while @out has room. @last: no bytes follow @in. Returns
 * false and sets @why if a secret value was found, the agent guesses a value, the bytes cannot be
 * decompressed, or a WebSocket frame cannot be searched.
 */
must_check bool l7_guard_run(struct guard *g, struct fifo *in, bool last, struct fifo *out,
			     enum cap_cause *why);

#endif
