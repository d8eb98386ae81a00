/* fuzz_wire_address - 4 or 16 bytes of an address */
#include <string.h>

#include "fuzz.h"
#include "wire/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cap_net_addr a = { .v6 = size >= 16, .len = size >= 16 ? 128 : 32 };
	struct address_verdict v;

	if (size < 4)
		return 0;
	memcpy(a.b, data, a.v6 ? 16 : 4);
	v = address_judge(&a);
	must(address_class_name(v.class)[0] && v.range);
	if (v.class == ADDRESS_PUBLIC)
		must(v.form == ADDRESS_PLAIN && (!a.v6 || a.b[0] >> 5 == 1) && !v.openable);
	if (v.form != ADDRESS_PLAIN) {
		must(a.v6 && v.inner.len == 32 && !v.openable);
		/* What is bad alone is not better inside. */
		must(v.form == ADDRESS_TEREDO || v.form == ADDRESS_ISATAP ||
		     address_judge(&v.inner).class == v.class || v.class == ADDRESS_EMBEDDED);
		must(v.class != ADDRESS_EMBEDDED ||
		     address_judge(&v.inner).class == ADDRESS_PUBLIC);
	}
	if (a.v6) {
		struct cap_net_addr mapped = { .b = { [10] = 0xff, 0xff }, .len = 128, .v6 = true };

		memcpy(mapped.b + 12, data, 4);
		v = address_judge(&mapped);
		must(v.form == ADDRESS_MAPPED && v.class != ADDRESS_PUBLIC);
	}
	return 0;
}
