#include "mediate/mediate_priv.h"

#include <errno.h>
#include <sys/syscall.h>

#include "mediate/op_priv.h"

#include "base/banned.h"

/* fchmodat2() is newer than the headers we build with. */
enum { NR_FCHMODAT2 = 452 };

/*
 * Answers a call that the filter traps but no row handles. Programs have a fallback for missing
 * system calls.
 */
static int op_missing(struct call *c)
{
	(void)c;
	return -ENOSYS;
}

struct row {
	int nr;
	enum mediate_op op;
	op_fn fn;
};

/* clang-format off */
static const struct row rows[] = {
	{ SYS_openat,        MEDIATE_WRITE,   op_openat },
	{ SYS_mkdirat,       MEDIATE_WRITE,   op_mkdirat },
	{ SYS_mknodat,       MEDIATE_WRITE,   op_mknodat },
	{ SYS_symlinkat,     MEDIATE_WRITE,   op_symlinkat },
	{ SYS_unlinkat,      MEDIATE_WRITE,   op_unlinkat },
	{ SYS_renameat2,     MEDIATE_WRITE,   op_renameat2 },
	{ SYS_linkat,        MEDIATE_WRITE,   op_linkat },
	{ SYS_truncate,      MEDIATE_WRITE,   op_truncate },
#ifdef SYS_renameat
	{ SYS_renameat,      MEDIATE_WRITE,   op_renameat },
#endif
#ifdef SYS_open
	{ SYS_open,          MEDIATE_WRITE,   op_open },
	{ SYS_creat,         MEDIATE_WRITE,   op_creat },
	{ SYS_mkdir,         MEDIATE_WRITE,   op_mkdir },
	{ SYS_mknod,         MEDIATE_WRITE,   op_mknod },
	{ SYS_symlink,       MEDIATE_WRITE,   op_symlink },
	{ SYS_unlink,        MEDIATE_WRITE,   op_unlink },
	{ SYS_rmdir,         MEDIATE_WRITE,   op_rmdir },
	{ SYS_rename,        MEDIATE_WRITE,   op_rename },
	{ SYS_link,          MEDIATE_WRITE,   op_link },
	{ SYS_chmod,         MEDIATE_META,    op_chmod },
	{ SYS_chown,         MEDIATE_META,    op_chown },
	{ SYS_lchown,        MEDIATE_META,    op_lchown },
	{ SYS_utime,         MEDIATE_META,    op_utime },
	{ SYS_utimes,        MEDIATE_META,    op_utimes },
	{ SYS_futimesat,     MEDIATE_META,    op_futimesat },
#endif
	{ SYS_fchmod,        MEDIATE_META,    op_fchmod },
	{ SYS_fchmodat,      MEDIATE_META,    op_fchmodat },
	{ NR_FCHMODAT2,      MEDIATE_META,    op_fchmodat2 },
	{ SYS_fchown,        MEDIATE_META,    op_fchown },
	{ SYS_fchownat,      MEDIATE_META,    op_fchownat },
	{ SYS_utimensat,     MEDIATE_META,    op_utimensat },
	{ SYS_setxattr,      MEDIATE_META,    op_setxattr },
	{ SYS_lsetxattr,     MEDIATE_META,    op_lsetxattr },
	{ SYS_fsetxattr,     MEDIATE_META,    op_fsetxattr },
	{ SYS_removexattr,   MEDIATE_META,    op_removexattr },
	{ SYS_lremovexattr,  MEDIATE_META,    op_lremovexattr },
	{ SYS_fremovexattr,  MEDIATE_META,    op_fremovexattr },
	{ SYS_ioctl,         MEDIATE_META,    op_ioctl },
	{ SYS_connect,       MEDIATE_CONNECT, op_connect },
	{ SYS_socket,        MEDIATE_CONNECT, op_datagram },
	{ SYS_socketpair,    MEDIATE_CONNECT, op_datagram },
	{ SYS_bind,          MEDIATE_BIND,    op_bind },
	{ SYS_listen,        MEDIATE_BIND,    op_listen },
	{ SYS_sendto,        MEDIATE_CONNECT, op_sendto },
	{ SYS_sendmsg,       MEDIATE_CONNECT, op_sendmsg },
	{ SYS_sendmmsg,      MEDIATE_CONNECT, op_sendmmsg },
	{ SYS_execve,        MEDIATE_EXEC,    op_exec },
	{ SYS_execveat,      MEDIATE_EXEC,    op_execat },
	{ SYS_umask,         MEDIATE_NONE,    op_umask },
};
/* clang-format on */

op_fn op_find(int nr, enum mediate_op *ret_op)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].nr == nr) {
			*ret_op = rows[i].op;
			return rows[i].fn;
		}
	*ret_op = MEDIATE_NONE;
	return op_missing;
}
