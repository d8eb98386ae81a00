/* Frames, descriptors, calls and their limits. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

#include "base/fd.h"
#include "rpc/rpc.h"

struct pair {
	struct rpc_conn *server;
	int client; /* raw */
};

static void pair_open(struct pair *p)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		abort();
	p->server = rpc_new(fds[0]);
	p->client = fds[1];
	if (!p->server)
		abort();
}

static void pair_close(struct pair *p)
{
	rpc_free(p->server);
	close(p->client);
}

static void put(const struct pair *p, const char *text, const int *fds, size_t fds_n)
{
	struct writ_err err = { 0 };

	if (packet_send(p->client, sv_from(text), fds, fds_n, &err) < 0)
		abort();
}

/* --- the service under test --- */

enum { RUNNING = 1, ENDED = 2, CALL_KEPT = 1 };

struct log {
	unsigned handled;
	size_t fds;
	char text[64];
};

static void handle_echo(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	struct log *l = ctx;

	l->handled++;
	l->fds = m->fds_n;
	rpc_result(c, call, json_incref(m->body), m->fds, m->fds_n);
}

static void handle_keep(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	uint64_t n = 0;

	(void)c;
	if (!rpc_get_number(m->body, "n", 1000, &n))
		abort();
	((struct log *)ctx)->handled++;
	call->kind = CALL_KEPT;
	call->number = (uint32_t)n;
}

static const struct rpc_method methods[] = {
	{ "echo", RUNNING | ENDED, handle_echo },
	{ "keep", RUNNING, handle_keep },
};

static struct rpc_service service = { methods, ARRAY_LEN(methods), RUNNING, RPC_E_SESSION_GONE,
				      "it has ended" };

static void serve(struct pair *p, struct log *l)
{
	struct rpc_message m;
	struct writ_err err = { 0 };

	while (rpc_receive(p->server, &err) > 0)
		while (rpc_next(p->server, &m)) {
			rpc_dispatch(p->server, &m, &service, l);
			rpc_message_clear(&m);
		}
}

/* What the server wrote, without blocking. */
static const char *answers(const struct pair *p)
{
	static char text[65536];
	const ssize_t n = recv(p->client, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static const char *ask(struct pair *p, struct log *l, const char *text)
{
	put(p, text, NULL, 0);
	serve(p, l);
	return answers(p);
}

static bool has(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	printf("# %s\n", text);
	return false;
}

/* --- frames --- */

static void test_frames(void)
{
	struct pair p;
	struct log l = { 0 };
	const char *got;

	pair_open(&p);
	got = ask(&p, &l,
		  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"a\":[1]}}\n");
	is_str(got, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1]}}\n",
	       "a request is answered");
	got = ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}\n");
	ok(l.handled == 2 && !*got, "a notification is handled and not answered");
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",", NULL, 0);
	serve(&p, &l);
	got = ask(&p, &l,
		  "\"method\":\"echo\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}\n");
	ok(has(got, "\"id\":\"x\"") && has(got, "\"id\":2"), "a split line, and two lines at once");
	ok(has(ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"no.such\"}\n"),
	       "\"code\":\"method_not_found\""),
	   "an unknown method");
	ok(has(ask(&p, &l, "nonsense\n"), "\"id\":null,\"error\":{\"code\":-32700"), "no JSON");
	ok(has(ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":4,\"id\":5,\"method\":\"echo\"}\n"),
	       "-32700"),
	   "a key twice");
	ok(has(ask(&p, &l, "[]\n"), "-32600") && has(ask(&p, &l, "{}\n"), "-32600"),
	   "JSON that is no message");
	ok(has(ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"echo\"}\n"), "-32600") &&
		   has(ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"echo\"}\n"),
		       "-32600"),
	   "an id is a string or an integer");
	ok(has(ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"echo\",\"params\":[1]}\n"),
	       "\"id\":6,\"error\":{\"code\":-32602"),
	   "parameters are an object");
	ok(!rpc_is_lost(p.server), "none of this ends the connection");
	ok(has(ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"echo\"}\n"),
	       "\"id\":7,\"result\""),
	   "and the next request is answered");
	pair_close(&p);
}

static void test_depth(void)
{
	struct pair p;
	struct log l = { 0 };
	char text[256] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"a\":";
	size_t n = strlen(text);

	pair_open(&p);
	memset(text + n, '[', 30);
	memset(text + n + 30, ']', 30);
	memcpy(text + n + 60, "}}\n", 4);
	ok(has(ask(&p, &l, text), "\"result\""), "32 levels");
	memset(text + n, '[', 31);
	memset(text + n + 31, ']', 31);
	memcpy(text + n + 62, "}}\n", 4);
	ok(has(ask(&p, &l, text), "-32700"), "33 are too many");
	pair_close(&p);
}

