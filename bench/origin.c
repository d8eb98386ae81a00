/*
 * origin.c - the server that all measured proxies connect to
 *
 * usage: origin ADDRESS ECHO-PORT SOURCE-PORT TLS-PORT CERTIFICATE KEY
 *
 * echo    returns all bytes; closes the connection first if they begin with 'c', so that
 *         the client has no port in TIME_WAIT
 * source  sends as fast as possible
 * TLS     answers each HTTP/1.1 request with 1 KiB
 *
 * Prints "ready" and exits at the end of standard input.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BLOCK = 256 << 10, BODY = 1024, EVENTS = 256, BACKLOG = 4096, FILES = 65536 };

struct role {
	int fd;
	int source;
};

struct conn {
	int fd, source;
};

static char block[BLOCK];
static char answer[BODY + 256];
static size_t answer_n;
static SSL_CTX *tls;

static int listen_at(const char *address, const char *port, int flags)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), on = 1;

	at.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
		at.sin_addr.s_addr = INADDR_ANY;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0) {
		perror(port);
		exit(1);
	}
	return fd;
}

/* --- TCP --- */

static void accept_all(int epoll, const struct role *r)
{
	const int on = 1;
	int fd;

	while ((fd = accept4(r->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c = malloc(sizeof(*c));
		struct epoll_event ev = { .events = r->source ? EPOLLOUT : EPOLLIN,
					  .data = { .ptr = c } };

		if (!c)
			abort();
		*c = (struct conn){ fd, r->source };
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
	}
}

/* Serves one event. Returns false if the connection has ended. */
static int serve(const struct conn *c)
{
	char bytes[4096];
	ssize_t n;

	if (c->source) {
		n = send(c->fd, block, sizeof(block), MSG_NOSIGNAL);
		return n >= 0 || errno == EAGAIN;
	}
	n = recv(c->fd, bytes, sizeof(bytes), 0);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	return send(c->fd, bytes, (size_t)n, MSG_NOSIGNAL) == n && bytes[0] != 'c';
}

static void *serve_tcp(void *arg)
{
	const struct role *roles = arg;
	const int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event v[EVENTS];

	for (size_t i = 0; i < 2; i++) {
		struct epoll_event ev = { .events = EPOLLIN,
					  .data = { .ptr = (void *)(uintptr_t)&roles[i] } };

		epoll_ctl(epoll, EPOLL_CTL_ADD, roles[i].fd, &ev);
	}
	for (;;) {
		const int n = epoll_wait(epoll, v, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct conn *c = v[i].data.ptr;

			if (v[i].data.ptr == &roles[0] || v[i].data.ptr == &roles[1]) {
				accept_all(epoll, v[i].data.ptr);
			} else if (!serve(c)) {
				close(c->fd);
				free(c);
			}
		}
	}
	return NULL;
}

/* --- TLS --- */

/* Counts the ends of request heads; requests have no body. */
static size_t heads_in(const char *bytes, size_t n, unsigned *seen)
{
	static const char end[] = "\r\n\r\n";
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		*seen = bytes[i] == end[*seen] ? *seen + 1 : bytes[i] == '\r';
		if (*seen == 4) {
			*seen = 0;
			found++;
		}
	}
	return found;
}

static void *serve_one(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	SSL *ssl = SSL_new(tls);
	char bytes[8192];
	unsigned seen = 0;
	int n;

	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) == 1)
		while ((n = SSL_read(ssl, bytes, sizeof(bytes))) > 0)
			for (size_t k = heads_in(bytes, (size_t)n, &seen); k; k--)
				if (SSL_write(ssl, answer, (int)answer_n) <= 0)
					break;
	SSL_free(ssl);
	close(fd);
	return NULL;
}

static void *serve_tls(void *arg)
{
	const int on = 1;
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	for (;;) {
		const int fd = accept4(*(int *)arg, NULL, NULL, SOCK_CLOEXEC);
		pthread_t t;

		if (fd < 0)
			continue;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (pthread_create(&t, &small, serve_one, (void *)(intptr_t)fd) != 0)
			close(fd);
	}
	return NULL;
}

static void raise_files(void)
{
	struct rlimit l = { FILES, FILES };

	if (setrlimit(RLIMIT_NOFILE, &l) < 0 && getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

int main(int argc, char **argv)
{
	struct role roles[2];
	pthread_t t;
	int secure;

	if (argc != 7) {
		fprintf(stderr, "usage: origin ADDRESS ECHO SOURCE TLS CERTIFICATE KEY\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	raise_files();
	for (size_t i = 0; i < sizeof(block); i++)
		/* not text: one of the measured proxies stops at text */
		block[i] = (char)(i * 7 + i / 251);
	answer_n = (size_t)snprintf(answer, 256,
				    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				    "Content-Length: %d\r\n\r\n",
				    BODY);
	memset(answer + answer_n, 'x', BODY);
	answer_n += BODY;
	tls = SSL_CTX_new(TLS_server_method());
	if (!tls || SSL_CTX_use_certificate_chain_file(tls, argv[5]) != 1 ||
	    SSL_CTX_use_PrivateKey_file(tls, argv[6], SSL_FILETYPE_PEM) != 1) {
		fprintf(stderr, "origin: the certificate cannot be used\n");
		return 1;
	}
	roles[0] = (struct role){ listen_at(argv[1], argv[2], SOCK_NONBLOCK), 0 };
	roles[1] = (struct role){ listen_at(argv[1], argv[3], SOCK_NONBLOCK), 1 };
	secure = listen_at(argv[1], argv[4], 0);
	if (pthread_create(&t, NULL, serve_tcp, roles) ||
	    pthread_create(&t, NULL, serve_tls, &secure))
		return 1;
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
