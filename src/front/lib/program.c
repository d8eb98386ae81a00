#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

static int open_program(const char *path)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return -1;
	return fd_take(&fd);
}

/*
 * Returns the directory of the library's file, or of the program that contains the library.
 * SECURITY: a user who can write to this directory can replace the library itself, so running a
 * program from this directory adds no risk. A relative path would depend on the working directory
 * and is refused.
 */
static bool own_dir(char ret[static PATH_MAX])
{
	Dl_info info;
	ssize_t n = 0;

	if (dladdr((void *)(uintptr_t)&lib_program_open, &info) && info.dli_fname &&
	    info.dli_fname[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s", info.dli_fname);
	else
		n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	if (n <= 0 || n >= PATH_MAX)
		return false;
	ret[n] = 0;
	*strrchr(ret, '/') = 0;
	return ret[0] == '/';
}

/*
 * Opens the writ program: @path if given; else the one of the library's own installation (lib/ or
 * lib/TRIPLET/ beside bin/, or everything in one directory); else the path that was set at build
 * time. Environment variables have no influence.
 */
int lib_program_open(const char *path, int *ret_fd, struct writ_err *err)
{
	static const char *const beside[] = { "../bin/writ", "../../bin/writ", "writ" };
	char dir[PATH_MAX], name[PATH_MAX + 32];
	int fd = -1;

	if (path) {
		fd = open_program(path);
		if (fd < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "cannot run %.90s", path);
	}
	for (size_t i = 0; fd < 0 && i < ARRAY_LEN(beside) && own_dir(dir); i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", dir, beside[i]);
		fd = open_program(name);
	}
	if (fd < 0)
		fd = open_program(WRIT_PROGRAM);
	if (fd < 0)
		return writ_fail(
			err, WRIT_E_SYS, ENOENT,
			"writ is not installed: %.60s (writ_options.program names another)",
			WRIT_PROGRAM);
	*ret_fd = fd;
	return 0;
}
