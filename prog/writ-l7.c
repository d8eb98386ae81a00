/*
 * writ-l7 - reads requests for one session; started by the supervisor, never by hand
 *
 * Descriptors 3 to 6 are what l7/l7.h says. Exit code 0 when the supervisor is gone.
 */
#include <stdio.h>

#include "l7/l7.h"

#include "base/banned.h"

int main(void)
{
	struct writ_err err = { 0 };

	if (l7_main(&err) == 0)
		return 0;
	(void)fprintf(stderr, "writ-l7: %s\n", err.what);
	return 1;
}
