/*
 * data_catalogue.h - finds the catalogue of a data folder: its catalogue.db, or one in PostgreSQL
 * whose address and identity are in catalogue.url, together with a random id of the folder.
 *
 * Files that the catalogue does not refer to are deleted from the folder.  So a folder is opened
 * only with its own catalogue (neither an empty one next to a catalogue.db, nor a different one),
 * and a catalogue only with its own folder, as its files would be missing elsewhere.
 * Thread: the caller's.
 */
#ifndef TW_DATA_CATALOGUE_H
#define TW_DATA_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

struct tw_catalogue;

/* address "": the recorded address, or the folder's catalogue.db, which is created if missing;
 * otherwise postgres://..., which is recorded.  store: location of the files (s3://...), so that
 * folders of several servers count as one; "": in the folder.  serves: for a server
 * (tw_catalogue_open_to_serve), otherwise for a command (tw_catalogue_open_current). */
enum tw_status tw_data_catalogue_open(const char *data, const char *address, const char *store,
        bool serves, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
/* The same for the target of a migration, which may be an unfinished copy; the above refuses that
 * with TW_CONFLICT. */
enum tw_status tw_data_catalogue_open_target(const char *data, const char *address,
        const char *store, bool serves, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
/* Whether another process has the folder's catalogue.db open.  Call before this process opens it:
 * closing the check's descriptor would release this process's locks. */
bool tw_data_catalogue_in_use(const char *data);
/* Whether the folder has a catalogue. */
bool tw_data_catalogue_is_there(const char *data);
/* The address in catalogue.url; "" if there is none. */
enum tw_status tw_data_catalogue_address(
        const char *data, char *ret, size_t cap, struct tw_err *err) TW_MUST_USE;

#endif
