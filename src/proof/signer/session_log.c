#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "signer/signer_priv.h"

#include "base/banned.h"

/*
 * Logs that their users cannot rewrite. All files are below the current directory, which belongs to
 * the calling user and can be reached only through the signer's group: REALM/log (see
 * audit/realm.h), REALM/keys (log.pem, attest.pem) and REALM/sessions (an empty file per session
 * id). writ-signer counts and hashes the lines of a session as they arrive; nobody can add lines
 * later.
 */

void signer_held_paths(struct held *h)
{
	static const char *const names[] = { "log", "keys", "sessions" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)snprintf(h->path[i], sizeof(h->path[i]), SV_FMT "/%s", SV_ARG(h->realm),
			       names[i]);
}

/*
 * Limits how much a user can store in the data directory. The file "used" grows by one byte per
 * session and per realm; limiting the number of sessions and realms limits the disk space, too.
 */
static int charge_quota(struct writ_err *err)
{
	scoped_fd fd = open("used", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "writ-signer's own directory");
	if (st.st_size >= SIGNER_SESSIONS_MAX)
		return writ_fail(
			err, WRIT_E_DENIED, 0,
			"this user has all of their %d sessions with writ-signer: root can "
			"move them away",
			SIGNER_SESSIONS_MAX);
	return fd_write_all(fd, SV("."), err);
}

static int make_dirs(struct held *h, struct writ_err *err)
{
	char realm[ATTEST_ID_MAX + 1];

	(void)snprintf(realm, sizeof(realm), SV_FMT, SV_ARG(h->realm));
	if (access(realm, F_OK) < 0 && charge_quota(err) < 0)
		return err->code;
	if ((mkdir(realm, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(h->path[HELD_KEYS], 0700) < 0 && errno != EEXIST) ||
	    (mkdir(h->path[HELD_SESSIONS], 0700) < 0 && errno != EEXIST))
		return writ_fail(err, WRIT_E_SYS, errno, "writ-signer's own directory");
	return 0;
}

/*
 * Reserves a session id.
 * SECURITY: an id is accepted once, so nobody can extend or replace a session later.
 */
static int take_id(const struct held *h, struct writ_err *err)
{
	char path[2 * ATTEST_ID_MAX + 32];
	scoped_fd fd = -1;

	(void)snprintf(path, sizeof(path), "%s/" SV_FMT, h->path[HELD_SESSIONS], SV_ARG(h->id));
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == EEXIST)
		return writ_fail(err, WRIT_E_DENIED, 0, "there was a session of this id already");
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "writ-signer's own directory") : 0;
}

static void begin_entry(struct entry *e, const struct held *h, const char *event)
{
	entry_begin(e, event);
	entry_str(e, "session", h->id);
}

/* --- keys --- */

int signer_held_key(const struct held *h, struct key_pair *pair, struct note_key *ret,
		    struct writ_err *err)
{
	const char *origin = arena_fmt(h->a, "writ/log/" SV_FMT, SV_ARG(h->realm));
	const int r = origin ? keys_load(h->path[HELD_KEYS], KEY_LOG, true, pair, err)
			     : writ_nomem(err);

	return r == 0 ? note_key_init(ret, NOTE_KEY_ED25519, sv_from(origin), &pair->pub, err) : r;
}

int signer_held_sign(const struct held *h, struct realm *log, bool sync, struct writ_err *err)
{
	scoped_key_pair pair = { 0 };
	struct note_key key;
	const int r = signer_held_key(h, &pair, &key, err);

	return r < 0 ? r : realm_sign(log, &key, &pair.sec, sync, err);
}

/* --- sessions --- */

static int append(struct held *h, const struct entry *e, bool ends, struct writ_err *err)
{
	scoped_realm log = REALM_INIT;
	int r;

	if ((r = realm_open(&log, h->path[HELD_LOG], true, err)) < 0 ||
	    (r = realm_append(&log, e, h->durable, NULL, err)) < 0)
		return r;
	h->over |= ends;
	return ends ? signer_held_sign(h, &log, h->durable, err) : 0;
}

