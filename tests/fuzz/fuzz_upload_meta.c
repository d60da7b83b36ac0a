/* The meta part of an upload: any JSON is accepted, within the limits, or refused with a message.
 */
#include "fuzz.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/ingest/upload_meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_arena *a = tw_arena_new(4 << 20);
	json_t *object = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct tw_trace_meta m = tw_upload_meta_none();
	struct tw_err err = {0};

	if (a && object && json_is_object(object)) {
		enum tw_status st = tw_upload_meta_json(a, object, &m, &err);

		FUZZ_CHECK(st == TW_OK || err.msg[0]);
	}
	json_decref(object);
	tw_arena_free(a);
	return 0;
}
