#include "wire/hello.h"

#include <stdlib.h>

#include "tap.h"

/* A message under construction: extensions first, the rest is put around them. */
struct parts {
	char ext[70000];
	size_t ext_n;
	unsigned version;			      /* 0: TLS 1.2 */
	const char *session, *ciphers, *compressions; /* with their lengths */
	size_t session_n, ciphers_n, compressions_n;
	bool bare; /* without extensions at all */
};

static struct parts p;
static char stream[80000];
static size_t stream_n;
static struct writ_err err;
static struct hello h;
static char body[HELLO_ROOM_MAX];

static void reset(void)
{
	p = (struct parts){ .session = "\0",
			    .session_n = 1,
			    .ciphers = "\0\4\x3a\x3a\x13\1",
			    .ciphers_n = 6,
			    .compressions = "\1\0",
			    .compressions_n = 2 };
}

static void ext(unsigned type, const char *data, size_t n)
{
	const char head[] = { (char)(type >> 8), (char)type, (char)(n >> 8), (char)n };

	memcpy(p.ext + p.ext_n, head, 4);
	memcpy(p.ext + p.ext_n + 4, data, n);
	p.ext_n += 4 + n;
}

#define EXT(type, literal) ext((type), (literal), sizeof(literal) - 1)
#define SNI                                                                                        \
	"\0\x0d\0\0\x0a"                                                                           \
	"api.E.test" /* list, type, name */

static void add(char *to, size_t *n, const char *bytes, size_t bytes_n)
{
	memcpy(to + *n, bytes, bytes_n);
	*n += bytes_n;
}

/* The handshake message. */
static size_t message(char *to)
{
	const unsigned version = p.version ? p.version : 0x0303;
	size_t n = 4;

	add(to, &n, (char[]){ (char)(version >> 8), (char)version }, 2);
	add(to, &n, "01234567890123456789012345678901", 32);
	add(to, &n, p.session, p.session_n);
	add(to, &n, p.ciphers, p.ciphers_n);
	add(to, &n, p.compressions, p.compressions_n);
	if (!p.bare) {
		add(to, &n, (char[]){ (char)(p.ext_n >> 8), (char)p.ext_n }, 2);
		add(to, &n, p.ext, p.ext_n);
	}
	memcpy(to, (char[]){ 1, (char)((n - 4) >> 16), (char)((n - 4) >> 8), (char)(n - 4) }, 4);
	return n;
}

/* The same in records of at most @most bytes. */
static void records(size_t most)
{
	static char msg[80000];
	const size_t n = message(msg);

	stream_n = 0;
	for (size_t at = 0; at < n; at += most) {
		const size_t part = n - at < most ? n - at : most;

		add(stream, &stream_n, (char[]){ 22, 3, 1, (char)(part >> 8), (char)part }, 5);
		add(stream, &stream_n, msg + at, part);
	}
}

/* Pushes the stream in pieces of @piece; *@ret_used of it were taken. */
static enum hello_state push(size_t piece, size_t *ret_used)
{
	enum hello_state s = HELLO_MORE;
	size_t total = 0;

	err = (struct writ_err){ 0 };
	hello_init(&h, body, HELLO_ROOM);
	for (size_t at = 0; at < stream_n && s == HELLO_MORE; at += piece) {
		const size_t n = stream_n - at < piece ? stream_n - at : piece;
		char *exact = malloc(n); /* so that reading too far is seen */
		size_t used = 0;

		memcpy(exact, stream + at, n);
		s = hello_push(&h, (struct sv){ exact, n }, &used, &err);
		free(exact);
		total += used;
	}
	*ret_used = total;
	return s;
}

static enum hello_state whole(void)
{
	size_t used;

	records(16384);
	return push(SIZE_MAX / 2, &used);
}

static bool is_bad(void)
{
	return whole() == HELLO_BAD && err.what[0] && err.code == WRIT_E_SYNTAX;
}

static void typical(void)
{
	reset();
	EXT(0x3a3a, "");
	EXT(0, SNI);
	EXT(16, "\0\x0c\2h2\x08http/1.1");
	EXT(43, "\6\x2a\x2a\3\4\3\3");
	EXT(51, "something");
	EXT(0x8a8a, "\0");
}

