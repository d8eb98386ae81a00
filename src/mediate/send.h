/*
 * send.h - the address of a message, for the files of this room only
 *
 * Reads:  the target's memory
 * Writes: the job
 * Next:   send.c sends
 */
#ifndef WRIT_MEDIATE_SEND_H
#define WRIT_MEDIATE_SEND_H

#include "mediate/mediate_priv.h"

/* Reads and decides where @j goes. A stream goes where it is connected, whatever is said. */
int peer_for_send(struct call *c, struct job *j, uint64_t at, uint32_t n);

#endif
