/*
 * lease.h - elects the server that runs rollups, detectors and retention for all servers that share
 * a catalogue.
 *
 * The lease is a row in the catalogue and uses the database clock.  A separate thread renews it,
 * independent of how long the work takes.  Another server acquires it when it is released or
 * expires, so within LEASE_MS of a crash.  Two servers may briefly both hold it (one was
 * suspended): transactions prevent double counting, the lease only avoids duplicate work.
 *
 * Thread: start and stop by the owner; the rest by any.
 */
#ifndef TW_LEASE_H
#define TW_LEASE_H

#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/storage/blob.h"

struct tw_catalogue;

struct tw_lease;

/* `node` names this process and must outlive the lease, as must catalogue and blobs.  A server that
 * cannot reach the files does not request the lease. */
enum tw_status tw_lease_start(struct tw_catalogue *c, struct tw_blobs *b, const char *node,
        struct tw_lease **ret, struct tw_err *err) TW_MUST_USE;
/* Releases the lease.  Accepts NULL; returns NULL. */
struct tw_lease *tw_lease_stop(struct tw_lease *l);

/* True if l is NULL: there are no other servers. */
bool tw_lease_held(const struct tw_lease *l);
/* Seconds between checks for work: `single_s` for a single server; with several, other servers add
 * work without waking the holder of the lease. */
unsigned tw_lease_interval_s(const struct tw_lease *l, unsigned single_s);

#endif
