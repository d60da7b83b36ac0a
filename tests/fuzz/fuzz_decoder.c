/* What an upload goes through: decompress, recognise, decode. */
#include "digest.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	digest_cuts(data, size, NULL, digest_chain);
	return 0;
}
