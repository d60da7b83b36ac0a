/*
 * api_fleet_tree.h - merged call trees for a fleet query: reads, names and filters them.
 *
 * Thread: one request.
 */
#ifndef TW_API_FLEET_TREE_H
#define TW_API_FLEET_TREE_H

#include "server/api/fleet/api_fleet.h"
#include "server/fleet/fleet_tree.h"

/* Adds the trees of each of n sets of cells, which were read by q->query, to its tree, which has an
 * arena. */
enum tw_status tw_fleet_read_trees(struct tw_fleet_request *q, const struct tw_fleet_cells_of *of,
        size_t n, struct tw_rollup_tree *ret, struct tw_err *err) TW_MUST_USE;
/* The names in the trees, by frames= and thread= of the request. */
struct tw_fleet_taking {
	struct tw_fleet_names names;
	struct tw_fleet_reading reading;
	bool app_only;
};
enum tw_status tw_fleet_take_names(struct tw_fleet_request *q,
        const struct tw_rollup_tree *const *trees, size_t n, struct tw_fleet_taking *ret,
        struct tw_err *err) TW_MUST_USE;
/* Reads focus= into taking->reading; `callers` as in struct tw_fleet_focus.  TW_NOT_FOUND if
 * no tree has a method with that name. */
enum tw_status tw_fleet_read_focus(struct tw_fleet_request *q, bool callers,
        struct tw_fleet_taking *taking, struct tw_err *err) TW_MUST_USE;
/* Reads root=: numbers separated by dots, starting below the method of focus=. */
enum tw_status tw_fleet_read_root(const struct tw_fleet_request *q,
        const struct tw_fleet_taking *taking, const uint32_t **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* "names": of the numbers in use (one byte each), by number. */
void tw_fleet_put_names(
        struct tw_fleet_request *q, const struct tw_fleet_names *names, const uint8_t *used);

enum tw_status tw_fleet_write_compare(struct tw_fleet_request *q, struct tw_err *err);
enum tw_status tw_fleet_write_callers(struct tw_fleet_request *q, struct tw_err *err);
enum tw_status tw_fleet_write_flame(struct tw_fleet_request *q, struct tw_err *err);

#endif
