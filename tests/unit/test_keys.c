#include "tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "keys/keys.h"

static char top[] = "/tmp/test-keys-XXXXXX";

static const char *at(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void test_pem(void)
{
	/* The example of RFC 8410, section 10.3. */
	static const char example[] =
		"-----BEGIN PRIVATE KEY-----\n"
		"MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
		"-----END PRIVATE KEY-----\n";
	static const char public[] =
		"-----BEGIN PUBLIC KEY-----\n"
		"MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
		"-----END PUBLIC KEY-----\n";
	scoped_buf b = BUF_INIT(512), p = BUF_INIT(512);
	struct writ_err err = { 0 };
	struct sign_public pub, read;
	struct sign_secret sec;
	uint8_t seed[32];
	size_t good = 0;

	ok(keys_parse_secret(sv_from(example), seed, &err) == 0, "a key of others: %s", err.what);
	keys_print_secret(seed, &b);
	is_sv(buf_view(&b), sv_from(example), "printed as it was");
	sign_keypair(seed, &pub, &sec);
	keys_print_public(&pub, &p);
	is_sv(buf_view(&p), sv_from(public), "its public half");
	ok(keys_parse_public(sv_from(public), &read, &err) == 0 && memcmp(&pub, &read, 32) == 0,
	   "read back");
	for (size_t i = 0; i < b.n; i++) {
		b.p[i] = (char)(b.p[i] ^ 0x20);
		good += keys_parse_secret(buf_view(&b), seed, &err) == 0 && (i < 28 || i > 28 + 64);
		b.p[i] = (char)(b.p[i] ^ 0x20);
		good += keys_parse_secret(sv_sub(buf_view(&b), 0, i), seed, &err) == 0;
	}
	ok(good == 0, "nothing but the key is a key");
}

static void test_store(void)
{
	struct key_pair a = { 0 }, b = { 0 }, c = { 0 };
	struct writ_err err = { 0 };
	struct stat st;

	ok(keys_load(at("keys"), KEY_LOG, false, &a, &err) < 0, "there is none: %s", err.what);
	ok(keys_load(at("keys"), KEY_LOG, true, &a, &err) == 0, "it is made: %s", err.what);
	ok(keys_load(at("keys"), KEY_LOG, true, &b, &err) == 0 && memcmp(&a, &b, sizeof(a)) == 0,
	   "and stays");
	ok(keys_load(at("keys"), KEY_ISSUE, true, &c, &err) == 0 && memcmp(&a, &c, sizeof(a)) != 0,
	   "another role, another key");
	ok(stat(at("keys/log.pem"), &st) == 0 && (st.st_mode & 07777) == 0600, "for us alone");
	ok(chmod(at("keys/log.pem"), 0644) == 0 &&
		   keys_load(at("keys"), KEY_LOG, true, &b, &err) == WRIT_E_DENIED,
	   "not used once others can read it: %s", err.what);
	ok(chmod(at("keys/log.pem"), 0600) == 0 && truncate(at("keys/log.pem"), 50) == 0 &&
		   keys_load(at("keys"), KEY_LOG, true, &b, &err) == WRIT_E_SYNTAX,
	   "a damaged one is not replaced: %s", err.what);
}

/* All that begin at once have the same key. */
static void test_race(void)
{
	struct writ_err err = { 0 };
	struct key_pair last = { 0 };
	int p[2], status;
	size_t same = 0;

	if (pipe(p) < 0)
		return;
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			const bool good = keys_load(at("race"), KEY_LOG, true, &last, &err) == 0;

			_exit(good && write(p[1], &last.pub, 32) == 32 ? 0 : 1);
		}
	for (int i = 0; i < 8; i++)
		if (wait(&status) < 0 || status)
			ok(false, "a process failed");
	if (keys_load(at("race"), KEY_LOG, false, &last, &err) < 0)
		ok(false, "read: %s", err.what);
	for (int i = 0; i < 8; i++) {
		struct sign_public one;

		same += read(p[0], &one, 32) == 32 && memcmp(&one, &last.pub, 32) == 0;
	}
	ok(same == 8, "eight at once make one key");
}

int main(void)
{
	struct writ_err err = { 0 };
	char cmd[128];

	if (crypto_start(&err) < 0 || !mkdtemp(top))
		return 1;
	test_pem();
	test_store();
	test_race();
	(void)snprintf(cmd, sizeof(cmd), "rm -r %s", top);
	(void)!system(cmd);
	return tap_done();
}
