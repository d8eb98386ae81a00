/*
 * signer.h - writ-signer: signs statements, and can keep the log out of the user's reach
 *
 * Theory of operation
 *
 * writ-signer is a separate program for two reasons. It is the only one that links a P-256 library
 * (OpenSSL), and it can hold keys that the user of writ cannot read.
 *
 * As built, without privileges, it signs and verifies for whoever starts it ("sign", "verify").
 * Installed by `writ signer install` it is setgid to its own group. Its data directory is
 * accessible to that group only, so the user's processes cannot read its keys or edit its log. The
 * files in that directory belong to the uid of the caller: only the closed directory protects them.
 *
 * writ starts writ-signer for each use and talks to it over one socket (SOCK_SEQPACKET, descriptor
 * 3). Each packet is one message: a letter and its data. The only argument is the mode:
 *
 * 	sign	sign with the key in the directory that is descriptor 4
 * 	verify	verify a signature of any key
 * 	session	keep the log of one session from its start to its end	(installed only)
 * 	attest	sign a statement about a session in that log		(installed only)
 * 	log	send a copy of that log; store its cosignatures		(installed only)
 *
 * States of a "session" process: waiting for SIGNER_START, then counting and hashing SIGNER_LINES,
 * then SIGNER_END writes session.end to the log and signs it. If the connection closes or a message
 * is wrong before that, session.cut is written instead. A session has exactly one end.
 *
 * Files: client and copy run in writ, find locates the installed program, wire is used by both
 * sides; serve (entry and confinement), session_log, log_access and p256 run in writ-signer only.
 *
 * Invariants
 *   - The installed program believes nothing about a session except what arrived on the connection
 *     that started it. Nobody can add or replace lines later.
 *   - It signs only statements that it composed from its own log.
 *   - It inherits nothing from its caller: environment, directory, descriptors, signals, timers and
 *     umask are reset, and Landlock and seccomp confine it before it reads a message.
 *
 * Common mistakes
 *   - Passing a descriptor of a data file to the caller. The caller owns the file by uid and could
 *     reopen it for writing; send bytes.
 *   - Adding a user to the signer's group. Both sides refuse to work then.
 *
 * Reads:  bytes to sign or verify; the lines of a session while it runs
 * Writes: signatures; if installed, its own log and keys
 * Next:   session/ (seal.c), cli/ (attest, signer)
 */
#ifndef WRIT_SIGNER_SIGNER_H
#define WRIT_SIGNER_SIGNER_H

#include <limits.h>
#include <sys/types.h>

#include "attest/bundle.h"

#define SIGNER_CONF "/etc/writ/signer"
#define SIGNER_USER "writ-signer"
#define SIGNER_DIR "/var/lib/writ-signer"

enum {
	SIGNER_SOCKET = 3,
	/* descriptor that the caller passes: a directory, or the file with the entries */
	SIGNER_GIVEN = 4,
	SIGNER_MESSAGE_MAX = 128 << 10, /* limit for one message to or from writ-signer, in bytes */
	SIGNER_PART_MAX = 64 << 10,	/* longest part of a file per message, in bytes */
	SIGNER_SESSIONS_MAX = 100000,	/* most sessions that one user may store */
};

enum signer_letter {
	SIGNER_START = 'S', /* starts a session; the data is canonical JSON */
	SIGNER_LINES = 'L', /* public forms of log lines, each with a newline; not answered */
	SIGNER_END = 'E',   /* ends a session; the data is canonical JSON */
	SIGNER_ATTEST = 'A',
	SIGNER_LOG = 'R',    /* asks for a copy of the log; the data is canonical JSON */
	SIGNER_COSIGN = 'C', /* stores cosignatures: realm, newline, a signed note */
	SIGNER_SIGN = 'G',   /* asks for a signature of the bytes in the message */
	/* asks to verify a signature: key, length of the signature, signature, bytes */
	SIGNER_VERIFY = 'V',
	/* The following letters are answers of writ-signer. */
	SIGNER_DONE = 'K',
	/*
	 * A file, such as one of the log: name, newline, bytes; a further message with the same
	 * name continues the file.
	 */
	SIGNER_FILE = 'D',
	/* the session or the log is unknown; with the data "begun": the session has not ended */
	SIGNER_NONE = 'N',
	SIGNER_FAIL = 'F', /* writ-signer refuses the request; the data is the text of the error */
};

/* --- wire.c --- */

must_check int signer_send(int fd, enum signer_letter letter, struct sv bytes,
			   struct writ_err *err);
/* Sends a SIGNER_FILE message with a name and bytes. */
must_check int signer_send_file(int fd, const char *name, struct sv bytes, struct writ_err *err);
/*
 * Receives a message into @b, which is emptied first. *@ret_letter is 0 if the peer closed the
 * connection.
 */
must_check int signer_receive(int fd, struct buf *b, char *ret_letter, struct writ_err *err);

/* --- find.c: the installed program --- */

struct signer_install {
	bool there; /* writ-signer is installed; if not, the user keeps the log */
	char dir[PATH_MAX];
};

/*
 * Reads the configuration file @conf, which root must own; NULL or empty means SIGNER_CONF. "none"
 * means that the user has opted out of writ-signer. Fails if the file exists and cannot be trusted.
 */
must_check int signer_find(const char *conf, struct signer_install *ret, struct writ_err *err);
/*
 * Checks whether writ-signer would get its group if this process started it. Otherwise fails with
 * WRIT_E_UNENFORCEABLE and says what the user must do.
 */
