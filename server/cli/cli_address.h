/*
 * cli_address.h - the address of a data folder's server, for links: DATA/server.url.
 *
 * `serve` writes it once it listens, because other commands do not know a server's flags and
 * environment, and the port is not known before if it is 0.  It remains when the server stops.
 * Thread: one at a time.
 */
#ifndef TW_CLI_ADDRESS_H
#define TW_CLI_ADDRESS_H

#include <stddef.h>

#include "decoder/base/err.h"

enum { TW_CLI_ADDRESS_BYTES = 640 };

enum tw_status tw_cli_address_write(
        const char *data, const char *url, struct tw_err *err) TW_MUST_USE;
/* "" if no server has run on the folder, as on a restored backup. */
void tw_cli_address_read(const char *data, char ret[TW_CLI_ADDRESS_BYTES]);

#endif
