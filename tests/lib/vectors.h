/*
 * vectors.h - files of tests/vectors, for unit tests
 */
#ifndef WRIT_TESTS_VECTORS_H
#define WRIT_TESTS_VECTORS_H

#include <stdlib.h>

#include "base/fd.h"
#include "tap.h"

/* Appends tests/vectors/@name; an empty buffer is a failed test. */
__attribute__((unused)) static void vector_read(const char *name, struct buf *b)
{
	const char *src = getenv("SRC");
	struct writ_err err = { 0 };
	scoped_buf path = BUF_INIT(4096);

	buf_fmt(&path, "%s/tests/vectors/%s", src ? src : ".", name);
	if (buf_check(&path, &err) < 0 || fd_read_file(path.p, b, &err) < 0)
		ok(false, "read %s: %s", name, err.what);
}

#endif
