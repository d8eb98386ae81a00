/*
 * logkey.h - who signs the realm's log, and how another key takes over
 *
 * Reads:  STATE/keys, STATE/log
 * Writes: the same, and the pin of a key that it makes
 * Next:   session/seal.c, cli/ (key, audit), witness/
 *
 * A new key takes over by an entry, `key.rotate`, that has both as verifier keys, and by a
 * checkpoint right behind it that both have signed (rotated/SIZE). So a key that was given
 * up, or stolen later, cannot speak for anything behind that entry, the new one vouches for
 * everything before it, and who pinned the old one can follow to the new one.
 */
#ifndef WRIT_AUDIT_LOGKEY_H
#define WRIT_AUDIT_LOGKEY_H

#include "audit/realm.h"
#include "keys/keys.h"

enum { LOG_ORIGIN_MAX = 64, LOG_PATH = 4096 };

/* Directories of a user, and the name of the realm. @config may be empty: nothing is pinned. */
struct log_place {
	struct sv state, config, realm;
};

struct log_key {
	char origin[LOG_ORIGIN_MAX];
	struct note_key key; /* its name is @origin: do not move */
	struct sign_secret sec;
};

#define scoped_log_key __attribute__((cleanup(log_key_wipe))) struct log_key
void log_key_wipe(struct log_key *k);

/* STATE/NAME, or CONFIG/log.policy; fails if that is too long. */
must_check int log_path(struct sv dir, const char *name, char ret[static LOG_PATH],
			struct writ_err *err);
void log_origin(struct sv realm, char ret[static LOG_ORIGIN_MAX]);

/* With @make a key that is made is pinned as well. */
must_check int log_key_load(const struct log_place *p, bool make, struct log_key *ret,
			    struct writ_err *err);

/* The key there is now; makes it at first, and ends a change that was cut off. */
must_check int log_key_now(const struct log_place *p, struct realm *r, struct log_key *ret,
			   struct writ_err *err);
/* realm_sign() with it. */
must_check int log_sign(const struct log_place *p, struct realm *r, bool sync,
			struct writ_err *err);

/* Another key from now on; *@ret_index is that of the entry that says so. */
must_check int log_rotate(const struct log_place *p, uint64_t *ret_index, struct writ_err *err);

/* "rotated/SIZE", where the checkpoint of both keys is. */
enum { ROTATED_NAME = 8 + 16 + 1 };
void rotated_name(uint64_t size, char ret[static ROTATED_NAME]);

#endif
