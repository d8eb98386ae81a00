#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/lex.h"

#include "base/banned.h"

static enum path_kind kind_of_mode(mode_t mode)
{
	if (S_ISDIR(mode))
		return PATH_DIR;
	return S_ISREG(mode) ? PATH_FILE : PATH_OTHER;
}

static enum path_kind kind_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? PATH_MISSING : kind_of_mode(st.st_mode);
}

/* Without "//", "." or "..", so that nothing but links could make it another path. */
static bool is_straight(struct sv path)
{
	if (path.n < 2 || path.p[0] != '/')
		return false;
	path = sv_skip(path, 1);
	while (path.n) {
		const struct sv seg = sv_cut(&path, '/');

		if (seg.n == 0 || sv_is(seg, ".") || sv_is(seg, ".."))
			return false;
	}
	return true;
}

/*
 * The common case in one walk of the kernel's: no link on the way to what exists of
 * it, so that the path is physical as it is. @name is changed. False: look closer.
 */
static bool lookup_straight(struct sv path, char *name, enum path_kind *ret)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	size_t keep = path.n;
	struct stat st;

	if (!is_straight(path) || path.p[path.n - 1] == '/')
		return false;
	while (keep) {
		scoped_fd fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));

		if (fd >= 0 && fstat(fd, &st) == 0) {
			*ret = keep == path.n ? kind_of_mode(st.st_mode) : PATH_MISSING;
			return true;
		}
		if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR))
			return false;
		while (keep && name[keep - 1] != '/')
			keep--;
		name[keep ? --keep : 0] = 0;
	}
	return false;
}

/* The deepest ancestor that exists, resolved, with the rest behind it. */
static bool world_lookup(void *ctx, struct arena *a, struct sv path, struct policy_path *ret)
{
	char name[PATH_MAX], real[PATH_MAX];
	struct policy_path out = { .kind = PATH_MISSING };
	size_t keep = path.n;
	const char *text;

	(void)ctx;
	if (path.n >= sizeof(name) || memchr(path.p, 0, path.n)) {
		*ret = (struct policy_path){ PATH_MISSING, path };
		return true;
	}
	memcpy(name, path.p, path.n);
	name[path.n] = 0;
	if (lookup_straight(path, name, &out.kind)) {
		if (!arena_sv(a, path, &out.physical))
			return false;
		*ret = out;
		return true;
	}
	memcpy(name, path.p, path.n);
	while (!realpath(keep ? name : "/", real)) {
		while (keep && name[keep - 1] != '/')
			keep--;
		while (keep && name[keep - 1] == '/')
			keep--;
		name[keep] = 0;
		if (keep == 0 && !realpath("/", real))
			return false;
		if (keep == 0)
			break;
	}
	if (keep == path.n)
		out.kind = kind_of(real);
	text = strcmp(real, "/") == 0 && keep < path.n
		       ? arena_fmt(a, SV_FMT, SV_ARG(sv_skip(path, keep)))
		       : arena_fmt(a, "%s" SV_FMT, real, SV_ARG(sv_skip(path, keep)));
	out.physical = sv_from(text);
	if (text)
		*ret = out;
	return text != NULL;
}

static bool world_program(void *ctx, struct arena *a, struct sv name, struct sv *ret)
{
	struct sv path = sv_from(getenv("PATH"));
	char file[PATH_MAX], real[PATH_MAX];

	(void)ctx;
	*ret = SV("");
	if (path.n == 0)
		path = SV("/usr/local/bin:/usr/bin:/bin");
	while (path.n) {
		const struct sv dir = sv_cut(&path, ':');
		struct buf b = BUF_INIT(sizeof(file) - 1);

		/* An empty or relative entry means the workspace decides: never. */
		if (!sv_starts(dir, SV("/")))
			continue;
		buf_fmt(&b, SV_FMT "/" SV_FMT, SV_ARG(dir), SV_ARG(name));
		if (!b.failed)
			memcpy(file, b.p, b.n + 1);
		else
			file[0] = 0;
		buf_clear(&b);
		if (file[0] && access(file, X_OK) == 0 && kind_of(file) == PATH_FILE &&
		    realpath(file, real))
			return arena_sv(a, sv_from(real), ret);
	}
	return true;
}

int read_text(struct arena *a, const char *path, struct source *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(LEX_TEXT_MAX + 1);
	struct source src = { .name = sv_from(path), .dir = SV("") };
	const struct sv name = sv_from(path);
	int r;

	if (strcmp(path, "-") == 0)
		r = fd_read_all(STDIN_FILENO, &b, err);
	else
		r = fd_read_file(path, &b, err);
	if (r == WRIT_E_LIMIT)
		return writ_fail(err, WRIT_E_LIMIT, 0, "%s is larger than %d bytes", path,
				 LEX_TEXT_MAX);
	if (r < 0)
		return r;
	if (strcmp(path, "-") != 0 && sv_rfind(name, '/') != SIZE_MAX)
		src.dir = sv_sub(name, 0, sv_rfind(name, '/') + 1);
	if (!arena_sv(a, buf_view(&b), &src.text))
		return writ_nomem(err);
	*ret = src;
	return 0;
}

static int world_read(void *ctx, struct arena *a, struct sv dir, struct sv name,
		      struct source *ret_src, struct sv *ret_id, struct writ_err *err)
{
	char real[PATH_MAX];
	const char *path;
	int r;

	(void)ctx;
	if (sv_starts(name, SV("~/")))
		path = arena_fmt(a, "%s" SV_FMT, getenv("HOME") ? getenv("HOME") : "",
				 SV_ARG(sv_skip(name, 1)));
	else if (sv_starts(name, SV("/")))
		path = arena_str(a, name);
	else
		path = arena_fmt(a, SV_FMT SV_FMT, SV_ARG(dir), SV_ARG(name));
	if (!path)
		return writ_nomem(err);
	if (!realpath(path, real))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	r = read_text(a, path, ret_src, err);
	if (r == 0 && !arena_sv(a, sv_from(real), ret_id))
		return writ_nomem(err);
	return r;
}

const struct policy_ops world_ops = {
	.lookup = world_lookup,
	.program = world_program,
	.read = world_read,
};
