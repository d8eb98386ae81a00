#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>

#include "crypto/crypto.h"

#include "base/banned.h"

#ifndef WRIT_VERSION
#error "WRIT_VERSION comes from the build"
#endif

/*
 * Opens /dev/null for each closed standard descriptor; otherwise the first file that writ opens
 * would get the number of a standard descriptor.
 */
static bool open_std_fds(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
			return false;
	return true;
}

int cmd_version(struct args *a)
{
	struct buf b = BUF_INIT(256);

	(void)a;
	buf_str(&b, "writ " WRIT_VERSION "\n");
	return cli_out(&b, EXIT_DONE);
}

int cmd_help(struct args *a)
{
	const struct cli_verb *v = a->operands.n ? cli_verb_get(sv_from(a->operands.v[0])) : NULL;
	struct buf b = BUF_INIT(65536);

	if (a->operands.n && !v)
		return cli_end(EXIT_FAILED, "no verb \"%s\"; writ help lists them",
			       a->operands.v[0]);
	opts_help(v, &b);
	return cli_out(&b, EXIT_DONE);
}

static int unknown_verb(const char *name)
{
	const char *names[64];
	const char *near;
	size_t n = 0;

	for (const struct cli_verb *v = cli_verbs; v->name && n + 1 < ARRAY_LEN(names); v++)
		if (!v->hidden)
			names[n++] = v->name;
	names[n] = NULL;
	near = diag_nearest(sv_from(name), names);
	return near ? cli_end(EXIT_FAILED, "no verb \"%s\"; did you mean %s?", name, near)
		    : cli_end(EXIT_FAILED, "no verb \"%s\"; writ help lists them", name);
}

static int run_verb(const struct cli_verb *v, int argc, char **argv, struct arena *arena)
{
	struct args args = { .arena = arena };
	struct writ_err err = { 0 };

	if (opts_parse(v, argc, argv, &args, &err) < 0)
		return cli_fail(&err, NULL);
	if (args.given[OPT_HELP]) {
		struct buf b = BUF_INIT(65536);

		opts_help(v, &b);
		return cli_out(&b, EXIT_DONE);
	}
	if (!*v->operands && args.operands.n)
		return cli_end(EXIT_FAILED, "%s takes no operand; see writ help %s", v->name,
			       v->name);
	return v->run(&args);
}

int cli_main(int argc, char **argv)
{
	scoped_arena arena = ARENA_INIT(POLICY_ARENA_MAX);
	struct writ_err err = { 0 };
	struct sv word = argc > 1 ? sv_from(argv[1]) : SV("help");
	const struct cli_verb *v;

	/*
	 * Let malloc() grow the heap by 512 KiB at a time. The start of a session then needs one
	 * system call for its heap instead of many.
	 */
	(void)mallopt(M_TOP_PAD, 512 << 10);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Let a write beyond RLIMIT_FSIZE fail with an error instead of a signal. */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (!open_std_fds())
		return EXIT_FAILED;
	if (sv_is(word, "--help") || sv_is(word, "-h"))
		word = SV("help");
	if (sv_is(word, "--version") || sv_is(word, "-V"))
		word = SV("version");
	v = cli_verb_get(word);
	if (!v)
		return unknown_verb(argv[1]);
	/* For the verb run, cmd_run() initialises libsodium later, while writ-init starts. */
	if (v->run != cmd_run && crypto_start(&err) < 0)
		return cli_fail(&err, NULL);
	return run_verb(v, argc > 2 ? argc - 2 : 0, argv + 2, &arena);
}
