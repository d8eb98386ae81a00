/* fuzz_tlog_policy - policies of logs and witnesses */
#include "fuzz.h"
#include "tlog/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(2 * TLOG_POLICY_MAX), again = BUF_INIT(2 * TLOG_POLICY_MAX);
	static struct tlog_policy p, q;

	if (tlog_policy_parse(bytes, &p, &err) < 0) {
		must(err.what[0] != 0);
		return 0;
	}
	tlog_policy_print(&p, &b);
	if (b.n > TLOG_POLICY_MAX)
		return 0;
	must(tlog_policy_parse(buf_view(&b), &q, &err) == 0);
	tlog_policy_print(&q, &again);
	must(sv_eq(buf_view(&again), buf_view(&b)));
	/* All witnesses together are always enough, and nobody only if nobody is asked for. */
	must(tlog_policy_met(&p, UINT32_MAX));
	must(tlog_policy_met(&p, 0) == (p.quorum == TLOG_QUORUM_NONE));
	for (uint32_t by = 0; by < 256; by++)
		must(tlog_policy_met(&p, by) == tlog_policy_met(&q, by));
	return 0;
}
