/* One format of formats.def by itself, whatever the input looks like: FUZZ_FORMAT is its name. */
#include "fuzz.h"
#include "oracle/digest.h"

#define TW_FORMAT_CALLED(name)  TW_FORMAT_CALLED_(name)
#define TW_FORMAT_CALLED_(name) tw_format_##name

extern const struct tw_format TW_FORMAT_CALLED(FUZZ_FORMAT);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	digest_cuts(data, size, &TW_FORMAT_CALLED(FUZZ_FORMAT), digest_format);
	return 0;
}
