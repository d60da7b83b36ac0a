/*
 * fleet_open.h - opens the fleet store of a data folder.
 *
 * data/analytics records where the sums are stored unless they are in the catalogue, so that tools
 * on the folder use the same engine. A start with another engine counts the stored traces again in
 * the background. Thread: one.
 */
#ifndef TW_FLEET_OPEN_H
#define TW_FLEET_OPEN_H

#include "server/base/config.h"
#include "server/fleet/store/fleet_store.h"

/* Opens the store of the settings. If the folder's record names another one, all stored traces are
 * marked to be counted again. */
enum tw_status tw_fleet_open(struct tw_catalogue *c, const char *data_dir,
        const struct tw_analytics *at, struct tw_fleet_store **ret, struct tw_err *err) TW_MUST_USE;
/* Opens the store of the folder's record. */
enum tw_status tw_fleet_open_recorded(struct tw_catalogue *c, const char *data_dir,
        struct tw_fleet_store **ret, struct tw_err *err) TW_MUST_USE;

#endif
