/*
 * mediated.h - runs a function or a program under a mediator of this process
 *
 * The child loads a small filter of its own, the parent serves it until it is
 * gone and keeps what was reported. Results come back in shared memory; what
 * really happened is read from the files.
 */
#ifndef WRIT_TESTS_MEDIATED_H
#define WRIT_TESTS_MEDIATED_H

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mediate/mediate.h"

enum box_trap { BOX_WRITE = 1, BOX_READ = 2, BOX_EXEC = 4, BOX_META = 8, BOX_NET = 16 };
enum { BOX_EVENTS = 256, BOX_RESULTS = 64 };

struct box {
	struct mediate_options opt;
	unsigned traps;
	struct mediator *m;
	struct mediate_event events[BOX_EVENTS];
	size_t events_n;
	int status;	     /* of the child, as from waitpid() */
	int (*inside)(void); /* before the filter: namespaces; 0 or a failed exit */
	int in, out, note;   /* pipes */
};

/* What the child saw: errno or a value, by number of the question. */
__attribute__((unused)) static int *results;

__attribute__((unused)) static struct arena box_arena = ARENA_INIT(64 << 20);

__attribute__((unused)) static void box_cap(struct cap_set *s, enum cap_kind kind, const char *text)
{
	struct writ_err err = { 0 };
	struct cap_entry *e;
	struct cap_rule *r;
	struct cap c;

	if (cap_parse(&box_arena, kind, sv_from(text), &c, &err) < 0) {
		printf("Bail out! %s: %s\n", text, err.what);
		exit(1);
	}
	r = vec_push(&box_arena, &s->rules);
	e = kind == CAP_DENIAL ? vec_push(&box_arena, &s->nots) : vec_push(&box_arena, &s->caps);
	if (!r || !e)
		exit(1);
	r->text = sv_from(arena_str(&box_arena, sv_from(text)));
	*e = (struct cap_entry){ c, (uint32_t)s->rules.n - 1 };
}

/* --- The filter --- */

struct box_code {
	struct sock_filter v[512];
	unsigned short n;
};

static void box_put(struct box_code *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	p->v[p->n++] = (struct sock_filter){ code, jt, jf, k };
}

static void box_trap_nr(struct box_code *p, long nr)
{
	box_put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1);
	box_put(p, BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF, 0, 0);
}

/* Only if argument @arg has one of @bits. */
static void box_trap_bits(struct box_code *p, long nr, unsigned arg, uint32_t bits)
{
	const uint32_t at = (uint32_t)offsetof(struct seccomp_data, args) + 8 * arg;

	box_put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4);
	box_put(p, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
	box_put(p, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
	box_put(p, BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF, 0, 0);
	box_put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static void box_writes(struct box_code *p, bool reads)
{
	static const long always[] = { SYS_creat,     SYS_mkdir,   SYS_mkdirat,	  SYS_mknod,
				       SYS_mknodat,   SYS_symlink, SYS_symlinkat, SYS_unlink,
				       SYS_unlinkat,  SYS_rmdir,   SYS_rename,	  SYS_renameat,
				       SYS_renameat2, SYS_link,	   SYS_linkat,	  SYS_truncate,
				       SYS_bind };
	const uint32_t bits = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		box_trap_nr(p, always[i]);
	if (reads) {
		box_trap_nr(p, SYS_open);
		box_trap_nr(p, SYS_openat);
	} else {
		box_trap_bits(p, SYS_open, 1, bits);
		box_trap_bits(p, SYS_openat, 2, bits);
	}
}

static void box_program(unsigned traps, struct box_code *p)
{
	static const long meta[] = { SYS_chmod,
				     SYS_fchmod,
				     SYS_fchmodat,
				     SYS_chown,
				     SYS_fchown,
				     SYS_lchown,
				     SYS_fchownat,
				     SYS_utime,
				     SYS_utimes,
				     SYS_futimesat,
				     SYS_utimensat,
				     SYS_setxattr,
				     452,
				     SYS_lsetxattr,
				     SYS_fsetxattr,
				     SYS_removexattr,
				     SYS_lremovexattr,
				     SYS_fremovexattr };

	p->n = 0;
	box_put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr), 0, 0);
	if (traps & BOX_WRITE)
		box_writes(p, traps & BOX_READ);
	if (traps & BOX_EXEC) {
		box_trap_nr(p, SYS_execve);
		box_trap_nr(p, SYS_execveat);
	}
	for (size_t i = 0; traps & BOX_META && i < ARRAY_LEN(meta); i++)
		box_trap_nr(p, meta[i]);
	if (traps & BOX_NET) {
		box_trap_nr(p, SYS_connect);
		box_trap_nr(p, SYS_bind);
		box_trap_nr(p, SYS_sendmsg);
		box_trap_nr(p, SYS_sendmmsg);
		box_trap_bits(p, SYS_sendto, 4, 0xffffffff);
	}
	box_put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* In the child. Returns the listener. */
static int box_filter(unsigned traps)
{
	static struct box_code code;
	struct sock_fprog prog;
	long fd;

	box_program(traps, &code);
	prog = (struct sock_fprog){ code.n, code.v };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | (1UL << 5), &prog);
	return (int)fd;
}

