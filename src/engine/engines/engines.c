#include "engines/engines.h"

#include "host/host.h"

#include "base/banned.h"

static int able_absent(const struct engine *e, struct arena *a, const struct engine_ask *ask,
		       struct engine_able *ret, struct writ_err *err)
{
	(void)a, (void)ask, (void)err;
	ret->lacks = e->absent;
	return 0;
}

#define ABSENT(n)                                                                                  \
	(&(const struct engine){                                                                   \
		.name = (n), .absent = n ": not in this version", .able = able_absent })

const struct engine *const engines_all[] = {
	&host_engine,	  ABSENT("crun"), ABSENT("runc"),	 ABSENT("gvisor"), ABSENT("podman"),
	ABSENT("docker"), ABSENT("qemu"), ABSENT("firecracker"), ABSENT("wasm"),   NULL,
};
