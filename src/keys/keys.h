/*
 * keys.h - the keys of a realm: made at first use, never shown
 *
 * Reads:  its directory
 * Writes: its directory
 * Next:   audit/ (checkpoints), token/ (roots of chains), cli/
 *
 * One file per role, in the form other tools read: a private key as PEM (PKCS #8). A key
 * has one role, so that nothing signed for one purpose can be taken for another. Whoever
 * is the user can read them: what they sign is called self-attested.
 */
#ifndef WRIT_KEYS_KEYS_H
#define WRIT_KEYS_KEYS_H

#include "crypto/crypto.h"

enum key_role {
	KEY_NONE = 0,
	KEY_LOG,     /* checkpoints of the realm's log */
	KEY_ISSUE,   /* first tokens of chains */
	KEY_WITNESS, /* what was seen of the logs of others */
	KEY_ROLES,
};

struct key_pair {
	struct sign_public pub;
	struct sign_secret sec; /* crypto_wipe() when done */
};

const char *key_role_name(enum key_role role);

/* The key of that role in @dir; made, with its directory, if @make and there is none. */
must_check int keys_load(const char *dir, enum key_role role, bool make, struct key_pair *ret,
			 struct writ_err *err);

/* The same of a PEM file anywhere, which must be ours alone. */
must_check int keys_load_file(const char *path, struct key_pair *ret, struct writ_err *err);
bool keys_have(const char *dir, enum key_role role);

/*
 * Changing a key: the next one is made beside it, and takes its place when everybody who
 * must know has been told. What the old one signed is checked with its public half, which
 * stays in ROLE.old.pem. Nothing of the old private half does.
 */
must_check int keys_next_make(const char *dir, enum key_role role, struct key_pair *ret,
			      struct writ_err *err);
/* Fails with .sys ENOENT if there is none. */
must_check int keys_next_load(const char *dir, enum key_role role, struct key_pair *ret,
			      struct writ_err *err);
must_check int keys_next_take(const char *dir, enum key_role role, struct writ_err *err);
void keys_next_drop(const char *dir, enum key_role role);

/* Ed25519 keys as PEM: RFC 8410. */
void keys_print_secret(const uint8_t seed[static 32], struct buf *b);
must_check int keys_parse_secret(struct sv pem, uint8_t ret_seed[static 32], struct writ_err *err);
void keys_print_public(const struct sign_public *pub, struct buf *b);
must_check int keys_parse_public(struct sv pem, struct sign_public *ret, struct writ_err *err);

#endif
