/*
 * signer.h - the program that signs statements, and may keep the log for somebody else
 *
 * Reads:  bytes to sign or to check; what a session writes down, as it does
 * Writes: signatures; as the program of `writ signer install`: a log and keys of its own
 * Next:   session/ (seal.c), cli/ (attest, signer)
 *
 * writ-signer speaks over one socket (SOCK_SEQPACKET, descriptor 3), a message per
 * packet: a letter and what belongs to it. What it is for is its only argument:
 *
 *	sign	with the key in the directory that is descriptor 4
 *	verify	a signature by anybody
 *	session	keep the log of one session from its start to its end	(installed only)
 *	attest	what that log says of a session, signed			(installed only)
 *	log	a copy of that log; what witnesses say of it is kept	(installed only)
 *
 * The installed one is setgid and believes nothing that its caller says about a session
 * but what came over the connection on which that session began.
 */
#ifndef WRIT_SIGNER_SIGNER_H
#define WRIT_SIGNER_SIGNER_H

#include <limits.h>
#include <sys/types.h>

#include "attest/bundle.h"
#include "base/buf.h"
#include "base/err.h"

#define SIGNER_CONF "/etc/writ/signer"
#define SIGNER_USER "writ-signer"
#define SIGNER_DIR "/var/lib/writ-signer"

enum {
	SIGNER_SOCKET = 3,
	SIGNER_GIVEN = 4,		/* a directory, or the entries */
	SIGNER_MESSAGE_MAX = 128 << 10, /* bytes of one */
	SIGNER_PART_MAX = 64 << 10,	/* of a file that is sent in parts */
	SIGNER_SESSIONS_MAX = 100000,	/* that it keeps for one user */
};

enum signer_letter {
	SIGNER_START = 'S', /* canonical JSON */
	SIGNER_LINES = 'L', /* public forms, each with its newline; no answer */
	SIGNER_END = 'E',   /* canonical JSON */
	SIGNER_ATTEST = 'A',
	SIGNER_LOG = 'R',    /* canonical JSON */
	SIGNER_COSIGN = 'C', /* realm, newline, a signed note */
	SIGNER_SIGN = 'G',   /* bytes */
	SIGNER_VERIFY = 'V', /* key, length of the signature, signature, bytes */
	/* answers */
	SIGNER_DONE = 'K',
	SIGNER_FILE = 'D', /* name, newline, bytes; of one name again: what follows them */
	SIGNER_NONE = 'N', /* there is no such session, or, with "begun", it has not ended */
	SIGNER_FAIL = 'F', /* why */
};

/* --- wire.c --- */

must_check int signer_send(int fd, enum signer_letter letter, struct sv bytes,
			   struct writ_err *err);
/* SIGNER_FILE: its name, then as many of its bytes as fit. */
must_check int signer_send_file(int fd, const char *name, struct sv bytes, struct writ_err *err);
/* *@ret_letter is 0 at the end of the connection; @b is emptied first. */
must_check int signer_receive(int fd, struct buf *b, char *ret_letter, struct writ_err *err);

/* --- find.c: the installed one --- */

struct signer_install {
	bool there; /* else the user keeps the log */
	char dir[PATH_MAX];
};

/*
 * What the file @conf says, which must be root's; NULL or empty: SIGNER_CONF. "none": the
 * user has chosen to do without. Fails if it is there and cannot be believed.
 */
must_check int signer_find(const char *conf, struct signer_install *ret, struct writ_err *err);
/* Can it become what it has to be, started by us? WRIT_E_UNENFORCEABLE, and what to do. */
must_check int signer_usable(const struct signer_install *in, struct writ_err *err);
/* Has this user the group @gid without the program? */
bool signer_in_group(gid_t gid);
must_check int signer_open_program(const struct signer_install *in, int *ret_fd, gid_t *ret_gid,
				   struct writ_err *err);

/* --- client.c --- */

/* As built or installed beside us: the one that has no group of its own. */
must_check int signer_open_plain(int *ret_fd, struct writ_err *err);

/* Signs @bytes with the key attest.pem of @keys, which is made if it is not there. */
must_check int signer_sign(const char *keys, struct sv bytes, struct attest_key *ret_key,
			   struct buf *sig, struct writ_err *err);
/* 0: it is right; WRIT_E_DENIED: it is not. */
must_check int signer_verify(const struct attest_key *key, struct sv bytes, struct sv sig,
			     struct writ_err *err);

struct signer_about {
	struct sv realm, session, tier, adapter, version;
	struct digest policy, plan;
	bool durable; /* what is in the log is on the disk before it takes effect */
};

/* A session begins: *@ret_fd is where its lines go. */
must_check int signer_begin(const struct signer_install *in, const struct signer_about *about,
			    int *ret_fd, struct writ_err *err);
must_check int signer_tell(int fd, struct sv lines, struct writ_err *err);
must_check int signer_end(int fd, uint64_t exit, uint64_t entries, const struct digest *root,
			  struct writ_err *err);

struct signer_answer {
	bool begun;		     /* it knows that session */
	bool ended;		     /* else only the keys are there */
	struct buf start, end;	     /* proofs */
	struct buf manifest, bundle; /* if it was to sign */
	struct buf vkey, pem;	     /* its keys */
};

void signer_answer_init(struct signer_answer *w);
void signer_answer_clear(struct signer_answer *w);
/* @entries: a file with them, to be signed; -1: nothing is. @session may be empty. */
must_check int signer_attest(const struct signer_install *in, struct sv realm, struct sv session,
			     int entries, struct signer_answer *w, struct writ_err *err);

/* --- copy.c: the log that it keeps, to be read here --- */

/*
 * Below the state directory, until it is closed. log/ is as audit/realm.h has it, and
 * log/log.vkey is whose it is. No more than a copy: nothing is built on it.
 */
struct signer_copy {
	struct signer_install in;
	struct sv realm;
	bool there;	    /* it keeps a log of this realm */
	bool sign;	    /* signs it, synced, before it is copied */
	bool entries;	    /* those in bundles, too; to show how it grew nobody needs them */
	char dir[PATH_MAX]; /* empty: there is none */
	struct sv state;    /* the same: log/ is in it */
};

/* @c has .in, .realm, .sign and .entries; @state is where it may be put. */
must_check int signer_copy_open(struct signer_copy *c, struct sv state, struct writ_err *err);
/* As it is now. For witness/ask.h: @ctx is the copy. */
must_check int signer_copy_fetch(void *ctx, struct writ_err *err);
/* Keeps its checkpoint with what witnesses wrote under it. */
must_check int signer_copy_keep(void *ctx, struct sv note, struct writ_err *err);
void signer_copy_close(struct signer_copy *c);

/* --- client.c, for copy.c --- */

must_check int signer_start(const struct signer_install *in, const char *mode, int given, int *ret,
			    struct writ_err *err);
/* One answer; a refusal, or none, is an error. */
must_check int signer_answer_next(int fd, struct buf *b, char *ret, struct writ_err *err);

/* --- serve.c: the program itself --- */

int signer_main(int argc, char **argv);

#endif
