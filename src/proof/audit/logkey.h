/*
 * logkey.h - the key that signs the realm's log, and its rotation
 *
 * Reads:  STATE/keys, STATE/log
 * Writes: STATE/keys, STATE/log, and the pin of a key that this module makes
 * Next:   session/seal.c, cli/ (key, audit), witness/
 *
 * Rotation appends an entry `key.rotate`, which contains both verifier keys, and stores a
 * checkpoint signed by both keys in rotated/SIZE, where SIZE includes that entry. Rotation has
 * three effects. An old key that is stolen later cannot sign anything after the key.rotate entry.
 * The new key vouches for all entries before the key.rotate entry. A verifier that pinned the old
 * key can follow to the new key.
 */
#ifndef WRIT_AUDIT_LOGKEY_H
#define WRIT_AUDIT_LOGKEY_H

#include "audit/realm.h"
#include "keys/keys.h"

enum { LOG_ORIGIN_MAX = 64, LOG_PATH = 4096 };

/* Directories of a user, and the name of the realm. If .config is empty, no key is pinned. */
struct log_place {
	struct sv state, config, realm;
};

struct log_key {
	char origin[LOG_ORIGIN_MAX];
	/* log key; its name points to .origin, so this struct must not be moved */
	struct note_key key;
	struct sign_secret sec;
};

#define scoped_log_key __attribute__((cleanup(audit_log_key_wipe))) struct log_key
void audit_log_key_wipe(struct log_key *k);

/*
 * Builds the path DIR/NAME, such as STATE/log or CONFIG/log.policy. Fails if @dir is empty or the
 * path is too long.
 */
must_check int audit_log_path(struct sv dir, const char *name, char ret[static LOG_PATH],
			      struct writ_err *err);
void audit_log_origin(struct sv realm, char ret[static LOG_ORIGIN_MAX]);

/* Loads the log key. With @make a missing log key is made and pinned. */
must_check int audit_log_key_load(const struct log_place *p, bool make, struct log_key *ret,
				  struct writ_err *err);

/*
 * Loads the current log key; makes the key at first use, and completes or abandons an interrupted
 * rotation.
 */
must_check int audit_log_key_current(const struct log_place *p, struct realm *r,
				     struct log_key *ret, struct writ_err *err);
/* Calls realm_sign() with the current log key. */
must_check int audit_log_sign(const struct log_place *p, struct realm *r, bool sync,
			      struct writ_err *err);

/* Replaces the log key by a new key. *@ret_index is the index of the key.rotate entry. */
must_check int audit_log_rotate(const struct log_place *p, uint64_t *ret_index,
				struct writ_err *err);

/* Prints "rotated/SIZE", the name of the file with the checkpoint that both keys signed. */
enum { ROTATED_NAME = 8 + 16 + 1 };
void audit_rotated_name(uint64_t size, char ret[static ROTATED_NAME]);

#endif
