#include "audit/logkey.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "audit/pin.h"
#include "audit/realm_priv.h"
#include "base/fd.h"

#include "base/banned.h"

void audit_log_key_wipe(struct log_key *k)
{
	crypto_wipe(k, sizeof(*k));
}

int audit_log_path(struct sv dir, const char *name, char ret[static LOG_PATH], struct writ_err *err)
{
	const int n = snprintf(ret, LOG_PATH, SV_FMT "/%s", SV_ARG(dir), name);

	return dir.n && n > 0 && n < LOG_PATH
		       ? 0
		       : writ_fail(err, WRIT_E_LIMIT, 0, "no place for %s", name);
}

void audit_log_origin(struct sv realm, char ret[static LOG_ORIGIN_MAX])
{
	(void)snprintf(ret, LOG_ORIGIN_MAX, "writ/log/" SV_FMT, SV_ARG(realm));
}

static int key_of(const struct log_place *p, const struct key_pair *pair, struct log_key *ret,
		  struct writ_err *err)
{
	audit_log_origin(p->realm, ret->origin);
	ret->sec = pair->sec;
	return note_key_init_trusted(&ret->key, NOTE_KEY_ED25519, sv_from(ret->origin), &pair->pub,
				     err);
}

static int pin(const struct log_place *p, const struct log_key *k, struct writ_err *err)
{
	char path[LOG_PATH];
	const int r = p->config.n ? audit_log_path(p->config, "log.policy", path, err) : 0;

	return r < 0 || p->config.n == 0 ? r : pins_add_log(path, &k->key, err);
}

int audit_log_key_load(const struct log_place *p, bool make, struct log_key *ret,
		       struct writ_err *err)
{
	char dir[LOG_PATH];
	struct writ_err ignored = { 0 };
	scoped_key_pair pair = { 0 };
	bool fresh;
	int r = audit_log_path(p->state, "keys", dir, err);

	if (r < 0)
		return r;
	/*
	 * SECURITY: pin without asking only a log key that this call makes. Pinning a key that
	 * already existed would trust a key that an attacker may have put in its place.
	 */
	fresh = make && !keys_have(dir, KEY_LOG);
	if ((r = keys_load(dir, KEY_LOG, make, &pair, err)) < 0 ||
	    (r = key_of(p, &pair, ret, err)) < 0)
		return r;
	/*
	 * Continue if the pin cannot be written: the key can sign without a pin, and verification
	 * reports that the key is not pinned.
	 */
	if (fresh)
		(void)!pin(p, ret, &ignored);
	return 0;
}

void audit_rotated_name(uint64_t size, char ret[static ROTATED_NAME])
{
	(void)snprintf(ret, ROTATED_NAME, "rotated/%016llx", (unsigned long long)size);
}

/* Finds the newest file of rotated/. Returns false if rotated/ has no file. */
static bool newest(const struct realm *log, char ret[static ROTATED_NAME])
{
	scoped_list *d = fd_open_list(log->dir, "rotated");
	const struct dirent *e;
	char name[17] = "";

	while (d && (e = readdir(d)))
		if (strlen(e->d_name) == 16 && strcmp(e->d_name, name) > 0)
			memcpy(name, e->d_name, 17);
	(void)snprintf(ret, ROTATED_NAME, "rotated/%s", name);
	return name[0] != 0;
}

/*
 * Checks whether the rotation to the key @next reached the log: the checkpoint in @name carries a
 * signature of @next and matches the tree.
 */
static bool rotation_is_logged(struct realm *log, const struct log_key *next, const char *name)
{
	scoped_buf b = BUF_INIT(NOTE_MAX);
	struct writ_err no = { 0 };
	struct checkpoint c;
	struct digest root;

	return realm_read(log, name, &b, &no) == 0 &&
	       checkpoint_open(buf_view(&b), &next->key, NULL, &c, &no) == 0 &&
	       c.size <= log->tree.size && tree_root(&log->nodes.nodes, c.size, &root, &no) == 0 &&
	       digest_eq(&root, &c.root);
}

/*
 * Recovers from a crash during a rotation. If the key.rotate entry reached the log, the function
 * completes the rotation; otherwise it drops the next key.
 */