static void test_length(void)
{
	struct pair p;
	struct log l = { 0 };
	static char text[65536];
	size_t sent = 0;

	memset(text, ' ', sizeof(text));
	pair_open(&p);
	while (!rpc_is_lost(p.server) && sent < (2u << 20)) {
		const ssize_t n = send(p.client, text, sizeof(text), MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		serve(&p, &l);
	}
	ok(rpc_is_lost(p.server) && sent > RPC_LINE_MAX && sent <= RPC_LINE_MAX + 4 * sizeof(text),
	   "a line without an end ends the connection after %zu bytes", sent);
	ok(has(answers(&p), "-32600"), "with a reason");
	pair_close(&p);
}

/* --- calls --- */

static void test_calls(void)
{
	struct pair p;
	struct log l = { 0 };
	struct rpc_call *call;
	char text[128];
	const char *got;

	pair_open(&p);
	for (int i = 0; i < RPC_CALLS_MAX; i++) {
		snprintf(text, sizeof(text),
			 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"keep\",\"params\":{\"n\":%d}}"
			 "\n",
			 i, i);
		put(&p, text, NULL, 0);
		serve(&p, &l);
	}
	ok(l.handled == RPC_CALLS_MAX && !*answers(&p), "64 requests may wait");
	got = ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":64,\"method\":\"keep\"}\n");
	ok(has(got, "\"id\":64") && has(got, "\"code\":\"limit\"") && l.handled == RPC_CALLS_MAX,
	   "the 65th is refused");
	call = rpc_find_call(p.server, CALL_KEPT, 40);
	rpc_result(p.server, call, NULL, NULL, 0);
	call = rpc_find_call(p.server, CALL_KEPT, 3);
	rpc_refuse(p.server, call, RPC_E_DENIED, "no \xff%s", "!");
	got = answers(&p);
	ok(has(got, "{\"jsonrpc\":\"2.0\",\"id\":40,\"result\":{}}\n") &&
		   has(got, "\"id\":3,\"error\":{\"code\":-32000,\"message\":\"no \xef\xbf\xbd!\","
			    "\"data\":{\"code\":\"denied\"}}"),
	   "answers come in any order");
	ok(!rpc_find_call(p.server, CALL_KEPT, 40), "an answered call is gone");
	got = ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"echo\"}\n");
	ok(has(got, "\"id\":5") && has(got, "limit"), "an id in use is refused");
	service.state = ENDED;
	got = ask(&p, &l, "{\"jsonrpc\":\"2.0\",\"id\":100,\"method\":\"keep\"}\n");
	ok(has(got, "session_gone") && has(got, "it has ended"), "a method in the wrong state");
	service.state = RUNNING;
	pair_close(&p);
}

static void test_slow_client(void)
{
	struct pair p;
	struct log l = { 0 };
	static char text[65536];
	size_t n;

	n = (size_t)snprintf(
		text, sizeof(text),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"a\":\"");
	memset(text + n, 'x', 60000);
	memcpy(text + n + 60000, "\"}}\n", 5);
	pair_open(&p);
	for (int i = 0; i < 100 && !rpc_is_lost(p.server); i++) {
		put(&p, text, NULL, 0);
		serve(&p, &l);
	}
	ok(rpc_is_lost(p.server) && l.handled < 60 && l.handled > 30,
	   "a client that does not read loses its connection after %u answers", l.handled);
	pair_close(&p);
}

/* --- descriptors --- */

static size_t open_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_fds(void)
{
	const size_t before = open_fds();
	const int two[] = { 0, 1 };
	struct pair p;
	struct log l = { 0 };
	struct rpc_conn *c;
	struct rpc_message m;
	struct writ_err err = { 0 };

	pair_open(&p);
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n", NULL, 0);
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"fds\":2,\"method\":\"echo\"}\n", two, 2);
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"echo\"}\n", NULL, 0);
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":4,\"fds\":1,", two, 1);
	serve(&p, &l);
	ok(l.handled == 3 && !rpc_is_lost(p.server), "descriptors go to their own message");
	c = rpc_new(dup(p.client));
	put(&p, "\"method\":\"echo\"}\n", NULL, 0);
	serve(&p, &l);
	ok(l.handled == 4 && l.fds == 1, "also where its end comes later");
	while (rpc_receive(c, &err) > 0)
		;
	ok(rpc_next(c, &m) && m.fds_n == 0, "the answer to the first has none");
	rpc_message_clear(&m);
	ok(rpc_next(c, &m) && m.fds_n == 2 && m.kind == RPC_RESULT, "that to the second has two");
	rpc_message_clear(&m);
	rpc_free(c);
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":5,\"fds\":2,\"method\":\"echo\"}\n", two, 1);
	serve(&p, &l);
	ok(rpc_is_lost(p.server) && l.handled == 4, "a wrong count ends the connection");
	pair_close(&p);
	pair_open(&p);
	put(&p, "nonsense\n", two, 2);
	serve(&p, &l);
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"echo\"}\n", NULL, 0);
	serve(&p, &l);
	ok(l.handled == 5 && l.fds == 0, "those of a line that is not understood go to nobody");
	pair_close(&p);
	ok(open_fds() == before, "none is left open");
}

