/*
 * store_lock.h - data/storage.lock: prevents deletion by the server while another program uses a
 * data folder whose files are in an object store.
 *
 * Objects written by such a program have no row yet, and claims (store_claims.h) are per process.
 * Thread: one.
 */
#ifndef TW_STORE_LOCK_H
#define TW_STORE_LOCK_H

#include <stdbool.h>

#include "decoder/base/err.h"

/* serves false: takes the lock until *ret_fd is closed, waiting while the server deletes a file. */
enum tw_status tw_store_lock_open(
        const char *data_dir, bool serves, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* For the server: false while another program uses the folder. */
bool tw_store_lock_try(int fd);
void tw_store_lock_end(int fd);

#endif