static int recover_rotation(const struct log_place *p, struct realm *log, struct writ_err *err)
{
	char dir[LOG_PATH], name[ROTATED_NAME];
	scoped_log_key next = { 0 };
	scoped_key_pair pair = { 0 };
	struct writ_err none = { 0 };
	int r = audit_log_path(p->state, "keys", dir, err);

	if (r < 0 || keys_next_load(dir, KEY_LOG, &pair, &none) < 0)
		return r < 0 || none.sys == ENOENT ? r : (*err = none).code;
	r = key_of(p, &pair, &next, err);
	if (r < 0)
		return r;
	if (newest(log, name) && rotation_is_logged(log, &next, name)) {
		r = pin(p, &next, err);
		return r == 0 ? keys_next_take(dir, KEY_LOG, err) : r;
	}
	keys_next_drop(dir, KEY_LOG);
	return 0;
}

int audit_log_key_current(const struct log_place *p, struct realm *r, struct log_key *ret,
			  struct writ_err *err)
{
	const int n = recover_rotation(p, r, err);

	return n == 0 ? audit_log_key_load(p, true, ret, err) : n;
}

int audit_log_sign(const struct log_place *p, struct realm *r, bool sync, struct writ_err *err)
{
	scoped_log_key k = { 0 };
	const int n = audit_log_key_current(p, r, &k, err);

	return n == 0 ? realm_sign(r, &k.key, &k.sec, sync, err) : n;
}

static void begin_rotate_entry(struct entry *e, const struct log_key *old,
			       const struct log_key *next)
{
	scoped_buf was = BUF_INIT(NOTE_VKEY_MAX), is = BUF_INIT(NOTE_VKEY_MAX);

	note_key_print(&old->key, &was);
	note_key_print(&next->key, &is);
	entry_begin(e, "key.rotate");
	entry_str(e, "role", SV("log"));
	entry_str(e, "old", buf_view(&was));
	entry_str(e, "new", buf_view(&is));
}

/*
 * Signs with both keys the checkpoint that the log will have after the key.rotate entry @e, and
 * stores that checkpoint before the entry is appended. A reader who finds the entry therefore also
 * finds its signatures.
 */
static int sign_both(struct realm *log, const struct entry *e, const struct log_key *old,
		     const struct log_key *next, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(NOTE_MAX), line = BUF_INIT(ENTRY_PUBLIC_MAX), text = BUF_INIT(1024);
	struct tree_frontier tree = log->tree;
	char name[ROTATED_NAME];
	struct checkpoint c = { .origin = old->key.name };
	struct digest leaf;
	int r;

	if ((r = entry_finish(e, &line, &leaf, err)) < 0 ||
	    (r = tree_append(&tree, &leaf, err)) < 0)
		return r;
	c.size = tree.size;
	c.root = tree_frontier_root(&tree);
	if ((r = checkpoint_print(&c, &text, err)) < 0)
		return r;
	buf_fmt(&b, SV_FMT "\n", SV_ARG(buf_view(&text)));
	if ((r = note_sign(&old->key, &old->sec, buf_view(&text), &b, err)) < 0 ||
	    (r = note_sign(&next->key, &next->sec, buf_view(&text), &b, err)) < 0)
		return r;
	audit_rotated_name(c.size, name);
	return fd_replace_deep(log->dir, name, buf_view(&b), 0600, err);
}

int audit_log_rotate(const struct log_place *p, uint64_t *ret_index, struct writ_err *err)
{
	scoped_realm log = REALM_INIT;
	char dir[LOG_PATH];
	scoped_log_key old = { 0 }, next = { 0 };
	scoped_key_pair pair = { 0 };
	scoped_entry e = { 0 };
	int r;

	if ((r = audit_log_path(p->state, "log", dir, err)) < 0 ||
	    (r = realm_open(&log, dir, true, err)) < 0 ||
	    (r = audit_log_key_current(p, &log, &old, err)) < 0 ||
	    (r = audit_log_path(p->state, "keys", dir, err)) < 0 ||
	    (r = keys_next_make(dir, KEY_LOG, &pair, err)) < 0 ||
	    (r = key_of(p, &pair, &next, err)) < 0)
		return r;
	/*
	 * The order of the steps makes a crash at any point recoverable: the checkpoint of both
	 * keys is stored before the key.rotate entry that needs it, and the new key replaces the
	 * old key only after the entry is in the log. recover_rotation() decides by the key.rotate
	 * entry.
	 */
	begin_rotate_entry(&e, &old, &next);
	if ((r = sign_both(&log, &e, &old, &next, err)) < 0 ||
	    (r = realm_append(&log, &e, true, ret_index, err)) < 0 ||
	    (r = pin(p, &next, err)) < 0 || (r = keys_next_take(dir, KEY_LOG, err)) < 0)
		return r;
	return realm_sign(&log, &next.key, &next.sec, true, err);
}
