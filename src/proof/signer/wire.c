#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "signer/signer.h"

#include "base/banned.h"

#define START(member) offsetof(struct signer_about, member)
#define END(member) offsetof(struct signer_ending, member)
#define ASKED(member) offsetof(struct signer_question, member)

const struct attest_member signer_start_members[SIGNER_START_N] = {
	{ "realm", ATTEST_WORD, START(realm) },	    { "session", ATTEST_WORD, START(session) },
	{ "policy", ATTEST_DIGEST, START(policy) }, { "plan", ATTEST_DIGEST, START(plan) },
	{ "tier", ATTEST_WORD, START(tier) },	    { "adapter", ATTEST_WORD, START(adapter) },
	{ "version", ATTEST_WORD, START(version) }, { "durable", ATTEST_FLAG, START(durable) },
};
const struct attest_member signer_end_members[SIGNER_END_N] = {
	{ "exit", ATTEST_NUMBER, END(exit) },
	{ "entries", ATTEST_NUMBER, END(entries) },
	{ "root", ATTEST_DIGEST, END(root) },
};
const struct attest_member signer_attest_members[SIGNER_ATTEST_N] = {
	{ "realm", ATTEST_WORD, ASKED(realm) },
	{ "session", ATTEST_TEXT, ASKED(session) },
	{ "sign", ATTEST_FLAG, ASKED(sign) },
};
const struct attest_member signer_log_members[SIGNER_LOG_N] = {
	{ "realm", ATTEST_WORD, ASKED(realm) },
	{ "sign", ATTEST_FLAG, ASKED(sign) },
	{ "entries", ATTEST_FLAG, ASKED(entries) },
};

int signer_send(int fd, enum signer_letter letter, struct sv bytes, struct writ_err *err)
{
	char c = (char)letter;
	/* cast away const: sendmsg() does not write to the bytes */
	char *body = (char *)(uintptr_t)bytes.p;
	struct iovec v[2] = { { &c, 1 }, { body, bytes.n } };
	const struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t n;

	if (bytes.n >= SIGNER_MESSAGE_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a message to writ-signer is too long");
	do {
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)(bytes.n + 1)
		       ? 0
		       : writ_fail(err, WRIT_E_SYS, n < 0 ? errno : EIO, "writ-signer is gone");
}

int signer_send_file(int fd, const char *name, struct sv bytes, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	int r;

	buf_fmt(&b, "%s\n", name);
	buf_sv(&b, bytes);
	r = buf_check(&b, err);
	return r == 0 ? signer_send(fd, SIGNER_FILE, buf_view(&b), err) : r;
}

int signer_receive(int fd, struct buf *b, char *ret_letter, struct writ_err *err)
{
	char *room = malloc(SIGNER_MESSAGE_MAX);
	struct iovec v = { room, SIGNER_MESSAGE_MAX };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;
	int r = 0, reset = 0;

	if (!room)
		return writ_nomem(err);
	/*
	 * Read once more after ECONNRESET: a peer that exited with unread input resets the
	 * connection, but its last message is still in the queue.
	 */
	do {
		n = recvmsg(fd, &m, 0);
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset++)));
	b->n = 0;
	if (n < 0 && errno != ECONNRESET)
		r = writ_fail(err, WRIT_E_SYS, errno, "hear the other side");
	else if (n > 0 && (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		r = writ_fail(err, WRIT_E_SYNTAX, 0, "a message is too long");
	*ret_letter = n > 0 && r == 0 ? room[0] : 0;
	if (n > 1 && r == 0)
		buf_add(b, room + 1, (size_t)n - 1);
	free(room);
	return r == 0 ? buf_check(b, err) : r;
}
