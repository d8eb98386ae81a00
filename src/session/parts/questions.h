/*
 * questions.h - questions to the person at the terminal
 *
 * Reads:  keys
 * Writes: answers to egress and the reader
 * Next:   network.c passes questions of egress and the reader on
 */
#ifndef WRIT_PARTS_QUESTIONS_H
#define WRIT_PARTS_QUESTIONS_H

#include "loop/loop.h"

extern const struct session_initial questions_initial;
must_check int questions_init(struct session *s, struct writ_err *err);
void questions_poll(struct session *s, struct session_poll *set);
void questions_on_event(struct session *s, const struct pollfd *p, size_t n);
int questions_deadline(struct session *s, int least);

/* Adds a question. @reader: the reader of requests asks, not egress. */
void questions_add(struct session *s, uint32_t id, bool reader, const char *object);

#endif
