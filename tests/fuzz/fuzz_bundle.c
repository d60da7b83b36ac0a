/* Archives, in their passes: split differently in each pass. */
#include "fuzz.h"
#include "oracle/digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	digest_cuts(data, size, NULL, digest_bundle);
	return 0;
}
