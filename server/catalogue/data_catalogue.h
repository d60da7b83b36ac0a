/*
 * data_catalogue.h - which catalogue a data folder has: its catalogue.db, or one in PostgreSQL
 * whose address and identity catalogue.url tells, with a random id of the folder.
 *
 * What a catalogue does not name is swept from its folder.  So a folder is opened with no other
 * catalogue than its own: neither with an empty one beside a catalogue.db, nor with one that is not
 * the one it had; and a catalogue with no other folder, where its files would be missed.  Thread:
 * the caller's.
 */
#ifndef TW_DATA_CATALOGUE_H
#define TW_DATA_CATALOGUE_H

#include "server/catalogue/catalogue.h"

/* address "": what the folder tells, or its catalogue.db, which is made when it is not there; else
 * postgres://..., which the folder tells from here on.  store: where the files are (s3://...), so
 * that folders of several servers are as one; "": in the folder. */
enum tw_status tw_data_catalogue_open(const char *data, const char *address, const char *store,
        struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
/* The same of a catalogue that is to be filled, and so may be half a copy of another, which the
 * above refuses with TW_CONFLICT. */
enum tw_status tw_data_catalogue_open_target(const char *data, const char *address,
        const char *store, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
/* Has any other process the folder's catalogue.db open?  To be asked before this one opens it: what
 * it locked would be free afterwards. */
bool tw_data_catalogue_in_use(const char *data);
/* Has the folder any? */
bool tw_data_catalogue_is_there(const char *data);
/* What catalogue.url tells; "" when there is none. */
enum tw_status tw_data_catalogue_address(
        const char *data, char *ret, size_t cap, struct tw_err *err) TW_MUST_USE;

#endif
