/* fuzz_tlog_policy - policies of logs and witnesses */
#include "fuzz.h"
#include "tlog/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	static struct tlog_policy p;

	if (tlog_policy_parse(bytes, &p, &err) < 0) {
		must(err.what[0] != 0);
		return 0;
	}
	/* All witnesses together are always enough, and nobody only if nobody is asked for. */
	must(tlog_policy_met(&p, UINT32_MAX));
	must(tlog_policy_met(&p, 0) == (p.quorum == TLOG_QUORUM_NONE));
	return 0;
}
