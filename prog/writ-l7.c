/*
 * writ-l7 - inspects the HTTP requests of one session; started by the supervisor, not by users
 *
 * l7/l7.h describes descriptors 3 to 6. Exits with 0 when the supervisor closes its end.
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
