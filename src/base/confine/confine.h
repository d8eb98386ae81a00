/*
 * confine.h - processes of writ drop the rights they do not need
 *
 * Theory of operation
 *
 * Helper processes (resolver, egress proxy, TLS inspection, signer) parse bytes that an
 * agent or a remote server controls. A bug in a parser must not give the attacker the
 * user's files. Each helper therefore opens what it needs, then calls one function of
 * this module, and only then reads the first untrusted byte. Three profiles exist:
 *
 *   confine_self()     no files at all; listed system calls; chosen socket types
 *   confine_within()   named file trees; listed system calls; no sockets
 *   confine_command()  for a foreign program (git) that is about to be executed: named
 *                      trees, and a list of refused instead of allowed system calls
 *
 * All three drop capabilities, set no_new_privs, forbid core dumps and make the process
 * non-dumpable, so that other processes of the user cannot attach to it.
 *
 * Invariants
 *   - The restriction is irreversible. Call it before the process starts a thread.
 *   - A helper that makes a system call outside its list is killed, not given an error:
 *     such a call means that the helper no longer runs our code.
 *   - confine_self() and confine_within() work without Landlock, because their system call
 *     lists have no open(), or only what the helper's own files need.
 *     confine_command() fails without Landlock: nothing else would bound the program.
 *
 * Common mistakes
 *   - Code added to a helper may need a new system call. Add it to the helper's list, and
 *     state there why it is harmless.
 *   - Sanitizer builds allow additional calls; test the list with a release build.
 *
 * Reads:  nothing
 * Writes: nothing; changes the calling process
 * Next:   egress/, resolve/, l7/ and signer/ confine themselves; gitnet/ confines git
 */
#ifndef WRIT_CONFINE_CONFINE_H
#define WRIT_CONFINE_CONFINE_H

#include <stddef.h>

#include "base/err.h"

enum { CONFINE_CALLS_MAX = 96 };

/* Types of sockets that a confined process may still create; 0: none. */
enum confine_socket {
	CONFINE_TCP = 1u << 0, /* stream sockets of AF_INET and AF_INET6 */
	CONFINE_UDP = 1u << 1, /* datagram sockets of AF_INET and AF_INET6 */
};

/*
 * Confines a helper without files: no new privileges, no core dumps, not dumpable, only the system
 * calls in @calls, and socket() only for the types @sockets. Any other system call kills the
 * process; if @sockets is not 0, socket() for another type fails with EAFNOSUPPORT.
 */
must_check int confine_self(const int *calls, size_t n, unsigned sockets, struct writ_err *err);

/* Access that a confined process keeps to a directory and everything below, or to a single file. */
enum confine_access {
	CONFINE_READ = 0,
	CONFINE_RUN,   /* the process may execute and read */
	CONFINE_WRITE, /* the process may write and read */
};

struct confine_tree {
	const char *path; /* path of the tree; NULL or a missing path grants nothing */
	enum confine_access access;
};

/*
 * Confines a helper that keeps files: access only to @trees, only the system calls in @calls, no
 * sockets. On a kernel without Landlock, only the system call filter applies.
 */
must_check int confine_within(const struct confine_tree *trees, size_t trees_n, const int *calls,
			      size_t n, struct writ_err *err);

/*
 * Confines the calling process before it executes a foreign program: access only to @trees, no
 * network, no access to other processes, no new namespaces. Fails with WRIT_E_UNENFORCEABLE if the
 * kernel has no Landlock.
 */
must_check int confine_command(const struct confine_tree *trees, size_t n, struct writ_err *err);

#endif
