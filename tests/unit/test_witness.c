#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tlog_keys.h"
#include "tree_levels.h"
#include "witness/http.h"
#include "witness/store.h"

/* A witness without its sockets: what it answers, and what it remembers. */

static char top[] = "/tmp/test-witness-XXXXXX";
static struct tlog_pair log_key, other, witness;
static struct digest leaf[64];
static struct tree_levels nodes;
static struct digest *level[TREE_LEVELS];

/* A request about a tree of @size, whose last leaf is another one if @fork. */
static void request(uint64_t old, uint64_t size, bool fork, const struct tlog_pair *by,
		    struct buf *b)
{
	struct checkpoint c = { .origin = by->key.name, .size = size };
	struct witness_request req = { .old_size = old };
	scoped_buf note = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct tree_frontier f = { 0 };

	for (uint64_t i = 0; i < size; i++) {
		struct digest one = leaf[i];

		one.b[0] = (uint8_t)(one.b[0] ^ (fork && i == 1));
		if (tree_append(&f, &one, &err) < 0)
			ok(false, "append");
	}
	c.root = tree_frontier_root(&f);
	if (old && old < size &&
	    tree_prove_consistency(&nodes.nodes, old, size, &req.proof, &err) < 0)
		ok(false, "prove: %s", err.what);
	if (checkpoint_sign(&c, &by->key, &by->sec, &note, &err) < 0)
		ok(false, "sign: %s", err.what);
	req.checkpoint = buf_view(&note);
	b->n = 0;
	if (tlog_witness_request_print(&req, b, &err) < 0)
		ok(false, "print: %s", err.what);
}

static void make_nodes(void)
{
	for (unsigned l = 0; l < 7; l++) {
		level[l] = calloc(64u >> l, sizeof(struct digest));
		for (unsigned i = 0; i < 64u >> l; i++) {
			const uint8_t c = (uint8_t)i;

			level[l][i] =
				l == 0 ? tree_leaf((struct sv){ (const char *)&c, 1 })
				       : tree_node(&level[l - 1][2 * i], &level[l - 1][2 * i + 1]);
		}
	}
	memcpy(leaf, level[0], sizeof(leaf));
	nodes = tree_levels_of((const struct digest *const *)level, 64);
}

static unsigned ask(struct witness_store *k, uint64_t old, uint64_t size, bool fork,
		    struct buf *body)
{
	scoped_buf b = BUF_INIT(WITNESS_REQUEST_MAX);

	request(old, size, fork, &log_key, &b);
	body->n = 0;
	return witness_store_answer(k, buf_view(&b), 1700000000, body);
}

static void test_answers(struct witness_store *k)
{
	scoped_buf body = BUF_INIT(HTTP_ANSWER_BODY), b = BUF_INIT(WITNESS_REQUEST_MAX);
	struct writ_err err = { 0 };
	struct witness_request req;
	uint64_t time;
	struct sv line;

	request(0, 5, false, &log_key, &b);
	ok(witness_store_answer(k, buf_view(&b), 1700000000, &body) == 200,
	   "a log that it never saw");
	ok(tlog_witness_request_parse(buf_view(&b), &req, &err) == 0 &&
		   tlog_witness_answer_read(buf_view(&body), req.checkpoint, &witness.key, &line,
					    &time, &err) == 0 &&
		   time == 1700000000,
	   "its line fits under the checkpoint: %s", err.what);
	ok(ask(k, 5, 5, false, &body) == 200, "the same again");
	ok(ask(k, 0, 5, false, &body) == 409, "from another size");
	is_sv(buf_view(&body), SV("5\n"), "it says what it knows");
	ok(ask(k, 5, 9, false, &body) == 200, "grown");
	ok(ask(k, 5, 9, false, &body) == 409, "from the size before");
	ok(ask(k, 9, 9, true, &body) == 409, "of the same size with another root");
	ok(ask(k, 9, 20, true, &body) == 422, "grown from another history");
	ok(ask(k, 5, 5, false, &body) == 409, "an older one");
	is_sv(buf_view(&body), SV("9\n"), "it has seen more");
	request(0, 5, false, &other, &b);
	body.n = 0;
	ok(witness_store_answer(k, buf_view(&b), 1, &body) == 404 && body.n == 0,
	   "a log it does not know");
	request(9, 12, false, &log_key, &b);
	b.p[b.n - 20] = b.p[b.n - 20] == 'A' ? 'B' : 'A';
	ok(witness_store_answer(k, buf_view(&b), 1, &body) == 403, "a signature that does not fit");
	ok(witness_store_answer(k, SV("old x\n"), 1, &body) == 400, "not a request");
	ok(ask(k, 9, 12, false, &body) == 200, "after all that it goes on");
}

