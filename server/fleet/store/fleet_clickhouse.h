/*
 * fleet_clickhouse.h - the fleet store in ClickHouse: rows per trace, summed by each query.
 *
 * Tables and how they are written are in clickhouse/tables.def. While ClickHouse is unavailable,
 * counting fails with TW_BUSY and is retried. A trace is marked as counted after its rows are
 * stored; a repeat replaces the rows of the previous attempt. Thread: any.
 */
#ifndef TW_FLEET_CLICKHOUSE_H
#define TW_FLEET_CLICKHOUSE_H

#include "server/fleet/store/clickhouse/clickhouse.h"
#include "server/fleet/store/fleet_store.h"

/* Does not connect yet. */
enum tw_status tw_fleet_clickhouse_new(struct tw_catalogue *c, const struct tw_clickhouse_at *at,
        struct tw_fleet_store **ret, struct tw_err *err) TW_MUST_USE;

#endif
