#include "lint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return lint_fuzz(LINT_MCP, data, size);
}
