#include <unistd.h>

#include "server/base/clock.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/shared_files.h"

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

/* --- objects of a store --- */

enum { CHECK_MS = 50, WAIT_MS = 20000 };

/* A deleter holds the key for the duration of a request. */
static enum tw_status hold(
        void *arg, const char *key, bool exclusive, uint64_t *ret, struct tw_err *err)
{
	const int64_t until = tw_monotonic_ms() + WAIT_MS;
	enum tw_status st = tw_catalogue_key_lock(arg, key, exclusive, ret, err);

	while (st == TW_OK && !*ret && !exclusive && tw_monotonic_ms() < until) {
		tw_sleep_ms(CHECK_MS);
		st = tw_catalogue_key_lock(arg, key, exclusive, ret, err);
	}
	if (st == TW_OK && !*ret && !exclusive)
		st = tw_fail(err, TW_BUSY,
		        "another server is deleting the same content from the store; retry");
	return st;
}

/* A connection lost in between had released the lock: another server may have deleted the object
 * that was written, or written the one to be deleted. */
static enum tw_status let_go(
        void *arg, const char *key, bool exclusive, uint64_t held_by, struct tw_err *err)
{
	bool held = false;
	enum tw_status st = tw_catalogue_key_unlock(arg, key, exclusive, held_by, &held, err);

	if (st == TW_OK && !held)
		st = tw_fail(err, TW_BUSY,
		        "the catalogue was unavailable during an upload to the store; retry");
	return st;
}

static enum tw_status still(void *arg, const char *key, uint64_t held_by, struct tw_err *err)
{
	bool held = false;
	enum tw_status st = tw_catalogue_key_held(arg, key, held_by, &held, err);

	return st == TW_OK && !held
	               ? tw_fail(err, TW_CONFLICT,
	                         "the catalogue was unavailable: another server may have it")
	               : st;
}

void tw_store_peers_use(struct tw_blobs *b, struct tw_catalogue *c)
{
	if (tw_blobs_remote(b) && tw_catalogue_is_shared(c))
		tw_blobs_honour_peers(b, &(struct tw_blob_peers){hold, still, let_go, c});
}