static int start_session(struct held *h, struct sv message, struct writ_err *err)
{
	struct signer_about about = { 0 };
	scoped_entry e = { 0 };
	int r = attest_decode(h->a, message, signer_start_members, SIGNER_START_N, &about, err);

	if (r < 0)
		return r;
	h->realm = about.realm;
	h->id = about.session;
	h->durable = about.durable;
	signer_held_paths(h);
	if ((r = make_dirs(h, err)) < 0 || (r = charge_quota(err)) < 0 || (r = take_id(h, err)) < 0)
		return r;
	begin_entry(&e, h, "session.start");
	entry_str(&e, "custody", sv_from(attest_custody_name(CUSTODY_OTHER_UID)));
	entry_digest(&e, "plan", &about.plan);
	entry_digest(&e, "policy", &about.policy);
	entry_str(&e, "tier", about.tier);
	entry_str(&e, "adapter", about.adapter);
	entry_str(&e, "version", about.version);
	return append(h, &e, false, err);
}

static int add_lines(struct held *h, struct sv lines, struct writ_err *err)
{
	int r = 0;

	while (r == 0 && lines.n) {
		struct digest leaf;
		struct sv line;

		if (!tlog_line_take(&lines, &line) || line.n == 0 || line.n > ENTRY_PUBLIC_MAX)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a line is none");
		leaf = tree_leaf(line);
		r = tree_append(&h->tree, &leaf, err);
	}
	return r;
}

static int end_session(struct held *h, struct sv message, struct writ_err *err)
{
	const struct digest root = tree_frontier_root(&h->tree);
	struct signer_ending said = { 0 };
	scoped_entry e = { 0 };
	const int r = attest_decode(h->a, message, signer_end_members, SIGNER_END_N, &said, err);

	if (r < 0)
		return r;
	if (said.entries != h->tree.size || !digest_eq(&said.root, &root))
		return writ_fail(err, WRIT_E_DENIED, 0, "these are not the lines that came");
	begin_entry(&e, h, "session.end");
	entry_num(&e, "exit", said.exit);
	entry_num(&e, "entries", said.entries);
	entry_digest(&e, "root", &root);
	return append(h, &e, true, err);
}

/*
 * Records an interrupted session: the connection closed, or a message was wrong, before SIGNER_END.
 */
static int cut_session(struct held *h, struct writ_err *err)
{
	const struct digest root = tree_frontier_root(&h->tree);
	scoped_entry e = { 0 };

	begin_entry(&e, h, "session.cut");
	entry_num(&e, "entries", h->tree.size);
	entry_digest(&e, "root", &root);
	return append(h, &e, true, err);
}

int signer_serve_session(int fd, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct held h = { .a = &a };
	struct writ_err ignored = { 0 };
	char letter = 0;
	int r = signer_receive(fd, &b, &letter, err);

	if (r == 0 && letter != SIGNER_START)
		r = writ_fail(err, WRIT_E_SYNTAX, 0, "a session has to start first");
	if (r == 0)
		r = start_session(&h, buf_view(&b), err);
	if (r < 0)
		return r;
	r = signer_send(fd, SIGNER_DONE, SV(""), err);
	while (r == 0) {
		r = signer_receive(fd, &b, &letter, err);
		if (r < 0 || letter != SIGNER_LINES)
			break;
		r = add_lines(&h, buf_view(&b), err);
	}
	if (r == 0 && letter == SIGNER_END)
		r = end_session(&h, buf_view(&b), err);
	else if (r == 0)
		r = writ_fail(err, WRIT_E_SYS, 0, "the connection ended before the session");
	/*
	 * SECURITY: write one end per session. If the end entry is in the log but could not be
	 * signed, do not add session.cut.
	 */
	if (r < 0 && !h.over)
		(void)!cut_session(&h, &ignored);
	return r == 0 ? signer_send(fd, SIGNER_DONE, SV(""), err) : r;
}

/* --- statements --- */

static int send_keys(const struct held *h, int fd, struct evp_pkey_st *k, struct writ_err *err)
{
	scoped_buf pem = BUF_INIT(1024);
	struct attest_key pub;
	int r;

	if ((r = signer_send_vkey(h, fd, err)) < 0 || (r = p256_public(k, &pub, err)) < 0)
		return r;
	attest_key_print(&pub, &pem);
	return signer_send_file(fd, "attest.pub.pem", buf_view(&pem), err);
}

