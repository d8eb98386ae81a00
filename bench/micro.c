/*
 * micro.c - cost of single operations: loading a policy of 300 rules, one decision, one digest
 *
 * Prints lines of name, measured, unit and budget for bench/run.py. The file
 * system is simulated, so that the numbers do not include the disk.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "crypto/crypto.h"
#include "engines/engines.h"
#include "lang/policy.h"
#include "plan/plan.h"
#include "reach/reach.h"
#include "world.h"

enum { RULES = 300, ROUNDS = 200, DECISIONS = 200000, DIGEST_BYTES = 64 << 20 };

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* CPU time of this process, so that other load does not count. */
static double used_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *x, const void *y)
{
	const double a = *(const double *)x;
	const double b = *(const double *)y;

	return a < b ? -1 : a > b;
}

/* Writes a policy of 300 typical rules: files, hosts with paths, denials, variables. */
static void put_policy(struct buf *b)
{
	buf_str(b, "version 1\n");
	for (int i = 0; i < RULES; i++) {
		switch (i % 6) {
		case 0:
			buf_fmt(b, "allow read ./src/part%d*.c\n", i);
			break;
		case 1:
			buf_fmt(b, "allow write ./logs/run%d*\n", i);
			break;
		case 2:
			buf_fmt(b, "allow net https://host%d.example.com\n", i);
			break;
		case 3:
			buf_fmt(b, "allow net https://api.example.com/v%d/** methods=GET,POST\n",
				i);
			break;
		case 4:
			buf_fmt(b, "deny read **/secret%d\n", i);
			break;
		default:
			buf_fmt(b, "env NAME%d\n", i);
			break;
		}
	}
}

static const struct host_facts facts = {
	.kernel = "6.12.0",
	.ns_user = true,
	.ns_user_nested = true,
	.ns_mount = true,
	.ns_pid = true,
	.ns_net = true,
	.ns_ipc = true,
	.proc_mount = true,
	.pivot_root = true,
	.anyip = true,
	.landlock_abi = 6,
	.seccomp_filter = true,
	.seccomp_notify = true,
	.seccomp_addfd = true,
};

static struct policy *load(struct arena *a, const struct source *src, struct plan **ret_plan)
{
	const struct policy_env env = { .ops = &fake_ops,
					.workspace = SV("/home/me/app"),
					.home = SV("/home/me"),
					.realm = SV("l-bench"),
					.missing_ok = true };
	const struct policy_input in = { .files = src, .files_n = 1 };
	const struct plan_options opt = { .engines = engines_all };
	struct diags d = { .arena = a };
	struct writ_err err = { 0 };
	struct policy *p;

	if (policy_new(&env, &in, &d, &p, &err) < 0 ||
	    plan_new(a, &p->set, &facts, &opt, ret_plan, &err) < 0) {
		struct buf b = BUF_INIT(1 << 20);

		diag_print_all(&d, &b, false);
		fprintf(stderr, "%s\n%s\n", err.what, b.n ? b.p : "");
		exit(1);
	}
	return p;
}

static double decide(struct arena *a, const struct cap_set *set, const char *text)
{
	struct writ_err err = { 0 };
	struct cap req;
	unsigned sum = 0;
	double start;

	if (cap_parse(a, CAP_REQUEST, sv_from(text), &req, &err) < 0) {
		fprintf(stderr, "%s: %s\n", text, err.what);
		exit(1);
	}
	start = used_us();
	for (int i = 0; i < DECISIONS; i++)
		sum += cap_set_decide(set, &req).answer;
	/* Use the answers, so that the compiler keeps the loop. */
	return (used_us() - start) / DECISIONS + (sum > 3u * DECISIONS);
}

/* Measures a decision as egress and writ-l7 make it, from the bytes on the wire. */
static double reach(const struct reach *r, const struct reach_key *key)
{
	const double start = used_us();
	unsigned sum = 0;

	for (int i = 0; i < DECISIONS; i++)
		sum += reach_decide(r, key).answer;
	return (used_us() - start) / DECISIONS + (sum > 3u * DECISIONS);
}

static void reach_all(struct arena *a, const struct cap_set *set)
{
	static const struct reach_key keys[] = {
		{ .host = SV("host296.example.com"), .port = 443, .proto = REACH_TLS },
		{ .host = SV("evil.example.net"), .port = 443, .proto = REACH_TCP },
		{ .host = SV("api.example.com"),
		  .port = 443,
		  .proto = REACH_HTTPS,
		  .method = SV("GET"),
		  .path = SV("/v297/a/b") },
	};
	struct writ_err err = { 0 };
	struct reach r;
	double t;

	if (reach_init(a, set, SV("l-bench"), &r, &err) < 0)
		exit(1);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		t = reach(&r, &keys[i]);
		printf("%s, 300 rules\t%.3f\tus\t1.0\n",
		       i == 0	? "a connection allowed"
		       : i == 1 ? "a connection denied"
				: "a request allowed",
		       t);
	}
}

/* Our SHA-256 against libsodium's, for a leaf of a log, a page and an executable. */
static void digests(void)
{
	static const size_t sizes[] = { 64, 4 << 10, 1 << 20 };
	static char bytes[1 << 20];

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const int rounds = (int)(DIGEST_BYTES / sizes[i]);
		const struct sv in = { bytes, sizes[i] };
		double start = used_us(), own, theirs;

		for (int k = 0; k < rounds; k++)
			bytes[0] ^= (char)crypto_sha256(in).b[0];
		own = used_us() - start;
		start = used_us();
		for (int k = 0; k < rounds; k++) {
			struct digest d;

			(void)crypto_hash_sha256(d.b, (const uint8_t *)bytes, sizes[i]);
			bytes[0] ^= (char)d.b[0];
		}
		theirs = used_us() - start;
		printf("SHA-256 of %zu bytes (libsodium: %.2f us)\t%.2f\tus\t%.2f\n", sizes[i],
		       theirs / rounds, own / rounds, 1.1 * theirs / rounds);
	}
}

int main(void)
{
	static const char *const requests[] = {
		"fs.read:l-bench:/home/me/app/src/part294x.c",
		"fs.write:l-bench:/etc/passwd",
		"http.request:l-bench:https://api.example.com:443/v297/a/b;m=GET;q=none",
		"net.connect:l-bench:tcp/evil.example.net:443;tls=sni",
	};
	struct buf text = BUF_INIT(1 << 20);
	struct writ_err err = { 0 };
	struct source src = { .name = SV("bench"), .dir = SV("") };
	double times[ROUNDS], worst = 0;
	struct arena a = ARENA_INIT(POLICY_ARENA_MAX);
	struct plan *plan;
	struct policy *p;

	if (crypto_start(&err) < 0)
		return 1;
	put_policy(&text);
	src.text = buf_view(&text);
	for (int i = 0; i < ROUNDS; i++) {
		const double start = now_us();

		(void)load(&a, &src, &plan);
		times[i] = now_us() - start;
		arena_clear(&a);
	}
	qsort(times, ROUNDS, sizeof(times[0]), by_value);
	printf("300 rules parsed, checked, planned\t%.3f\tms\t1.0\n", times[ROUNDS / 2] / 1e3);
	p = load(&a, &src, &plan);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		const double t = decide(&a, &p->set, requests[i]);

		worst = t > worst ? t : worst;
	}
	printf("one decision against 300 rules\t%.3f\tus\t1.0\n", worst);
	reach_all(&a, &p->set);
	digests();
	arena_clear(&a);
	buf_clear(&text);
	return 0;
}
