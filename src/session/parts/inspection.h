/*
 * inspection.h - writ-l7, which reads requests; its certificate authority; and secrets
 *
 * Reads:  settings of the policy and the operator
 * Writes: certificates for programs in the jail
 * Next:   l7/ implements writ-l7; network.c reads its messages
 *
 * A policy about requests needs the plain text of requests: writ-l7 terminates TLS with the
 * certificate authority of the session, which programs in the jail are told to trust. The
 * supervisor fetches secrets once, into memory that no child inherits, and sends them to writ-l7
 * only, unless the policy puts a secret into the environment of the jail.
 */
#ifndef WRIT_PARTS_INSPECTION_H
#define WRIT_PARTS_INSPECTION_H

#include "loop/loop.h"

extern const struct session_initial inspection_initial;
/* Makes the files for the session's certificate authority, so that the jail can mount them. */
must_check int inspection_prepare(struct session *s, struct writ_err *err);
must_check int inspection_start(struct session *s, struct writ_err *err);
/* Waits for the certificate authority of the session: no command runs before it is known. */
must_check int inspection_wait(struct session *s, struct writ_err *err);

/* Returns whether writ-l7 reads the requests of this session. */
bool inspection_reads(const struct session *s);
/* Returns the directory of certificates on the host; empty: none. */
struct sv inspection_trust_dir(const struct session *s);
/* Starts writ-l7, or starts it again after it has ended. */
must_check int inspection_launch(struct session *s, struct writ_err *err);
must_check int inspection_trust(struct session *s, struct sv pem, struct writ_err *err);
/*
 * Returns the @i-th variable that tells programs which certificate authorities to trust. Returns
 * false if there is no such variable.
 */
must_check bool inspection_trust_name(struct session *s, size_t i, struct sv *ret_name,
				      struct sv *ret_value);

/* Implemented in secrets.c. */
must_check int secrets_fetch(struct session *s, struct writ_err *err);
/* Returns the value of a secret's variable in the jail: a placeholder, or the secret itself. */
must_check bool secrets_shown(struct session *s, size_t i, struct sv *ret);
void secrets_clear(struct session *s);

/* operator_env.c: settings of the person who runs writ, from writ's own environment. */
struct upstream;
struct entry;
must_check int operator_start(struct session *s, struct writ_err *err);
/* Returns the proxy of the host's network through which egress connects; NULL: none. */
const struct upstream *operator_upstream(const struct session *s);
void operator_record(const struct session *s, struct entry *entry);

#endif
