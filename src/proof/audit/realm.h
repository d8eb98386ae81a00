/*
 * realm.h - the log of a realm: which sessions ran, and how each one ended
 *
 * Theory of operation
 *
 * The audit module keeps two kinds of logs. Each session has its own log (slog.h) with everything
 * that happened in it. The realm, one user's writ installation, has one log for all sessions: an
 * entry when a session starts, and one when it ends, which contains the number of entries and the
 * root hash of the session's log. The log key signs checkpoints of the realm's log. A later change
 * to any entry of any session therefore contradicts a signature.
 *
 * Files of the module:
 *   entry    one entry: a line of JSON, and the hash that represents it in a tree
 *   slog     the log of one session
 *   realm    the log of the realm (this file; realm_load, realm_files)
 *   logkey   the key that signs the realm's log, and its rotation
 *   pin      the keys that this user trusts
 *   verify   checks a realm's log and the session logs against signatures and pinned keys
 *
 * Files of a realm's log:
 *
 * 	lock			flock()ed by every process that reads or appends
 * 	wal/0000000000000100	lines from that index on, fewer than 256
 * 	tile/...		C2SP tiles and bundles of all entries before it
 * 	checkpoint		last signed note; its entries were synced to disk before
 * 	latest			boot id, then a newer signed note whose entries may not be synced
 * 	latest.new		the previous contents of latest; never read
 * 	cosigned		last checkpoint that witnesses cosigned (written by witness/)
 * 	rotated/SIZE		checkpoints of key rotations, signed by both keys (logkey.h)
 *
 * Appending writes one line to the newest file of wal/. When that file has 256 lines, realm_roll()
 * writes their tiles, creates the next file, and then removes the full one. A crash at any point
 * leaves the lines or the tiles complete.
 *
 * Signing does not sync by default: an fdatasync() per session would cost more than the rest of a
 * short session. Such a signature goes to latest, together with the boot id. After a power loss the
 * log may be shorter than latest says; the boot id then differs, and the log records the loss in an
 * entry log.lost and continues. Without a reboot the same situation is damage.
 *
 * Invariants
 *   - Signed entries stay. A log that is shorter than its checkpoint, or whose entries have another
 *     root, is not appended to any more.
 *   - A signature that leaves this machine covers only synced entries.
 *   - The realm's log contains nothing private, so it can be published as it is.
 *
 * Common mistakes
 *   - Appending after realm_append() failed. Close the log; the next realm_open() repairs it.
 *   - Trusting realm_open() to verify signatures. It only compares roots; verify.h checks keys.
 *
 * Reads:  the directory of the log
 * Writes: the directory of the log, under a lock that many processes share
 * Next:   session/ (start and end), token/ (spends), cli/ (verify, prove), witnesses
 */
#ifndef WRIT_AUDIT_REALM_H
#define WRIT_AUDIT_REALM_H

#include <time.h>

#include "audit/entry.h"
#include "tlog/checkpoint.h"
#include "tlog/tile.h"

/*
 * A tree_nodes source for the realm's log: tiles for entries before the newest file of wal/, leaf
 * hashes in memory for the lines of that file.
 */
struct realm_nodes {
	/* must be first: callers cast between struct tree_nodes and struct realm_nodes */
	struct tree_nodes nodes;
	struct tile_nodes tiles;
	uint64_t base;
	size_t n;
	struct digest leaf[TILE_WIDTH];
	int dir;
	struct buf tile[TILE_LEVELS]; /* tile read last, for each level */
	struct tile which[TILE_LEVELS];
};

/* A signed state of the log's tree. */
struct realm_mark {
	uint64_t size; /* entries that the signature covers; 0: never signed */
	struct digest root;
	/*
	 * The signature was made before this boot, so a power loss may have removed entries that it
	 * covers.
	 */
	bool lost;
};

/* Identity and times of a file, to detect whether the file changed. */
struct realm_file {
	/* identity of the file; ino is 0 if the file does not exist */
	uint64_t dev, ino, size, links;
	struct timespec written, changed;
};

/*
 * State of the files from which the fields of struct realm were read; dir.ino is 0 if the state is
 * not known. The struct has no padding, because two such structs are compared as bytes.
 */
struct realm_seen {
	struct realm_file dir, list, wal, checkpoint, latest;
};
_Static_assert(sizeof(struct realm_seen) == 5 * (4 * 8 + 2 * 16), "the state has no padding");

enum { REALM_BOOT = 64 };

struct realm {
	int dir, lock, wal; /* descriptors of the log's directory and files; -1 if not open */
	bool writes;
	char boot[REALM_BOOT];	/* id of this boot; empty until realm_boot_id() reads it */
	struct realm_seen seen; /* state of the log's files when realm_suspend() closed them */
	uint64_t bytes;		/* length of the newest file of wal/, without a torn last line */
	struct tree_frontier tree;
	struct realm_nodes nodes;
	struct realm_mark checkpoint, latest;
	/* an earlier process recorded the end of a session and could not sign the log */
	bool unsigned_end;
};

#define REALM_INIT                                                                                 \
	{                                                                                          \
		.dir = -1, .lock = -1, .wal = -1                                                   \
	}

#define scoped_realm __attribute__((cleanup(realm_close))) struct realm

/*
 * Opens the log at @path and holds the log's lock until realm_close(). With @writes the caller can
 * append to the log: a missing log is created, and traces of a crash are repaired.
 */
must_check int realm_open(struct realm *r, const char *path, bool writes, struct writ_err *err);
void realm_close(struct realm *r);

/*
 * realm_suspend() closes a log, its lock and its files, but keeps the state in memory.
 * realm_resume() reopens the log: if no other process changed the files meanwhile, it keeps using
 * the state in memory and sets *@ret_same; otherwise it reads and checks the log like realm_open().
 * Both functions are only for logs opened for appending.
 */
void realm_suspend(struct realm *r);
must_check int realm_resume(struct realm *r, const char *path, bool *ret_same,
			    struct writ_err *err);

/*
 * Appends an entry to the realm's log. With @sync the entry is on disk when realm_append() returns.
 * After a failure the caller must close the log.
 */
must_check int realm_append(struct realm *r, const struct entry *e, bool sync, uint64_t *ret_index,
			    struct writ_err *err);

/*
 * Signs the current tree with the log key @key, whose name is the origin. With @sync all entries
 * are on disk before the signature is written; @sync is required before anyone outside this machine
 * can see the signature. If an earlier process could not sign the end of a session, an entry
 * log.unsigned is appended first.
 */
must_check int realm_sign(struct realm *r, const struct note_key *key,
			  const struct sign_secret *sec, bool sync, struct writ_err *err);

/* Appends the newest signed checkpoint to @b; nothing if the log was never signed. */
must_check int realm_checkpoint(const struct realm *r, struct buf *b, struct writ_err *err);

/*
 * Appends the contents of the log's file @name to @b; appends nothing if the file does not exist.
 */
must_check int realm_read(const struct realm *r, const char *name, struct buf *b,
			  struct writ_err *err);
/* Appends the entry with index @index to @b, exactly the bytes that were hashed. */
must_check int realm_entry(struct realm *r, uint64_t index, struct buf *b, struct writ_err *err);

#endif
