#include "limit/rlimit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum {
	RLIMIT_HELPERS = 8, /* reserve for the processes that writ starts later */
	/* Queued signals of a session: at most SIGNALS_MAX, and 1 / SIGNALS_SHARE of the user's. */
	SIGNALS_MAX = 1024,
	SIGNALS_SHARE = 8,
};

static uint64_t signals_of(uint64_t own)
{
	return own / SIGNALS_SHARE < SIGNALS_MAX ? own / SIGNALS_SHARE : SIGNALS_MAX;
}

/*
 * SECURITY: the kernel counts the descriptors of a user that are in flight in messages, whatever
 * the namespace, and lets no process send more whose limit of open files is below the count. So a
 * session with the limit of writ's own processes could stop these, and other sessions, from passing
 * descriptors. A message has at most 253 of them, and several processes may send one at the
 * same moment, so the distance is large where the limit is.
 */
uint64_t rlimit_files_of(uint64_t own)
{
	return own < 4096 ? own / 2 : own - own / 4;
}

size_t rlimit_make(const struct host_facts *f, const struct rlimit_ask *a,
		   struct rlimit_row ret_rows[static RLIMIT_ROWS])
{
	size_t n = 0;

	/*
	 * Forbid core dumps, which would write the memory of a process with its secrets to a file.
	 */
	ret_rows[n++] = (struct rlimit_row){ RLIMIT_CORE, 0 };
	if (a->files)
		ret_rows[n++] = (struct rlimit_row){ RLIMIT_NOFILE, a->files };
	/*
	 * RLIMIT_DATA limits each process alone, so the sum over all processes has no bound. The
	 * plan therefore reports the memory limit as partial.
	 */
	if (a->memory && !a->memory_held)
		ret_rows[n++] = (struct rlimit_row){ RLIMIT_DATA, a->memory };
	/*
	 * The kernel counts processes per user and user namespace, and does not limit real uid 0. A
	 * session without a user namespace of its own shares the count with the user's other
	 * processes, so the limit must include their number.
	 */
	if (a->pids && !a->pids_held && !f->root && (!a->own_userns || f->rlimit_nproc_userns))
		ret_rows[n++] = (struct rlimit_row){
			RLIMIT_NPROC, a->pids + (a->own_userns ? 0 : a->others + RLIMIT_HELPERS)
		};
	/*
	 * SECURITY: the kernel counts queued signals for the user, through all user namespaces. A
	 * session with the user's own limit could use up the whole count. Programs of the user
	 * outside could then make no timer, which needs a queued signal.
	 */
	if (a->own_signals)
		ret_rows[n++] = (struct rlimit_row){ RLIMIT_SIGPENDING,
						     signals_of(a->own_signals) };
	return n;
}

/* Returns the number after @key at the start of a line of @text; 0 if there is no such line. */
static uint64_t number_of(struct sv text, struct sv key)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');
		uint64_t v;

		if (!sv_starts(line, key))
			continue;
		line = sv_skip(line, key.n);
		return sv_to_u64(sv_cut(&line, '\t'), UINT64_MAX, &v) ? v : 0;
	}
	return 0;
}

/* Returns the number of threads of one process, or 0 if the process belongs to another user. */
static uint64_t count_one(int proc, const char *name, uid_t uid)
{
	char path[32], text[2048];
	scoped_fd fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.16s/status", name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (n <= 0 || number_of((struct sv){ text, (size_t)n }, SV("Uid:\t")) != uid)
		return 0;
	return number_of((struct sv){ text, (size_t)n }, SV("Threads:\t"));
}

uint64_t rlimit_count(uid_t uid)
{
	scoped_list *d = fd_open_list(AT_FDCWD, "/proc");
	const struct dirent *e;
	uint64_t n = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			n += count_one(dirfd(d), e->d_name, uid);
	return n;
}
