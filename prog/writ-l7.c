/*
 * writ-l7 - inspects the HTTP requests of one session; started by the supervisor, not by users
 *
 * enum l7_fd in l7/l7.h names its descriptors, from 3 on. Exits with 0 when the supervisor closes
 * its end of the socket.
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