static void test_good(void)
{
	typical();
	ok(whole() == HELLO_OK && h.version == 0x0304 && !h.has_ech && !h.has_early_data,
	   "a hello");
	is_sv(wire_host_name(&h.name), SV("api.e.test"), "its name");
	ok(h.has_alpn && h.alpn_n == 2 && sv_is(h.alpn[0], "h2") && sv_is(h.alpn[1], "http/1.1"),
	   "its protocols");
	EXT(0xfe0d, "\0\0\1\0\1\1");
	EXT(42, "");
	EXT(41, "binder");
	ok(whole() == HELLO_OK && h.has_ech && h.has_early_data, "with ECH and early data");
	is_sv(wire_host_name(&h.name), SV("api.e.test"), "the outer name");
	reset();
	EXT(0xffce, "x");
	ok(whole() == HELLO_OK && h.has_ech && h.name.kind == WIRE_HOST_NONE && !h.has_alpn &&
		   h.version == 0x0303,
	   "ESNI, no name");
	reset();
	p.bare = true;
	p.version = 0x0301;
	ok(whole() == HELLO_OK && h.version == 0x0301 && h.name.kind == WIRE_HOST_NONE,
	   "TLS 1.0 without extensions");
	reset();
	ok(whole() == HELLO_OK, "no extension in the list");
	EXT(0, "\0\6\0\0\3"
	       "a.\0"); /* not the NUL: length 3 */
	ok(whole() == HELLO_BAD, "a NUL in the name");
	reset();
	EXT(0, "\0\5\0\0\2"
	       "a.");
	ok(whole() == HELLO_OK && sv_is(wire_host_name(&h.name), "a"), "a dot at the end");
}

static void test_splits(void)
{
	static const size_t sizes[] = { 1, 2, 3, 4, 5, 7, 50, 16384 };
	size_t used;

	typical();
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		for (size_t j = 0; j < ARRAY_LEN(sizes); j++) {
			records(sizes[i]);
			ok(push(sizes[j], &used) == HELLO_OK && used == stream_n &&
				   sv_is(wire_host_name(&h.name), "api.e.test") &&
				   h.version == 0x0304,
			   "records of %zu, pieces of %zu", sizes[i], sizes[j]);
		}
	}
	records(16384);
	add(stream, &stream_n, "\x17\3\3\0\1x", 6);
	ok(push(SIZE_MAX / 2, &used) == HELLO_OK && used == stream_n - 6,
	   "what is behind is not taken");
	ok(hello_push(&h, SV("more"), &used, &err) == HELLO_OK && used == 0, "nor later");
	records(16384);
	stream[3] = (char)((stream_n - 4) >> 8);
	stream[4] = (char)(stream_n - 4);
	add(stream, &stream_n, "\x0b", 1);
	ok(push(SIZE_MAX / 2, &used) == HELLO_BAD && push(1, &used) == HELLO_BAD,
	   "another message in the same record");
	records(16384);
	size_t decided = 0;
	const size_t all = stream_n;

	for (stream_n = 0; stream_n < all && !decided; stream_n++)
		decided = push(SIZE_MAX / 2, &used) == HELLO_MORE ? 0 : stream_n + 1;
	stream_n = all;
	ok(!decided, "every prefix asks for more bytes (decided at %zu - 1)", decided);
}

