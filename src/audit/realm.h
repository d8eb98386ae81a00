/*
 * realm.h - the log of a realm: which sessions there were, and how each one ended
 *
 * Reads:  its directory
 * Writes: its directory, under a lock that many processes share
 * Next:   session/ (start and end), token/ (spends), cli/ (verify, prove), witnesses
 *
 *	lock
 *	wal/0000000000000100	lines from that index on, fewer than 256
 *	tile/...		C2SP tiles and bundles of all entries before it
 *	checkpoint		what was signed last, of what was on the disk then
 *	latest			the same of what may not have been, and in which boot
 *	latest.new		what that was before; nobody reads it
 *
 * Entries come as lines into the newest file of wal/. Once it has 256, their tiles are
 * made, then the next file, then it is removed: at any moment one of both is whole.
 * What was signed stays: a log that is shorter than its checkpoint, or whose entries
 * have another root, is not written to any more. Only losing power may take back what
 * was not synced: then the log says what it lost, and goes on.
 */
#ifndef WRIT_AUDIT_REALM_H
#define WRIT_AUDIT_REALM_H

#include <time.h>

#include "audit/entry.h"
#include "tlog/checkpoint.h"
#include "tlog/tile.h"
#include "tlog/tree.h"

/* Where nodes come from: tiles up to the newest file, then the leaves of its lines. */
struct realm_nodes {
	struct tree_nodes nodes; /* first: this is one */
	struct tile_nodes tiles;
	uint64_t base;
	size_t n;
	struct digest leaf[TILE_WIDTH];
	int dir;
	struct buf tile[TILE_LEVELS]; /* the one read last, of each level */
	struct tile which[TILE_LEVELS];
};

/* Something that was signed. */
struct realm_mark {
	uint64_t size; /* 0: there is none */
	struct digest root;
	bool lost; /* the machine was started since, and it may not be there any more */
};

/* What a file was, as far as that tells whether it was touched. */
struct realm_file {
	uint64_t dev, ino, size, links; /* .ino 0: it was not there */
	struct timespec written, changed;
};

/* The files that what is known of a log was read from. */
struct realm_seen {
	bool known;
	struct realm_file dir, list, wal, checkpoint, latest;
};

enum { REALM_BOOT = 64 };

struct realm {
	int dir, lock, wal; /* -1: not open */
	bool writes;
	char boot[REALM_BOOT];	/* which one this is; empty: not asked yet */
	struct realm_seen seen; /* when realm_rest() let go of it */
	uint64_t bytes;		/* of the newest file of wal/ that count */
	struct tree_frontier tree;
	struct realm_nodes nodes;
	struct realm_mark checkpoint, latest;
	bool unsealed; /* when it was opened it had the end of a session that nobody signed */
};

#define REALM_INIT                                                                                 \
	{                                                                                          \
		.dir = -1, .lock = -1, .wal = -1                                                   \
	}

/*
 * Opens the log at @path, for appending (it is made if it is not there, and what a crash
 * left half done is put right) or only to read. Holds its lock until realm_close().
 */
must_check int realm_open(struct realm *r, const char *path, bool writes, struct writ_err *err);
void realm_close(struct realm *r);

/*
 * Lets go of a log, its lock and its files, and keeps what is known of it. realm_again()
 * goes on with that if nobody has touched the log meanwhile (then *@ret_same), and else
 * reads and checks all of it like realm_open(). Both are for who appends.
 */
void realm_rest(struct realm *r);
must_check int realm_again(struct realm *r, const char *path, bool *ret_same, struct writ_err *err);

/* @sync: it is on the disk when this returns. After a failure the log must be closed. */
must_check int realm_append(struct realm *r, const struct entry *e, bool sync, uint64_t *ret_index,
			    struct writ_err *err);

/*
 * Signs what is there now. @key is the log's, its name the origin. With @sync all of it is
 * on the disk before: so it must be whenever somebody else gets to see the signature. If
 * somebody before us could not sign the end of a session, an entry says so first.
 */
must_check int realm_sign(struct realm *r, const struct note_key *key,
			  const struct sign_secret *sec, bool sync, struct writ_err *err);

/* Appends the signed checkpoint as it stands in its file; empty if there is none. */
must_check int realm_checkpoint(const struct realm *r, struct buf *b, struct writ_err *err);

/* Appends the file @name of the log; nothing if there is none. */
must_check int realm_read(const struct realm *r, const char *name, struct buf *b,
			  struct writ_err *err);
/* Replaces @name in @dir, a log's, by @bytes, with the directories above it. */
must_check int realm_put(int dir, const char *name, struct sv bytes, bool sync,
			 struct writ_err *err);

/* Appends entry @index, as it was hashed. */
must_check int realm_entry(struct realm *r, uint64_t index, struct buf *b, struct writ_err *err);

#endif
