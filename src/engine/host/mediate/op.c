#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "mediate/op_priv.h"

#include "base/banned.h"

/* fchmodat2() is newer than the oldest supported headers. */
enum { NR_FCHMODAT2 = 452 };

/*
 * Answers a call that the filter traps but for which the table has no row. Programs have a fallback
 * for missing system calls.
 */
static int op_missing(struct call *c)
{
	(void)c;
	return -ENOSYS;
}

/* clang-format off */
static const struct op rows[] = {
	{ SYS_openat,        MEDIATE_WRITE,   OP_AT,    1, 0,                            op_open },
	{ SYS_mkdirat,       MEDIATE_WRITE,   OP_AT,    0, 0,                            op_mkdir },
	{ SYS_mknodat,       MEDIATE_WRITE,   OP_AT,    0, 0,                            op_mknod },
	{ SYS_symlinkat,     MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_symlink },
	{ SYS_unlinkat,      MEDIATE_WRITE,   OP_AT,    1, 0,                            op_unlink },
	{ SYS_renameat2,     MEDIATE_WRITE,   OP_AT,    3, 0,                            op_rename },
	{ SYS_linkat,        MEDIATE_WRITE,   OP_AT,    3, 0,                            op_link },
	{ SYS_truncate,      MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_truncate },
#ifdef SYS_renameat
	{ SYS_renameat,      MEDIATE_WRITE,   OP_AT,    0, 0,                            op_rename },
#endif
#ifdef SYS_open
	{ SYS_open,          MEDIATE_WRITE,   OP_PLAIN, 1, 0,                            op_open },
	{ SYS_creat,         MEDIATE_WRITE,   OP_PLAIN, 0, O_CREAT | O_WRONLY | O_TRUNC, op_open },
	{ SYS_mkdir,         MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_mkdir },
	{ SYS_mknod,         MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_mknod },
	{ SYS_symlink,       MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_symlink },
	{ SYS_unlink,        MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_unlink },
	{ SYS_rmdir,         MEDIATE_WRITE,   OP_PLAIN, 0, AT_REMOVEDIR,                 op_unlink },
	{ SYS_rename,        MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_rename },
	{ SYS_link,          MEDIATE_WRITE,   OP_PLAIN, 0, 0,                            op_link },
	{ SYS_chmod,         MEDIATE_META,    OP_PLAIN, 0, 0,                            op_chmod },
	{ SYS_chown,         MEDIATE_META,    OP_PLAIN, 0, 0,                            op_chown },
	{ SYS_lchown,        MEDIATE_META,    OP_PLAIN, 0, AT_SYMLINK_NOFOLLOW,          op_chown },
	{ SYS_utime,         MEDIATE_META,    OP_PLAIN, 0, 0,                            op_utime },
	{ SYS_utimes,        MEDIATE_META,    OP_PLAIN, 0, 0,                            op_utimes },
	{ SYS_futimesat,     MEDIATE_META,    OP_AT,    0, 0,                            op_utimes },
#endif
	{ SYS_fchmod,        MEDIATE_META,    OP_FD,    0, 0,                            op_chmod },
	{ SYS_fchmodat,      MEDIATE_META,    OP_AT,    0, 0,                            op_chmod },
	{ NR_FCHMODAT2,      MEDIATE_META,    OP_AT,    2, 0,                            op_chmod },
	{ SYS_fchown,        MEDIATE_META,    OP_FD,    0, 0,                            op_chown },
	{ SYS_fchownat,      MEDIATE_META,    OP_AT,    3, 0,                            op_chown },
	{ SYS_utimensat,     MEDIATE_META,    OP_AT,    2, 0,                            op_utimensat },
	{ SYS_setxattr,      MEDIATE_META,    OP_PLAIN, 0, 0,                            op_setxattr },
	{ SYS_lsetxattr,     MEDIATE_META,    OP_PLAIN, 0, AT_SYMLINK_NOFOLLOW,          op_setxattr },
	{ SYS_fsetxattr,     MEDIATE_META,    OP_FD,    0, 0,                            op_setxattr },
	{ SYS_removexattr,   MEDIATE_META,    OP_PLAIN, 0, 0,                            op_removexattr },
	{ SYS_lremovexattr,  MEDIATE_META,    OP_PLAIN, 0, AT_SYMLINK_NOFOLLOW,          op_removexattr },
	{ SYS_fremovexattr,  MEDIATE_META,    OP_FD,    0, 0,                            op_removexattr },
	{ SYS_ioctl,         MEDIATE_META,    OP_PLAIN, 0, 0,                            op_ioctl },
	{ SYS_connect,       MEDIATE_CONNECT, OP_PLAIN, 0, 0,                            op_connect },
	{ SYS_socket,        MEDIATE_CONNECT, OP_PLAIN, 0, 0,                            op_datagram },
	{ SYS_socketpair,    MEDIATE_CONNECT, OP_PLAIN, 0, 0,                            op_datagram },
	{ SYS_bind,          MEDIATE_BIND,    OP_PLAIN, 0, 0,                            op_bind },
	{ SYS_listen,        MEDIATE_BIND,    OP_PLAIN, 0, 0,                            op_listen },
	{ SYS_sendto,        MEDIATE_CONNECT, OP_PLAIN, 0, 0,                            op_sendto },
	{ SYS_sendmsg,       MEDIATE_CONNECT, OP_PLAIN, 0, 0,                            op_sendmsg },
	{ SYS_sendmmsg,      MEDIATE_CONNECT, OP_PLAIN, 0, 0,                            op_sendmmsg },
	{ SYS_execve,        MEDIATE_EXEC,    OP_PLAIN, 0, 0,                            op_exec },
	{ SYS_execveat,      MEDIATE_EXEC,    OP_AT,    3, 0,                            op_exec },
	{ SYS_umask,         MEDIATE_NONE,    OP_PLAIN, 0, 0,                            op_umask },
};
/* clang-format on */

const struct op *op_find(int nr)
{
	static const struct op missing = { .op = MEDIATE_NONE, .fn = op_missing };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].nr == nr)
			return &rows[i];
	return &missing;
}