static void test_not_tls(void)
{
	static const struct {
		struct sv bytes;
		enum hello_state state;
	} cases[] = {
		{ SV_INIT("GET / HTTP/1.1\r\n"), HELLO_NOT_TLS },
		{ SV_INIT("\5\1\0"), HELLO_NOT_TLS },
		{ SV_INIT("\x17\3\3\0\1x"), HELLO_NOT_TLS },
		{ SV_INIT("\x15\3\1\0\2\2\x28"), HELLO_NOT_TLS },
		{ SV_INIT("\x16\4"), HELLO_NOT_TLS },
		{ SV_INIT("\x16\3"), HELLO_MORE },
		{ SV_INIT("\x80\x2e\1\0"), HELLO_MORE },
		{ SV_INIT("\x80\x2e\1\0\2"), HELLO_BAD },
		{ SV_INIT("\x80\x2e\1\3\1"), HELLO_BAD },
		{ SV_INIT("\x80\x2e\2\0\2"), HELLO_NOT_TLS },
		{ SV_INIT("\xff\xff\xff\xff\xff"), HELLO_NOT_TLS },
		{ SV_INIT("\x16\3\5\0\5\1"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\0\0\x16"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\x40\1\1"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\x40\0\1"), HELLO_MORE },
		{ SV_INIT("\x16\3\1\0\5\2\0\0\1x"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\0\1\1\x17\3\3\0\1x"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\0\1\1\x14\3\3\0\1\1"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\0\1\1\x80\3\3\0\1\1"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\0\4\1\0\x40\0"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\0\4\1\0\x3f\xfc"), HELLO_MORE },
		{ SV_INIT("\x16\3\1\0\4\1\0\0\0"), HELLO_BAD },
		{ SV_INIT("\x16\3\1\0\5\1\0\0\0x"), HELLO_BAD },
		{ SV_INIT(""), HELLO_MORE },
	};
	size_t used;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		err = (struct writ_err){ 0 };
		hello_init(&h, body, HELLO_ROOM);
		ok(hello_push(&h, cases[i].bytes, &used, &err) == cases[i].state &&
			   (cases[i].state == HELLO_BAD) == (err.what[0] != 0),
		   "first bytes %zu", i);
	}
	hello_init(&h, body, 3);
	ok(hello_push(&h, SV("\x16"), &used, &err) == HELLO_BAD && err.code == WRIT_E_LIMIT,
	   "no room");
}

#define BAD_EXT(type, literal, name)                                                               \
	do {                                                                                       \
		reset();                                                                           \
		EXT(type, literal);                                                                \
		ok(is_bad(), "%s", name);                                                          \
	} while (0)

static void test_bad_extensions(void)
{
	BAD_EXT(0, "", "server name: empty");
	BAD_EXT(0, "\0\0", "server name: no name");
	BAD_EXT(0, "\0\4\0\0\1", "server name: cut");
	BAD_EXT(0, "\0\3\0\0\1a", "server name: list too short");
	BAD_EXT(0, "\0\5\0\0\1a", "server name: list too long");
	BAD_EXT(0, "\0\4\0\0\1a_", "server name: bytes behind");
	BAD_EXT(0, "\0\x08\0\0\1a\0\0\1b", "server name: two");
	BAD_EXT(0, "\0\4\1\0\1a", "server name: another kind");
	BAD_EXT(0, "\0\3\0\0\0", "server name: of no length");
	BAD_EXT(0,
		"\0\x0c\0\0\x09"
		"127.0.0.1",
		"server name: an address");
	BAD_EXT(0,
		"\0\6\0\0\3"
		"::1",
		"server name: an IPv6 address");
	BAD_EXT(0,
		"\0\6\0\0\3"
		"a b",
		"server name: a blank");
	BAD_EXT(0, "\0\5\0\0\2\xc3\xa9", "server name: UTF-8");
	BAD_EXT(16, "\0\0", "protocols: none");
	BAD_EXT(16, "\0\1\0", "protocols: of no length");
	BAD_EXT(16, "\0\3\3h2", "protocols: cut");
	BAD_EXT(16, "\0\3\2h2_", "protocols: bytes behind");
	BAD_EXT(16,
		"\0\x22\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1\1"
		"1",
		"protocols: 17");
	BAD_EXT(43, "", "versions: empty");
	BAD_EXT(43, "\0", "versions: none");
	BAD_EXT(43, "\3\3\4\3", "versions: odd");
	BAD_EXT(43, "\4\3\4", "versions: cut");
	BAD_EXT(43, "\2\3\4_", "versions: bytes behind");
	BAD_EXT(43, "\2\3\0", "versions: only SSL 3");
	BAD_EXT(43, "\2\x1a\x1a", "versions: only pretended ones");
	BAD_EXT(42, "x", "early data with data");
	BAD_EXT(0xfe0d, "", "ECH: empty");
	BAD_EXT(0xfe0d, "\1", "ECH: the inner one");
	reset();
	EXT(0, SNI);
	EXT(0, SNI);
	ok(is_bad(), "two server names");
	reset();
	EXT(99, "");
	EXT(99, "");
	ok(is_bad(), "an unknown one twice");
	reset();
	EXT(41, "x");
	EXT(99, "");
	ok(is_bad(), "a key that is not last");
	reset();
	for (unsigned i = 0; i < 129; i++)
		EXT(1000 + i, "");
	ok(is_bad(), "129 of them");
}

static void test_bad_messages(void)
{
	reset();
	memcpy(p.ext, "\0\0\0", 3);
	p.ext_n = 3;
	ok(is_bad(), "half an extension");
	reset();
	memcpy(p.ext, "\0\5\0\1", 4);
	p.ext_n = 4;
	ok(is_bad(), "an extension longer than the list");
	typical();
	p.version = 0x0300;
	ok(is_bad(), "SSL 3");
	p.version = 0x0304;
	ok(is_bad(), "TLS 1.3 in the old field");
	typical();
	p.session = "\x21"
		    "012345678901234567890123456789012";
	p.session_n = 34;
	ok(is_bad(), "a session id of 33");
	typical();
	p.ciphers = "\0\0";
	p.ciphers_n = 2;
	ok(is_bad(), "no cipher");
	p.ciphers = "\0\3\1\2\3";
	p.ciphers_n = 5;
	ok(is_bad(), "an odd number of bytes of ciphers");
	typical();
	p.compressions = "\0";
	p.compressions_n = 1;
	ok(is_bad(), "no compression method");
	p.compressions = "\1\1";
	p.compressions_n = 2;
	ok(is_bad(), "not even the empty one");
}

static void test_long(void)
{
	static char data[20000];
	static char room[HELLO_ROOM_MAX];
	size_t used;

	typical();
	ext(21, data, 16000);
	records(16384);
	ok(push(1000, &used) == HELLO_OK, "16000 bytes of padding");
	typical();
	ext(21, data, 20000);
	records(16384);
	ok(push(1000, &used) == HELLO_BAD && err.code == WRIT_E_LIMIT && used <= 1000,
	   "20000 are too much, and that is known at once");
	hello_init(&h, room, sizeof(room));
	ok(hello_push(&h, (struct sv){ stream, stream_n }, &used, &err) == HELLO_OK,
	   "unless there is room");
}

int main(void)
{
	test_good();
	test_splits();
	test_not_tls();
	test_bad_extensions();
	test_bad_messages();
	test_long();
	return tap_done();
}
