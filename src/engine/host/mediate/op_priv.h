/*
 * op_priv.h - one function per trapped system call
 *
 * Each returns a value for the caller, -errno or an ANSWER_* of mediate_priv.h.
 */
#ifndef WRIT_MEDIATE_OP_PRIV_H
#define WRIT_MEDIATE_OP_PRIV_H

#include "plan/event.h"

struct call;

/* The form in which a call names its object. */
enum op_form {
	OP_PLAIN, /* a path from the caller's directory, or no path at all */
	OP_AT,	  /* the first argument is the directory of the path that follows */
	OP_FD,	  /* the first argument is a descriptor of the object */
};

/* A row of the table of trapped calls. */
struct op {
	int nr;
	enum mediate_op op;
	enum op_form form;
	/* Number of the argument with flags; 0: none, @flags are those that the call implies. */
	unsigned flags_at, flags;
	int (*fn)(struct call *c);
};
/*
 * Finds the row for a system call. Never returns NULL: an unknown call gets a row whose function
 * returns -ENOSYS.
 */
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
