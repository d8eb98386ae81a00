/*
 * shell_priv.h - words and simple commands of POSIX-like shell text
 *
 * Reads:  text with shell quoting, in place or as the value of a node
 * Writes: nodes in the check's arena
 * Next:   docker.c, dockerfile.c, command.c
 *
 * Nothing is expanded. Substitutions stay in their word as written;
 * lint_shell_inner() returns their content.
 */
#ifndef WRIT_LINT_SHELL_PRIV_H
#define WRIT_LINT_SHELL_PRIV_H

#include "lint/check_priv.h"

enum { SHELL_NEST_MAX = 8 };

/* Shell text and the place in the linted file where the text comes from. */
struct shell {
	struct check *c;
	struct sv text;
	size_t off;		  /* offset of text in the file, if @fixed is NULL */
	/* node whose position in the file every word of the text gets in findings; NULL: use off */
	const struct node *fixed;
	char escape;		  /* escape character: '\\', or '`' in some Dockerfiles */
	char closer;		  /* unquoted character that ends the text, or 0 */
	bool dockerfile;	  /* Dockerfile text: skip comment lines inside a continued line */
	size_t at;		  /* offset in the text of the next byte to read */
};

/* A simple command: words without control operators. */
struct simple {
	struct node_list argv;
	bool piped; /* the output of this command is piped into the next command */
};

struct simples {
	struct simple *v;
	size_t n, room;
};

/*
 * Reads one simple command, up to the next control operator or newline. Returns false at the end of
 * the text.
 */
must_check bool lint_shell_simple(struct shell *sh, struct simple *ret_s);
void lint_shell_all(struct shell *sh, struct simples *out);
/* Applies every rule about commands to the rest of the shell text. */
void lint_shell_check(struct shell *sh);

/*
 * Returns the content of the next $(...), <(...) or `...` in @word from *@at on, and moves *@at
 * past that substitution.
 */
must_check bool lint_shell_inner(struct sv word, size_t *at, struct sv *ret_inner);

#endif
