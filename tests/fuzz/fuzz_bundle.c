/* Archives, in their passes: cut in each of them anew. */
#include "digest.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	digest_cuts(data, size, NULL, digest_bundle);
	return 0;
}
