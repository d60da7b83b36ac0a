#include "server/storage/blob_store.h"

#include <string.h>

static const struct tw_store_engine *const engines[] = {
        &tw_store_folder,
        &tw_store_s3,
        NULL,
};

enum tw_status tw_store_engine_of(
        const char *blobs, const struct tw_store_engine **ret, struct tw_err *err)
{
	for (const struct tw_store_engine *const *e = engines; *e; e++) {
		size_t n = strlen((*e)->scheme);

		if (n ? strncmp(blobs, (*e)->scheme, n) == 0 : !*blobs) {
			*ret = *e;
			return TW_OK;
		}
	}
	return tw_fail(err, TW_BAD_REQUEST,
	        "--blobs is s3://BUCKET or s3://BUCKET/PREFIX, or empty for the data folder");
}