static void test_memory(struct witness_store *k)
{
	scoped_buf body = BUF_INIT(HTTP_ANSWER_BODY), hex = BUF_INIT(80);
	const struct digest d = crypto_sha256(log_key.key.name);
	struct witness_store two = *k;
	struct writ_err err = { 0 };
	char path[256];

	ok(witness_store_open(&two, &err) < 0, "two cannot have one memory");
	witness_store_close(k);
	ok(witness_store_open(k, &err) == 0, "it is started again");
	ok(ask(k, 9, 12, false, &body) == 409, "and remembers");
	is_sv(buf_view(&body), SV("12\n"), "as much as before");
	digest_hex(&d, &hex);
	(void)snprintf(path, sizeof(path), "%s/%s", top, hex.p);
	ok(truncate(path, 10) == 0 && ask(k, 0, 12, false, &body) == 500,
	   "a memory that is damaged is not an empty one");
	/* Nothing is signed that cannot be kept. */
	ok(unlink(path) == 0 && mkdir(path, 0700) == 0 && ask(k, 0, 12, false, &body) == 500 &&
		   body.n == 0,
	   "what cannot be kept is not signed");
	(void)rmdir(path);
}

static void test_http(void)
{
	static const struct {
		const char *bytes;
		unsigned status; /* 0: more is needed, 1: done */
	} cases[] = {
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx",
		  1 },
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nx",
		  0 },
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\n", 0 },
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nxy",
		  400 },
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\nContent-Length: 999999\r\n\r\n",
		  413 },
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\nContent-Length: "
		  "1\r\nContent-Length: 2\r\n\r\n",
		  400 },
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n",
		  411 },
		{ "POST /add-checkpoint HTTP/1.1\r\nHost: a.test\r\n\r\n", 411 },
		{ "GET /add-checkpoint HTTP/1.1\r\nHost: a.test\r\n\r\n", 405 },
		{ "POST /add-checkpoint/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx",
		  404 },
		{ "POST http://a.test/add-checkpoint HTTP/1.1\r\nHost: a.test\r\nContent-Length: "
		  "1\r\n\r\nx",
		  404 },
		{ "nonsense\r\n\r\n", 400 },
	};
	static const char *const bad_urls[] = { "https://1.2.3.4/",  "http://a.test:80/",
						"http://",	     "http://1.2.3.4:99999",
						"http://1.2.3.4/?a", "ftp://1.2.3.4" };
	struct writ_err err = { 0 };
	struct http_url url;
	size_t refused = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned status = 0;
		struct sv body;
		const enum wire_state s =
			witness_http_request_take(sv_from(cases[i].bytes), &body, &status, &err);
		const unsigned got = s == WIRE_DONE ? 1 : s == WIRE_MORE ? 0 : status;

		ok(got == cases[i].status, "request %zu: %u", i, got);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad_urls); i++)
		refused += witness_http_url_parse(sv_from(bad_urls[i]), &url, &err) < 0;
	ok(refused == ARRAY_LEN(bad_urls), "URLs that are none");
	ok(witness_http_url_parse(SV("http://[::1]:81/a/"), &url, &err) == 0 && url.at.port == 81 &&
		   sv_is(url.path, "/a"),
	   "one that is: %s", err.what);
}

int main(void)
{
	struct writ_err err = { 0 };
	struct witness_store k = { .lock = -1 };
	char path[64];

	if (crypto_start(&err) < 0 || !mkdtemp(top))
		return 1;
	log_key = tlog_pair(NOTE_KEY_ED25519, TLOG_TEST_LOG);
	other = tlog_pair(NOTE_KEY_ED25519, "writ.example/log/l-other");
	witness = tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "a");
	make_nodes();
	k.dir = top;
	k.key = witness.key;
	k.sec = witness.sec;
	k.logs = &log_key.key;
	k.logs_n = 1;
	ok(witness_store_open(&k, &err) == 0, "a witness: %s", err.what);
	test_answers(&k);
	test_memory(&k);
	test_http();
	witness_store_close(&k);
	for (unsigned l = 0; l < 7; l++)
		free(level[l]);
	(void)snprintf(path, sizeof(path), "%s/lock", top);
	(void)unlink(path);
	ok(rmdir(top) == 0, "nothing else is left");
	return tap_done();
}
