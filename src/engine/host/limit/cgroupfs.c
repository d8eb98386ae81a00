#include "limit/limit_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

int limit_file_get(int dir, const char *file, char *ret_text, size_t size)
{
	scoped_fd fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno;
	do
		n = read(fd, ret_text, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno;
	ret_text[n] = 0;
	return 0;
}

bool limit_number_get(int dir, const char *file, uint64_t *ret_v)
{
	char text[64];
	struct sv rest;

	if (limit_file_get(dir, file, text, sizeof(text)) != 0)
		return false;
	rest = sv_from(text);
	return sv_to_u64(sv_cut(&rest, '\n'), UINT64_MAX, ret_v);
}

bool limit_cpu_get(int dir, uint64_t *ret_quota, uint64_t *ret_period)
{
	char text[64];
	struct sv rest;

	if (limit_file_get(dir, "cpu.max", text, sizeof(text)) != 0)
		return false;
	rest = sv_from(text);
	return sv_to_u64(sv_cut(&rest, ' '), UINT32_MAX, ret_quota) &&
	       sv_to_u64(sv_cut(&rest, '\n'), UINT32_MAX, ret_period) && *ret_period;
}

bool limit_file_exists(int dir, const char *file)
{
	return faccessat(dir, file, F_OK, 0) == 0;
}

void limit_dirs_below(int dir, int depth, dir_fn *fn, void *ctx)
{
	scoped_list *d = depth > 0 ? fd_open_list(dir, ".") : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;

		scoped_fd below = openat(dirfd(d), e->d_name,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below < 0)
			continue;
		limit_dirs_below(below, depth - 1, fn, ctx);
		fn(dirfd(d), e->d_name, below, ctx);
	}
}
