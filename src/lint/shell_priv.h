/*
 * shell_priv.h - words and simple commands of POSIX-like shell text
 *
 * Reads:  text with shell quoting, in place or as the value of a node
 * Writes: nodes in the check's arena
 * Next:   docker.c, dockerfile.c, command.c
 *
 * Nothing is expanded. Substitutions stay in their word as written and are read
 * again by whoever wants to look inside.
 */
#ifndef WRIT_LINT_SHELL_PRIV_H
#define WRIT_LINT_SHELL_PRIV_H

#include "lint/check_priv.h"

enum { SHELL_NEST_MAX = 8 };

/* Where shell text comes from. */
struct shell {
	struct check *c;
	struct sv text;
	size_t off;		  /* of text in the file, if @fixed is NULL */
	const struct node *fixed; /* position of every word, or NULL */
	char escape;		  /* '\\', or '`' in some Dockerfiles */
	char closer;		  /* ends the text when met unquoted, or 0 */
	bool dockerfile;	  /* comment lines inside a continued line vanish */
	size_t at;		  /* next byte */
};

/* One simple command and the operator after it. */
struct simple {
	struct node_list argv;
	bool piped; /* its output goes into the next one */
};

struct simples {
	struct simple *v;
	size_t n, room;
};

/* Reads up to the next control operator or newline. False at the end of text. */
must_check bool lint_shell_simple(struct shell *sh, struct simple *ret_s);
void lint_shell_all(struct shell *sh, struct simples *out);
/* Every rule about commands, for the rest of the text. */
void lint_shell_check(struct shell *sh);

/* Inside of the next $(...), <(...) or `...` of @word from *@at on; moves *@at. */
must_check bool lint_shell_inner(struct sv word, size_t *at, struct sv *ret_inner);

#endif
