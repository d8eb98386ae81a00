/*
 * inspection_priv.h - state of inspection
 */
#ifndef WRIT_PARTS_INSPECTION_PRIV_H
#define WRIT_PARTS_INSPECTION_PRIV_H

#include "parts/inspection.h"

struct inspection {
	bool reads;
	struct sv trust;		 /* directory of the certificates; empty: none */
	const struct upstream *upstream; /* proxy on the host's network; NULL: none */
	struct sv more_roots;		 /* certificate authorities of the operator, PEM */
	struct sv *secrets;		 /* values of secrets, by index in the policy */
	char *secret_room;		 /* memory that holds the values of secrets */
	char placeholder[33]; /* random text that makes this session's placeholders unique */
};

static inline struct inspection *inspection_of(const struct session *s)
{
	return session_state(s, &inspection_initial);
}

/*
 * Sets *@ret_fd to @roots, or to a file with the certificate authorities of @roots and of the
 * operator. Takes ownership of @roots.
 */
must_check int operator_roots(const struct session *s, int roots, int *ret_fd,
			      struct writ_err *err);

#endif
