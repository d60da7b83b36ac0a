#include "server/catalogue/storage/need_blobs.h"
#include "server/catalogue/catalogue.h"

#include <unistd.h>

static bool are_there(void *arg)
{
	struct tw_needed_blobs *n = arg;

	for (int i = 0; i < 2; i++) {
		int fd = -1;

		if (n->sha256[i] && tw_blob_open(n->blobs, n->sha256[i], &fd, NULL) != TW_OK)
			n->lost = true;
		if (fd >= 0)
			(void)close(fd);
	}
	return !n->lost;
}

void tw_need_blobs(struct tw_needed_blobs *n)
{
	/* in an object store recently written objects are not deleted */
	if (tw_catalogue_is_shared(n->catalogue) && !tw_blobs_remote(n->blobs))
		tw_catalogue_only_while(are_there, n);
}

enum tw_status tw_end_need_blobs(struct tw_needed_blobs *n, enum tw_status st, struct tw_err *err)
{
	tw_catalogue_only_while(NULL, NULL);
	if (!n->lost)
		return st;
	return tw_fail(
	        err, TW_BUSY, "another server has just deleted the same content: send it again");
}
