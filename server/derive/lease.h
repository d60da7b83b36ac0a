/*
 * lease.h - which of several servers does what one does for all of them: counting traces that were
 * decoded, looking at them, adding up, expiring.
 *
 * A lease in the catalogue, by its clock, which a thread renews whatever the work takes; another
 * server gets it when it was given back or has run out, so within LEASE_MS of a death.  That
 * nothing is counted twice is a matter of the transactions, also while two believe that they lead
 * (one stood still): the lease saves the work from being done by each of them.
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

/* `node` names this process and stays; catalogue and blobs outlive what is returned. Who does not
 * reach the files leaves the work to others. */
enum tw_status tw_lease_start(struct tw_catalogue *c, struct tw_blobs *b, const char *node,
        struct tw_lease **ret, struct tw_err *err) TW_MUST_USE;
/* Gives the lease back.  NULL is fine, returns NULL. */
struct tw_lease *tw_lease_stop(struct tw_lease *l);

/* NULL leads: there are no others. */
bool tw_lease_held(const struct tw_lease *l);
/* Seconds between looks for work: others find it without waking who leads; `alone_s` of a server
 * that has no others. */
unsigned tw_lease_interval_s(const struct tw_lease *l, unsigned alone_s);

#endif
