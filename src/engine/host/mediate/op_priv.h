/*
 * op_priv.h - one function per trapped system call
 *
 * Each function returns the result of the call, -errno or an ANSWER_* of mediate_priv.h.
 */
#ifndef WRIT_MEDIATE_OP_PRIV_H
#define WRIT_MEDIATE_OP_PRIV_H

#include "plan/event.h"

struct call;

/* The form in which a call names its object. */
enum op_form {
	OP_PLAIN, /* a path relative to the caller's current directory, or no path */
	OP_AT,	  /* the first argument is a descriptor of the directory where the path starts */
	OP_FD,	  /* the first argument is a descriptor of the object */
};

/* A row of the table of trapped calls. */
struct op {
	int nr;
	enum mediate_op op;
	enum op_form form;
	/* Index of the flags argument in call.arg; 0: the call has none and implies @flags. */
	unsigned flags_at, flags;
	int (*fn)(struct call *c);
};
/* Finds the row for a system call. A call without a row gets one that answers ENOSYS. */
const struct op *op_find(int nr);

int op_open(struct call *c);
int op_mkdir(struct call *c);
int op_mknod(struct call *c);
int op_symlink(struct call *c);
int op_unlink(struct call *c);
int op_rename(struct call *c);
int op_link(struct call *c);
int op_truncate(struct call *c);
int op_chmod(struct call *c);
int op_chown(struct call *c);
int op_utime(struct call *c);
int op_utimes(struct call *c);
int op_utimensat(struct call *c);
int op_setxattr(struct call *c);
int op_removexattr(struct call *c);
int op_ioctl(struct call *c);
int op_connect(struct call *c);
int op_datagram(struct call *c);
int op_bind(struct call *c);
int op_listen(struct call *c);
int op_sendto(struct call *c);
int op_sendmsg(struct call *c);
int op_sendmmsg(struct call *c);
int op_exec(struct call *c);
int op_umask(struct call *c);

#endif
