#include "facts/probe_priv.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

struct sv facts_passwd_name(struct sv text, uint64_t uid)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');
		const struct sv name = sv_cut(&line, ':');
		uint64_t v;

		(void)sv_cut(&line, ':'); /* skip the password */
		if (name.n && sv_to_u64(sv_cut(&line, ':'), UINT32_MAX, &v) && v == uid)
			return name;
	}
	return SV("");
}

bool facts_subid_has_range(struct sv text, uint64_t uid, struct sv name)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');
		const struct sv who = sv_cut(&line, ':');
		const struct sv start = sv_cut(&line, ':');
		uint64_t v, from, count;
		const bool ours = (sv_to_u64(who, UINT32_MAX, &v) && v == uid) ||
				  (name.n && sv_eq(who, name));

		if (ours && sv_to_u64(start, UINT32_MAX, &from) &&
		    sv_to_u64(sv_trim(line), UINT32_MAX, &count) && count > 0)
			return true;
	}
	return false;
}

static bool file_has_range(const char *path, uint64_t uid, struct sv name)
{
	scoped_buf b = BUF_INIT(1024 * 1024);
	struct writ_err err;

	return fd_read_file(path, &b, &err) == 0 && facts_subid_has_range(buf_view(&b), uid, name);
}

/*
 * Checks that the helper program is executable and that running it would give it the privilege to
 * write id maps.
 */
static bool helper_works(const char *path, bool root)
{
	struct statvfs vfs;
	struct stat st;

	if (access(path, X_OK) < 0 || stat(path, &st) < 0 || statvfs(path, &vfs) < 0)
		return false;
	if (root)
		return true;
	if (vfs.f_flag & ST_NOSUID || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
		return false;
	return (st.st_mode & S_ISUID && st.st_uid == 0) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

bool probe_subids(const struct host_facts *f)
{
	scoped_buf b = BUF_INIT(4 * 1024 * 1024);
	struct writ_err err;
	struct sv name = SV("");

	if (!helper_works("/usr/bin/newuidmap", f->root) ||
	    !helper_works("/usr/bin/newgidmap", f->root))
		return false;
	if (fd_read_file("/etc/passwd", &b, &err) == 0)
		name = facts_passwd_name(buf_view(&b), f->uid);
	return file_has_range("/etc/subuid", f->uid, name) &&
	       file_has_range("/etc/subgid", f->uid, name);
}