/* --- Running --- */

static void box_results(void)
{
	if (!results)
		results = mmap(NULL, BOX_RESULTS * sizeof(int), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		exit(1);
	for (int i = 0; i < BOX_RESULTS; i++)
		results[i] = -9999;
}

static void box_child(struct box *b, int (*fn)(void))
{
	int fd;
	char go;

	if (b->inside && b->inside() != 0)
		_exit(97);
	fd = box_filter(b->traps);
	if (fd < 0 || write(b->out, &fd, sizeof(fd)) != sizeof(fd) || read(b->in, &go, 1) != 1)
		_exit(98);
	close(fd);
	close(b->in);
	close(b->out);
	_exit(fn());
}

/* Starts @fn in a child under a mediator; 0 if it runs. */
__attribute__((unused)) static pid_t box_start(struct box *b, int (*fn)(void))
{
	int up[2], down[2], fd, pidfd;
	struct writ_err err = { 0 };
	pid_t pid;

	box_results();
	b->events_n = 0;
	b->m = NULL;
	if (pipe(up) < 0 || pipe(down) < 0)
		return -1;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(up[0]);
		close(down[1]);
		b->out = up[1];
		b->in = down[0];
		box_child(b, fn);
	}
	close(up[1]);
	close(down[0]);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (read(up[0], &fd, sizeof(fd)) != sizeof(fd)) {
		close(up[0]);
		close(down[1]);
		(void)waitpid(pid, &b->status, 0);
		return -1;
	}
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	close(pidfd);
	if (fd < 0 || mediate_new(&b->opt, &b->m, &err) < 0 || mediate_add(b->m, fd, &err) < 0) {
		printf("# mediator: %s\n", err.what);
		kill(pid, SIGKILL);
	}
	if (write(down[1], "g", 1) != 1)
		kill(pid, SIGKILL);
	close(up[0]);
	close(down[1]);
	return pid;
}

__attribute__((unused)) static void box_serve(struct box *b, pid_t pid)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct writ_err err = { 0 };

	while (b->m) {
		struct mediate_event e;
		const int r = mediate_wait(b->m, pidfd, 60000, &e, &err);

		if (r < 0) {
			printf("# mediate_wait: %s\n", err.what);
			kill(pid, SIGKILL);
			break;
		}
		if (r == 1 && b->events_n < BOX_EVENTS)
			b->events[b->events_n++] = e;
		if (waitpid(pid, &b->status, r == 0 ? WNOHANG : WNOHANG) == pid)
			break;
	}
	/* What the child left behind goes on without us and fails. */
	mediate_free(b->m);
	b->m = NULL;
	close(pidfd);
}

/* Runs @fn to its end. Returns its exit status, or -1. */
__attribute__((unused)) static int box_run(struct box *b, int (*fn)(void))
{
	const pid_t pid = box_start(b, fn);

	if (pid < 0)
		return -1;
	box_serve(b, pid);
	return WIFEXITED(b->status) ? WEXITSTATUS(b->status) : -1;
}

/* The first denial whose object ends so, or NULL. */
__attribute__((unused)) static const struct mediate_event *box_denied(const struct box *b,
								      const char *object)
{
	for (size_t i = 0; i < b->events_n; i++)
		if (b->events[i].denied && sv_ends(sv_from(b->events[i].object), sv_from(object)))
			return &b->events[i];
	return NULL;
}

#endif