must_check int signer_usable(const struct signer_install *in, struct writ_err *err);
/*
 * Checks whether @gid is the real group or a supplementary group of this process. The effective
 * group, which the setgid bit of writ-signer sets, does not count.
 */
bool signer_in_group(gid_t gid);
must_check int signer_open_program(const struct signer_install *in, int *ret_fd, gid_t *ret_gid,
				   struct writ_err *err);

/* --- client.c --- */

/*
 * Opens the writ-signer that runs without a group of its own: below libexec beside this program, in
 * the directory of this program, or below the libexec directory of the build.
 */
must_check int signer_open_plain(int *ret_fd, struct writ_err *err);

/* Signs @bytes with the key attest.pem in the directory @keys; a missing key is made. */
must_check int signer_sign(const char *keys, struct sv bytes, struct attest_key *ret_key,
			   struct buf *sig, struct writ_err *err);
/* Verifies a signature. Returns 0 if the signature is valid, WRIT_E_DENIED if not. */
must_check int signer_verify(const struct attest_key *key, struct sv bytes, struct sv sig,
			     struct writ_err *err);

struct signer_about {
	struct sv realm, session, tier, adapter, version;
	struct digest policy, plan;
	bool durable; /* writ-signer syncs each entry of the realm's log to disk */
};

/* wire.c: the members of the messages SIGNER_START, SIGNER_END, SIGNER_ATTEST and SIGNER_LOG. */
struct signer_ending {
	uint64_t exit, entries;
	struct digest root;
};

struct signer_question {
	struct sv realm, session;
	bool sign, entries;
};

enum { SIGNER_START_N = 8, SIGNER_END_N = 3, SIGNER_ATTEST_N = 3, SIGNER_LOG_N = 3 };
extern const struct attest_member signer_start_members[SIGNER_START_N];
extern const struct attest_member signer_end_members[SIGNER_END_N];
extern const struct attest_member signer_attest_members[SIGNER_ATTEST_N];
extern const struct attest_member signer_log_members[SIGNER_LOG_N];

/*
 * Starts a session with the installed writ-signer. The caller sends the session's lines to
 * *@ret_fd.
 */
must_check int signer_begin(const struct signer_install *in, const struct signer_about *about,
			    int *ret_fd, struct writ_err *err);
must_check int signer_send_lines(int fd, struct sv lines, struct writ_err *err);
must_check int signer_end(int fd, uint64_t exit, uint64_t entries, const struct digest *root,
			  struct writ_err *err);

struct signer_answer {
	bool begun;		     /* writ-signer knows this session */
	/* the session has ended; if not, only .vkey and .pem are set */
	bool ended;
	struct buf start, end;	     /* tlog-proofs of the session's start and end entries */
	struct buf manifest, bundle; /* set if the caller requested a signature */
	struct buf vkey, pem;	     /* public keys of writ-signer */
};

void signer_answer_init(struct signer_answer *w);
void signer_answer_clear(struct signer_answer *w);
/*
 * Asks writ-signer for proofs of @session, which may be empty to get only the keys. @entries is a
 * file with the public entries, to have a statement signed, or -1.
 */
must_check int signer_attest(const struct signer_install *in, struct sv realm, struct sv session,
			     int entries, struct signer_answer *w, struct writ_err *err);

/* --- copy.c: a local copy of the log that writ-signer keeps --- */

/*
 * A temporary copy of writ-signer's log below the state directory, removed by signer_copy_close().
 * log/ has the layout of audit/realm.h, and log/log.vkey is the log's key. The copy is only for
 * reading and proving; nobody appends to the copy.
 */
struct signer_copy {
	struct signer_install in;
	struct sv realm;
	bool there;	    /* writ-signer keeps a log of this realm */
	bool sign;	    /* writ-signer signs and syncs its log before sending the copy */
	/* the copy includes the entry bundles, which consistency proofs do not need */
	bool entries;
	char dir[PATH_MAX]; /* directory of the copy; empty if there is none */
	struct sv state;    /* view of .dir, which contains log/ */
};

/* Copies writ-signer's log below @state. The caller sets .in, .realm, .sign and .entries before. */
must_check int signer_copy_open(struct signer_copy *c, struct sv state, struct writ_err *err);
/* Updates the copy of the log. A callback for witness/ask.h: @ctx is the struct signer_copy. */
must_check int signer_copy_fetch(void *ctx, struct writ_err *err);
/*
 * Has writ-signer store the checkpoint @note with its cosignatures. A callback for witness/ask.h.
 */
must_check int signer_copy_store(void *ctx, struct sv note, struct writ_err *err);
void signer_copy_close(struct signer_copy *c);

/* --- client.c, used by copy.c --- */

must_check int signer_start(const struct signer_install *in, const char *mode, int given, int *ret,
			    struct writ_err *err);
/* Appends the @n members of the struct @from to @b as canonical JSON. */
must_check int signer_encode(const struct attest_member *v, size_t n, const void *from,
			     struct buf *b, struct writ_err *err);
/* Receives one answer of writ-signer. SIGNER_FAIL and a closed connection are errors. */
must_check int signer_answer_next(int fd, struct buf *b, char *ret, struct writ_err *err);

/* --- serve.c: main() of writ-signer --- */

int signer_main(int argc, char **argv);

#endif
