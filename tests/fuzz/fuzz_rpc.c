#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "rpc/rpc.h"

enum { PIECE = 7, CALL_KEPT = 1 };

static void handle_echo(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	scoped_arena a = ARENA_INIT(8 << 20);
	struct sv bytes;
	char **list;
	uint64_t number;
	size_t n;
	bool flag;

	(void)ctx;
	if (rpc_get_strings(&a, json_object_get(m->body, "argv"), &list, &n))
		must(!list[n]);
	if (rpc_get_bytes(&a, json_object_get(m->body, "cwd"), &bytes))
		must(bytes.p[bytes.n] == 0);
	if (rpc_get_number(m->body, "proc", 1000, &number))
		must(number <= 1000);
	if (rpc_get_flag(m->body, "keep", &flag) && flag) {
		call->kind = CALL_KEPT;
		return;
	}
	rpc_result(c, call, json_incref(m->body), NULL, 0);
}

static const struct rpc_method methods[] = { { "echo", 1, handle_echo } };
static const struct rpc_service service = { methods, 1, 1, RPC_E_SESSION_GONE, "gone" };

/* Whatever the server writes is a message for the other end. */
static void check_answers(int fd)
{
	struct rpc_conn *c = rpc_new(fd);
	struct rpc_message m;
	struct writ_err err = { 0 };

	while (rpc_receive(c, &err) > 0)
		while (rpc_next(c, &m)) {
			must(m.kind == RPC_RESULT || m.kind == RPC_ERROR);
			if (m.kind == RPC_ERROR)
				must(rpc_failure(&m, &err) < 0 && err.what[0]);
			rpc_message_clear(&m);
		}
	must(strcmp(c->lost, "the connection was closed") == 0);
	rpc_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sv rest = fuzz_bytes(data, size);
	struct rpc_conn *c;
	struct rpc_message m;
	struct writ_err err = { 0 };
	int fds[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	c = rpc_new(fds[0]);
	while (rest.n && !rpc_is_lost(c)) {
		const struct sv piece = sv_sub(rest, 0, rest.n > 4096 ? 4096 : PIECE);

		if (send(fds[1], piece.p, piece.n, MSG_DONTWAIT) < 0)
			break;
		rest = sv_skip(rest, piece.n);
		while (rpc_receive(c, &err) > 0)
			while (rpc_next(c, &m)) {
				rpc_dispatch(c, &m, &service, NULL);
				rpc_message_clear(&m);
			}
	}
	rpc_free(c);
	check_answers(fds[1]);
	return 0;
}
