/*
 * file_drop.h - objects of a store that are to be deleted, because no row refers to them.
 *
 * The transaction that deletes the last reference adds the key, so that no deletion is lost when a
 * server is killed.  Any server deletes the object: it takes keys that are due by postponing them,
 * and removes a key's row afterwards, unless the key was added again in between.  Files in a data
 * folder are deleted immediately, without a row.  Thread: any.
 */
#ifndef TW_FILE_DROP_H
#define TW_FILE_DROP_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/catalogue.h"

enum { TW_FILE_DROPS = 64 }; /* taken at once */

struct tw_file_drop {
	const char *key;
	int64_t due_ms;    /* of the next attempt, also of another server */
	uint32_t attempts; /* with this one */
};

/* From now on, transactions of this catalogue add keys.  Before its first transaction. */
void tw_catalogue_add_drops(struct tw_catalogue *c);
/* Adds a key in a separate transaction. */
enum tw_status tw_catalogue_file_drop(
        struct tw_catalogue *c, const char *key, struct tw_err *err) TW_MUST_USE;
/* Takes at most TW_FILE_DROPS keys that are due. */
enum tw_status tw_catalogue_file_drops_take(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_file_drop **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Removes the rows of these keys, whose objects are deleted. */
enum tw_status tw_catalogue_file_drops_done(struct tw_catalogue *c, const struct tw_file_drop *of,
        size_t n, struct tw_err *err) TW_MUST_USE;
/* Tries this key again after wait_ms, or after a while if this fails. */
enum tw_status tw_catalogue_file_drop_later(
        struct tw_catalogue *c, const struct tw_file_drop *of, int64_t wait_ms, struct tw_err *err);

#endif
