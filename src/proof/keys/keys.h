/*
 * keys.h - the private keys of a realm, one file per role
 *
 * Theory of operation
 *
 * A realm is one user's writ installation. It owns up to three Ed25519 keys: one signs checkpoints
 * of the audit log, one signs the first token of a chain, one signs cosignatures for other
 * people's logs. keys_load() reads the key of a role from DIR/ROLE.pem and, if asked, makes it at
 * first use. The file is a PEM private key (PKCS #8, RFC 8410) that other tools can read.
 *
 * Changing a key takes two steps, because verifiers must learn about the new key before the old one
 * disappears:
 *   1. keys_next_make() writes the new key to ROLE.next.pem. The caller announces it, for example
 *      with a key.rotate entry in the log.
 *   2. keys_next_take() renames it to ROLE.pem and appends the old public key to ROLE.old.pem, so
 *      that older signatures can still be verified. The old private key is gone.
 * keys_next_drop() abandons step 1. A crash between the steps leaves ROLE.next.pem; the caller
 * decides which way to recover.
 *
 * Invariants
 *   - One key, one role. A signature made for one purpose can then never be presented as another.
 *   - A key file that other users can read or write is refused.
 *   - Two processes that make the same key at once end up with the same key.
 *
 * Common mistakes
 *   - Forgetting to wipe a struct key_pair: declare it scoped_key_pair.
 *   - Claiming more than self-attestation. Any process of the user can read these keys; writ-signer
 *     (signer/) keeps keys that the user cannot read.
 *
 * Reads:  the directory of the keys
 * Writes: the directory of the keys
 * Next:   audit/ (checkpoints), token/ (roots of chains), cli/
 */
#ifndef WRIT_KEYS_KEYS_H
#define WRIT_KEYS_KEYS_H

#include "crypto/crypto.h"

enum key_role {
	KEY_NONE = 0,
	KEY_LOG,     /* signs checkpoints of the realm's log */
	KEY_ISSUE,   /* signs the first token of a chain */
	KEY_WITNESS, /* cosigns checkpoints of other logs */
	KEY_ROLES,
};

struct key_pair {
	struct sign_public pub;
	struct sign_secret sec; /* private key; wiped by scoped_key_pair or by the caller */
};

#define scoped_key_pair __attribute__((cleanup(keys_wipe))) struct key_pair

void keys_wipe(struct key_pair *k);

/* A buffer with the text of a private key, which is wiped at the end of the buffer's scope. */
#define scoped_secret __attribute__((cleanup(keys_wipe_text))) struct buf
void keys_wipe_text(struct buf *b);

/* Refuses the key file @fd, called @name, unless only this user has access to it. */
must_check int keys_check_file(int fd, const char *name, struct writ_err *err);

const char *keys_role_name(enum key_role role);

/* Loads the key of @role from @dir. With @make, a missing key and its directory are created. */
must_check int keys_load(const char *dir, enum key_role role, bool make, struct key_pair *ret,
			 struct writ_err *err);

/* Loads a key from a PEM file at any path. Only the caller's user may have access to the file. */
must_check int keys_load_file(const char *path, struct key_pair *ret, struct writ_err *err);
/* Writes the key of @seed to the new file @name in @dir. */
must_check int keys_write(int dir, const char *name, const uint8_t seed[static 32],
			  struct writ_err *err);
bool keys_have(const char *dir, enum key_role role);

/*
 * Rotation of the key of a role: keys_next_make() makes the next key, keys_next_load() loads it,
 * keys_next_take() puts it in the place of the current key, keys_next_drop() abandons it.
 */
must_check int keys_next_make(const char *dir, enum key_role role, struct key_pair *ret,
			      struct writ_err *err);
/* Loads the next key. Fails with .sys ENOENT if there is no next key. */
must_check int keys_next_load(const char *dir, enum key_role role, struct key_pair *ret,
			      struct writ_err *err);
must_check int keys_next_take(const char *dir, enum key_role role, struct writ_err *err);
void keys_next_drop(const char *dir, enum key_role role);

/* Print and parse Ed25519 keys as PEM, in the encoding of RFC 8410. */
void keys_print_secret(const uint8_t seed[static 32], struct buf *b);
must_check int keys_parse_secret(struct sv pem, uint8_t ret_seed[static 32], struct writ_err *err);
void keys_print_public(const struct sign_public *pub, struct buf *b);
must_check int keys_parse_public(struct sv pem, struct sign_public *ret, struct writ_err *err);

#endif
