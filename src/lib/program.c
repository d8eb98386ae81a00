#include "lib/program_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* From supervise_program.S. */
extern const unsigned char lib_supervise_program[];
extern const unsigned char lib_supervise_program_end[];

/* SECURITY: a file that is not byte for byte ours is not run. */
static bool is_ours(int fd)
{
	const size_t size = (size_t)(lib_supervise_program_end - lib_supervise_program);
	char page[65536];
	size_t at = 0;
	ssize_t n;

	while ((n = pread(fd, page, sizeof(page), (off_t)at)) > 0) {
		if ((size_t)n > size - at ||
		    memcmp(page, lib_supervise_program + at, (size_t)n) != 0)
			return false;
		at += (size_t)n;
	}
	return n == 0 && at == size;
}

/* Where it was built for, a package of the system, or `make install` puts it. */
static int open_installed(void)
{
	static const char *const places[] = { WRIT_SUPERVISE, "/usr/libexec/writ/writ-supervise",
					      "/usr/local/libexec/writ/writ-supervise" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		scoped_fd fd = open(places[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && is_ours(fd))
			return take_fd(&fd);
	}
	return -1;
}

/* The installed one is taken if it is the same: profiles of AppArmor go by its name. */
int program_open(int *ret_fd, struct writ_err *err)
{
	const unsigned seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	const struct sv bytes = { (const char *)lib_supervise_program,
				  (size_t)(lib_supervise_program_end - lib_supervise_program) };
	scoped_fd fd = open_installed();
	int r;

	if (fd >= 0) {
		*ret_fd = take_fd(&fd);
		return 0;
	}
	fd = memfd_create("writ-supervise", MFD_CLOEXEC | MFD_ALLOW_SEALING | 16u /* MFD_EXEC */);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("writ-supervise", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	r = fd_write_all(fd, bytes, err);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "seal writ-supervise");
	*ret_fd = take_fd(&fd);
	return 0;
}
