/*
 * fleet_open.h - opens the fleet store that a data folder is served with.
 *
 * data/analytics records where the sums are if they are not in the catalogue, so that tools on the
 * folder use the same engine, and a start with another one has the stored traces counted again,
 * there and in the background.
 * Thread: one.
 */
#ifndef TW_FLEET_OPEN_H
#define TW_FLEET_OPEN_H

#include "server/base/config.h"
#include "server/fleet/store/fleet_store.h"

/* By the settings; where they name another place than the folder's record, all stored traces are
 * marked to be counted again. */
enum tw_status tw_fleet_open(struct tw_catalogue *c, const char *data_dir,
        const struct tw_analytics *at, struct tw_fleet_store **ret, struct tw_err *err) TW_MUST_USE;
/* By the folder's record. */
enum tw_status tw_fleet_open_kept(struct tw_catalogue *c, const char *data_dir,
        struct tw_fleet_store **ret, struct tw_err *err) TW_MUST_USE;

#endif
