/* What an upload goes through: decompress, recognise, decode. */
#include "fuzz.h"
#include "oracle/digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	digest_cuts(data, size, NULL, digest_chain);
	return 0;
}
