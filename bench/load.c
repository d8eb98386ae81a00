/*
 * load.c - the client that measures every proxy
 *
 * Reads one order per line and answers each with a line:
 *
 *   KIND ADDRESS PORT CONNECT NAME WAYS MS
 *   count  nanoseconds  errors  median and 99th percentile per operation, in nanoseconds
 *
 * tput    bytes received from the source over WAYS connections
 * new     connections: each sends, receives the echo and closes
 * rtt     round-trip time of 64 bytes on one connection
 * hold    WAYS connections that stay open, each used once; MS is not used
 * drop    closes the connections of hold
 * keep    HTTP requests over WAYS persistent TLS connections
 * tls     a new TLS connection for each request
 *
 * CONNECT is the argument of the CONNECT method sent to the proxy, or "-". NAME is the
 * server name in TLS and in requests. ADDRESS may be a name, resolved once per order.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WAYS_MAX = 64, SAMPLES = 65536, PATIENCE_S = 5, HELD_MAX = 32768, FILES = 65536 };

struct order {
	char what[16], address[256], port[8], connect[300], name[256];
	unsigned ways, ms;
	struct sockaddr_in to;
	uint64_t end;
};

struct way {
	const struct order *o;
	unsigned many; /* number of connections for hold */
	uint64_t count, errors;
	uint32_t samples_n;
	uint32_t samples[SAMPLES];
};

