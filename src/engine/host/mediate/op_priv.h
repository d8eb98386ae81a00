/*
 * op_priv.h - one function per trapped system call
 *
 * Each returns a value for the caller, -errno or an ANSWER_* of mediate_priv.h.
 */
#ifndef WRIT_MEDIATE_OP_PRIV_H
#define WRIT_MEDIATE_OP_PRIV_H

#include "mediate/mediate.h"

struct call;

typedef int (*op_fn)(struct call *c);
/*
 * Finds the function for a system call. Never returns NULL: an unknown call gets a function that
 * returns -ENOSYS.
 */
op_fn op_find(int nr, enum mediate_op *ret_op);

int op_open(struct call *c);
int op_openat(struct call *c);
int op_creat(struct call *c);
int op_mkdir(struct call *c);
int op_mkdirat(struct call *c);
int op_mknod(struct call *c);
int op_mknodat(struct call *c);
int op_symlink(struct call *c);
int op_symlinkat(struct call *c);
int op_unlink(struct call *c);
int op_unlinkat(struct call *c);
int op_rmdir(struct call *c);
int op_rename(struct call *c);
int op_renameat(struct call *c);
int op_renameat2(struct call *c);
int op_link(struct call *c);
int op_linkat(struct call *c);
int op_truncate(struct call *c);
int op_chmod(struct call *c);
int op_fchmod(struct call *c);
int op_fchmodat(struct call *c);
int op_fchmodat2(struct call *c);
int op_chown(struct call *c);
int op_lchown(struct call *c);
int op_fchown(struct call *c);
int op_fchownat(struct call *c);
int op_utime(struct call *c);
int op_utimes(struct call *c);
int op_futimesat(struct call *c);
int op_utimensat(struct call *c);
int op_setxattr(struct call *c);
int op_lsetxattr(struct call *c);
int op_fsetxattr(struct call *c);
int op_removexattr(struct call *c);
int op_lremovexattr(struct call *c);
int op_fremovexattr(struct call *c);
int op_ioctl(struct call *c);
int op_connect(struct call *c);
int op_datagram(struct call *c);
int op_bind(struct call *c);
int op_listen(struct call *c);
int op_sendto(struct call *c);
int op_sendmsg(struct call *c);
int op_sendmmsg(struct call *c);
int op_exec(struct call *c);
int op_execat(struct call *c);
int op_umask(struct call *c);

#endif