static void test_file(void)
{
	static char big[300000];
	char *list[] = { big, NULL };
	struct pair p;
	struct log l = { 0 };
	struct rpc_conn *c;
	struct writ_err err = { 0 };
	scoped_fd null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int64_t id = 0;

	memset(big, 'x', sizeof(big) - 1);
	pair_open(&p);
	c = rpc_new(dup(p.client));
	ok(rpc_request(c, "keep", json_pack("{s:i,s:o}", "n", 9, "argv", rpc_strings(list)), &null,
		       1, &id, &err) == 0,
	   "a large request");
	serve(&p, &l);
	ok(l.handled == 1 && rpc_find_call(p.server, CALL_KEPT, 9), "travels in a file");
	put(&p, "{\"jsonrpc\":\"2.0\",\"id\":5,\"fds\":1,\"file\":true,\"method\":\"echo\"}\n",
	    &null, 1);
	serve(&p, &l);
	ok(has(answers(&p), "invalid_params") && l.handled == 1,
	   "a file of another kind is not read");
	rpc_free(c);
	pair_close(&p);
}

/* --- values, and the asking side --- */

static void test_values(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	char odd[] = "a\xff", plain[] = "b";
	char *const list[] = { odd, plain, NULL };
	scoped_json *v = rpc_strings(list);
	scoped_json *nul = rpc_bytes(SV("a\0b"));
	struct sv bytes;
	char **got = NULL;
	size_t n = 0;

	ok(rpc_get_strings(&a, v, &got, &n) && n == 2 && !strcmp(got[0], odd) &&
		   !strcmp(got[1], "b") && !got[2],
	   "strings of any bytes survive");
	ok(rpc_get_bytes(&a, nul, &bytes) && sv_eq(bytes, SV("a\0b")), "and bytes with a NUL");
	json_array_append(v, nul);
	ok(!rpc_get_strings(&a, v, &got, &n), "which are no string");
}

static void test_asking(void)
{
	struct pair p;
	struct log l = { 0 };
	struct rpc_conn *c;
	struct rpc_message m;
	struct writ_err err = { 0 };
	int64_t id = 0;

	pair_open(&p);
	c = rpc_new(dup(p.client));
	ok(rpc_call(c, "keep", json_pack("{s:i}", "n", 1), 20, NULL, &err) == WRIT_E_SYS &&
		   err.sys == ETIMEDOUT,
	   "a server that does not answer");
	ok(rpc_request(c, "no.such", json_object(), NULL, 0, &id, &err) == 0, "a request");
	serve(&p, &l);
	rpc_notify(p.server, "news", json_object());
	ok(rpc_wait(c, 0, &m, &err) == 1 && rpc_answers(&m, id) && m.kind == RPC_ERROR &&
		   rpc_failure(&m, &err) == WRIT_E_DENIED && strstr(err.what, "no.such"),
	   "an error becomes one of ours");
	rpc_message_clear(&m);
	ok(rpc_wait(c, 0, &m, &err) == 1 && m.kind == RPC_NOTIFICATION && !strcmp(m.method, "news"),
	   "a notification");
	rpc_message_clear(&m);
	err = (struct writ_err){ .code = WRIT_E_SYS, .sys = EACCES, .what = "open it" };
	rpc_refuse_err(p.server, rpc_find_call(p.server, CALL_KEPT, 1), &err);
	ok(rpc_wait(c, 0, &m, &err) == 1 && rpc_failure(&m, &err) == WRIT_E_SYS &&
		   err.sys == EACCES && !strcmp(err.what, "open it"),
	   "an errno survives");
	rpc_message_clear(&m);
	rpc_free(c);
	pair_close(&p);
}

int main(void)
{
	test_frames();
	test_depth();
	test_length();
	test_calls();
	test_slow_client();
	test_fds();
	test_file();
	test_values();
	test_asking();
	return tap_done();
}