/* Proves a session. Returns 1 if the session has ended, 0 if it is unknown or still running. */
static int prove(const struct held *h, struct attest_made *m, bool *ret_begun, struct writ_err *err)
{
	struct attest_found found = { 0 };
	scoped_realm log = REALM_INIT;
	int r;

	if ((r = realm_open(&log, h->path[HELD_LOG], true, err)) < 0 ||
	    (r = attest_find(&log, h->id, &found, err)) < 0)
		return r;
	*ret_begun = found.started;
	if (!found.started || !found.ended)
		return 0;
	if ((r = signer_held_sign(h, &log, true, err)) < 0 ||
	    (r = attest_prove(&log, &found, m, err)) < 0)
		return r;
	return 1;
}

/*
 * Signs a statement about a session.
 * SECURITY: sign nothing that the caller composed. The entries must have the root that writ-signer
 * computed while the session ran, and all other parts of the statement come from writ-signer's own
 * log.
 */
static int sign_statement(const struct held *h, int fd, struct evp_pkey_st *k,
			  struct attest_made *m, struct writ_err *err)
{
	scoped_buf entries = BUF_INIT(ATTEST_ENTRIES_MAX), bytes = BUF_INIT(2 * ATTEST_TEXT_MAX);
	scoped_buf sig = BUF_INIT(ATTEST_SIG_MAX), text = BUF_INIT(2 * ATTEST_TEXT_MAX);
	struct attest_key pub;
	struct bundle u;
	int r;

	if ((r = fd_read_all(SIGNER_GIVEN, &entries, err)) < 0 ||
	    (r = attest_make(h->a, buf_view(&entries), m, err)) < 0 ||
	    (r = p256_public(k, &pub, err)) < 0)
		return r;
	bundle_signed(buf_view(&m->payload), &bytes);
	if ((r = p256_sign(k, buf_view(&bytes), &sig, err)) < 0)
		return r;
	u = (struct bundle){ .key = pub.id,
			     .payload = buf_view(&m->payload),
			     .sig = buf_view(&sig) };
	if ((r = bundle_print(&u, &text, err)) < 0 ||
	    (r = signer_send_file(fd, "session.json", buf_view(&m->manifest), err)) < 0)
		return r;
	return signer_send_file(fd, "session.sigstore.json", buf_view(&text), err);
}

static int answer_attest(struct held *h, int fd, bool sign, struct evp_pkey_st *k,
			 struct writ_err *err)
{
	scoped_attest_made m;
	bool begun = false;
	int r;

	attest_made_init(&m);
	if ((r = send_keys(h, fd, k, err)) < 0 ||
	    (h->id.n && (r = prove(h, &m, &begun, err)) < 0))
		return r;
	if (r == 0)
		return signer_send(fd, SIGNER_NONE, begun ? SV("begun") : SV(""), err);
	if ((r = signer_send_file(fd, "start.tlog-proof", buf_view(&m.start), err)) < 0 ||
	    (r = signer_send_file(fd, "end.tlog-proof", buf_view(&m.end), err)) < 0 ||
	    (sign && (r = sign_statement(h, fd, k, &m, err)) < 0))
		return r;
	return signer_send(fd, SIGNER_DONE, SV(""), err);
}

int signer_serve_attest(int fd, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct signer_question q = { 0 };
	struct held h = { .a = &a };
	scoped_p256 *k = NULL;
	scoped_fd keys = -1;
	char letter = 0;
	int r = signer_receive(fd, &b, &letter, err);

	if (r < 0)
		return r;
	if (letter != SIGNER_ATTEST)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that is no question");
	r = attest_decode(&a, buf_view(&b), signer_attest_members, SIGNER_ATTEST_N, &q, err);
	if (r < 0)
		return r;
	h.realm = q.realm;
	h.id = q.session;
	if (h.id.n && !attest_is_word(h.id))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that is no session");
	signer_held_paths(&h);
	if ((r = make_dirs(&h, err)) < 0)
		return r;
	keys = open(h.path[HELD_KEYS], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (keys < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "writ-signer's own directory");
	r = p256_load(keys, &k, err);
	return r == 0 ? answer_attest(&h, fd, q.sign, k, err) : r;
}
