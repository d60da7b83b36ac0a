/*
 * store_lock.h - data/storage.lock: while a program beside the server uses a data folder whose
 * files are elsewhere, the server deletes none.
 *
 * What such a program puts has no row yet, and the claims (store_claims.h) are of one process.
 * Thread: one.
 */
#ifndef TW_STORE_LOCK_H
#define TW_STORE_LOCK_H

#include <stdbool.h>

#include "decoder/base/err.h"

/* Not of the server: held until *ret_fd is closed, and waited for while the server deletes one. */
enum tw_status tw_store_lock_open(
        const char *data_dir, bool serves, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* The server's: false while another uses the folder. */
bool tw_store_lock_try(int fd);
void tw_store_lock_end(int fd);

#endif
