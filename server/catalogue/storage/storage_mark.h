/*
 * storage_mark.h - data/storage says where a data folder's files are, when they are elsewhere.
 *
 * The server writes it (and `tracewell migrate`, of its target), so that tools on the folder look
 * there too, and so that a start without --blobs, or with another, does not take files for lost.
 * Secrets do not stand in it.
 * Thread: one.
 */
#ifndef TW_STORAGE_MARK_H
#define TW_STORAGE_MARK_H

#include "decoder/base/arena.h"
#include "server/base/storage.h"
#include "server/catalogue/catalogue.h"

struct tw_blobs;

/* What the folder says, else that files are in it; *ret points into the arena.  The environment's
 * settings go before those of the file. */
enum tw_status tw_storage_of(const char *data_dir, struct tw_arena *a, struct tw_storage *ret,
        struct tw_err *err) TW_MUST_USE;
/* Before a start: TW_CONFLICT with a sentence when the folder's files are elsewhere than `s` says.
 */
enum tw_status tw_storage_agree(
        const char *data_dir, const struct tw_storage *s, struct tw_err *err) TW_MUST_USE;
/* Are files that the catalogue names where `b` looks for them?  A few are asked for, without
 * fetching them; TW_CONFLICT with a sentence when none is.  *ret_names: it names some. */
enum tw_status tw_storage_prove(struct tw_catalogue *c, struct tw_blobs *b, bool *ret_names,
        struct tw_err *err) TW_MUST_USE;
/* Has the folder been served from elsewhere before? */
bool tw_storage_is_kept(const char *data_dir);
/* Writes it; removes it for the data folder itself. */
enum tw_status tw_storage_keep(
        const char *data_dir, const struct tw_storage *s, struct tw_err *err) TW_MUST_USE;

#endif