static SSL_CTX *tls;
static struct way ways[WAYS_MAX];
static int held[HELD_MAX];
static _Atomic unsigned held_n;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Counts an operation that began at @start. */
static void done(struct way *w, uint64_t start)
{
	const uint64_t took = now_ns() - start;

	w->count++;
	if (w->samples_n < SAMPLES)
		w->samples[w->samples_n++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

/* --- connections --- */

static int ask_proxy(int fd, const char *where)
{
	char bytes[4096];
	size_t n = 0;
	const int len = snprintf(bytes, sizeof(bytes), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
				 where, where);

	if (send(fd, bytes, (size_t)len, MSG_NOSIGNAL) != len)
		return -1;
	while (n < sizeof(bytes) - 1) {
		const ssize_t got = recv(fd, bytes + n, sizeof(bytes) - 1 - n, 0);

		if (got <= 0)
			return -1;
		n += (size_t)got;
		bytes[n] = 0;
		if (memmem(bytes, n, "\r\n\r\n", 4))
			return strstr(bytes, " 200 ") || strstr(bytes, " 200\r") ? 0 : -1;
	}
	return -1;
}

static int dial(const struct order *o)
{
	const struct timeval patience = { PATIENCE_S, 0 };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&o->to, sizeof(o->to)) < 0 ||
	    (o->connect[0] != '-' && ask_proxy(fd, o->connect) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int there_and_back(int fd, char first)
{
	char out[64], in[64];
	size_t n = 0;

	memset(out, 0x81, sizeof(out)); /* no text, see origin.c */
	out[0] = first;
	if (send(fd, out, sizeof(out), MSG_NOSIGNAL) != (ssize_t)sizeof(out))
		return -1;
	while (n < sizeof(in)) {
		const ssize_t got = recv(fd, in + n, sizeof(in) - n, 0);

		if (got <= 0)
			return -1;
		n += (size_t)got;
	}
	return memcmp(in, out, sizeof(in)) ? -1 : 0;
}

/* --- measurements --- */

static void run_tput(struct way *w)
{
	const int fd = dial(w->o);

	if (fd < 0)
		w->errors++;
	while (fd >= 0 && now_ns() < w->o->end) {
		/* MSG_TRUNC discards the bytes in the kernel, so that the client costs little. */
		const ssize_t n = recv(fd, NULL, 1 << 20, MSG_TRUNC);

		if (n <= 0) {
			w->errors++;
			break;
		}
		w->count += (uint64_t)n;
	}
	if (fd >= 0)
		close(fd);
}

static void run_new(struct way *w)
{
	char rest;

	while (now_ns() < w->o->end) {
		const uint64_t start = now_ns();
		const int fd = dial(w->o);

		if (fd >= 0 && there_and_back(fd, 'c') == 0 && recv(fd, &rest, 1, 0) == 0)
			done(w, start);
		else
			w->errors++;
		if (fd >= 0)
			close(fd);
	}
}

static void run_rtt(struct way *w)
{
	const int fd = dial(w->o);

	while (fd >= 0 && now_ns() < w->o->end) {
		const uint64_t start = now_ns();

		if (there_and_back(fd, 'k') < 0) {
			w->errors++;
			break;
		}
		done(w, start);
	}
	w->errors += fd < 0;
	if (fd >= 0)
		close(fd);
}

static void run_hold(struct way *w)
{
	for (unsigned i = 0; i < w->many; i++) {
		const uint64_t start = now_ns();
		const int fd = dial(w->o);

		if (fd < 0 || there_and_back(fd, 'k') < 0) {
			w->errors++;
			if (fd >= 0)
				close(fd);
			if (w->errors > 20)
				return;
			continue;
		}
		done(w, start);
		held[held_n++ % HELD_MAX] = fd;
	}
}

static SSL *dial_tls(const struct order *o, int *ret_fd)
{
	SSL *ssl = SSL_new(tls);

	*ret_fd = dial(o);
	if (*ret_fd < 0 || !ssl)
		goto failed;
	SSL_set_fd(ssl, *ret_fd);
	SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
		 (void *)(uintptr_t)o->name);
	if (SSL_connect(ssl) == 1)
		return ssl;
failed:
	SSL_free(ssl);
	if (*ret_fd >= 0)
		close(*ret_fd);
	return NULL;
}

/* Sends a request and reads the complete response. */
static int ask(const struct order *o, SSL *ssl)
{
	char bytes[8192];
	size_t n = 0, whole = 0;
	const int len = snprintf(
		bytes, sizeof(bytes),
		"GET /small HTTP/1.1\r\nHost: %s\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n",
		o->name);

	if (SSL_write(ssl, bytes, len) <= 0)
		return -1;
	while (!whole || n < whole) {
		const int got = SSL_read(ssl, bytes + n, (int)(sizeof(bytes) - 1 - n));
		const char *end, *length;

		if (got <= 0)
			return -1;
		n += (size_t)got;
		bytes[n] = 0;
		end = whole ? NULL : strstr(bytes, "\r\n\r\n");
		if (!end)
			continue;
		length = strcasestr(bytes, "\r\ncontent-length:");
		if (!length || strncmp(bytes, "HTTP/1.1 200", 12) != 0)
			return -1;
		whole = (size_t)(end - bytes) + 4 + strtoul(length + 17, NULL, 10);
	}
	return 0;
}

static void run_keep(struct way *w)
{
	int fd;
	SSL *ssl = dial_tls(w->o, &fd);

	while (ssl && now_ns() < w->o->end) {
		const uint64_t start = now_ns();

		if (ask(w->o, ssl) < 0) {
			w->errors++;
			break;
		}
		done(w, start);
	}
	w->errors += !ssl;
	if (ssl) {
		SSL_free(ssl);
		close(fd);
	}
}

static void run_tls(struct way *w)
{
	while (now_ns() < w->o->end) {
		const uint64_t start = now_ns();
		int fd;
		SSL *ssl = dial_tls(w->o, &fd);

		if (ssl && ask(w->o, ssl) == 0)
			done(w, start);
		else
			w->errors++;
		if (ssl) {
			SSL_free(ssl);
			close(fd);
		}
	}
}

/* --- orders --- */

static const struct {
	const char *what;
	void (*run)(struct way *w);
} runs[] = { { "tput", run_tput }, { "new", run_new },	 { "rtt", run_rtt },
	     { "hold", run_hold }, { "keep", run_keep }, { "tls", run_tls } };

static void *run_way(void *arg)
{
	struct way *w = arg;

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		if (strcmp(runs[i].what, w->o->what) == 0)
			runs[i].run(w);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a;
	const uint32_t y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void report(unsigned n, uint64_t took)
{
	static uint32_t all[WAYS_MAX * SAMPLES];
	uint64_t count = 0, errors = 0;
	size_t k = 0;

	for (unsigned i = 0; i < n; i++) {
		count += ways[i].count;
		errors += ways[i].errors;
		memcpy(all + k, ways[i].samples, ways[i].samples_n * sizeof(all[0]));
		k += ways[i].samples_n;
	}
	qsort(all, k, sizeof(all[0]), by_value);
	printf("%llu %llu %llu %u %u\n", (unsigned long long)count, (unsigned long long)took,
	       (unsigned long long)errors, k ? all[k / 2] : 0, k ? all[k - 1 - k / 100] : 0);
	fflush(stdout);
}

static int resolve(struct order *o)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(o->address, o->port, &hints, &found) != 0)
		return -1;
	memcpy(&o->to, found->ai_addr, sizeof(o->to));
	freeaddrinfo(found);
	return 0;
}

static void run_order(struct order *o)
{
	const int hold = strcmp(o->what, "hold") == 0;
	const unsigned n = hold ? 8 : o->ways < WAYS_MAX ? o->ways : WAYS_MAX;
	pthread_t t[WAYS_MAX];
	uint64_t start;

	if (strcmp(o->what, "drop") == 0) {
		for (unsigned i = 0; i < held_n; i++)
			close(held[i]);
		held_n = 0;
		report(0, 0);
		return;
	}
	if (resolve(o) < 0) {
		printf("0 0 1 0 0\n");
		fflush(stdout);
		return;
	}
	start = now_ns();
	o->end = start + (uint64_t)o->ms * 1000000u;
	for (unsigned i = 0; i < n; i++) {
		ways[i] = (struct way){ .o = o, .many = o->ways / n + (i < o->ways % n) };
		if (pthread_create(&t[i], NULL, run_way, &ways[i]) != 0)
			abort();
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	report(n, now_ns() - start);
}

int main(void)
{
	struct rlimit l = { FILES, FILES };
	char line[2048];

	signal(SIGPIPE, SIG_IGN);
	if (setrlimit(RLIMIT_NOFILE, &l) < 0 && getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	tls = SSL_CTX_new(TLS_client_method());
	if (!tls)
		return 1;
	/*
	 * Do not verify certificates: each proxy presents its own, and the check would cost the
	 * same for all.
	 */
	SSL_CTX_set_verify(tls, SSL_VERIFY_NONE, NULL);
	while (fgets(line, sizeof(line), stdin)) {
		struct order o = { 0 };

		if (sscanf(line, "%15s %255s %7s %299s %255s %u %u", o.what, o.address, o.port,
			   o.connect, o.name, &o.ways, &o.ms) != 7)
			return 2;
		run_order(&o);
	}
	return 0;
}
