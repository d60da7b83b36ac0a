/*
 * api_fleet.h - one query on many traces: its filter, its cells, its response.
 *
 * Shared by the endpoints under /api/v1/fleet.  Thread: one request.
 */
#ifndef TW_API_FLEET_H
#define TW_API_FLEET_H

#include "server/base/text/json_write.h"
#include "server/fleet/fleet.h"
#include "server/fleet/store/fleet_store.h"
#include "server/http/http.h"

enum { TW_FLEET_GROUPS_MAX = 2000 }; /* in a response */
enum { TW_FLEET_LABELS_MAX = 16 };

#define TW_FLEET_LABEL_CONFLICT "rollups by label are not stored by class or os: omit one of them"

struct tw_fleet_request {
	struct tw_req *req;
	struct tw_arena *arena;
	struct tw_buf out;
	struct tw_json j;
	const char *type; /* of the response, NULL: JSON */
	const char *side; /* prefix of parameters, "a" for "a.version_name"; NULL: no sides */
	struct tw_rollup_filter filter;
	const char *label_key;                   /* of by=label:KEY; "": not grouped by a label */
	const char *labels[TW_FLEET_LABELS_MAX]; /* label= after the first */
	size_t n_labels;
	const char *thread; /* kind of thread of its methods; NULL: all */
	struct tw_fleet_values values;
	uint64_t not_counted;        /* traces of the filter from before the label was counted */
	struct tw_fleet_query query; /* of the cells, once they are read */
	struct tw_rollup_cell *cells;
	size_t n_cells;
	struct tw_sketch *sketch;
};

/* Reads the filter, calls the route's fleet_query to write to q->out, replies. */
enum tw_status tw_fleet_handle(struct tw_req *r, struct tw_err *err) TW_MUST_USE;
/* The parameters of the filter, of that with a label that need not be indexed, and of the sides of
 * a comparison (a.app, b.app). */
extern const struct tw_param tw_fleet_any_label_params[];
/* Reads the filter from the parameters of q->side. */
enum tw_status tw_fleet_read_filter(struct tw_fleet_request *q, struct tw_err *err) TW_MUST_USE;
/* Reads the cells of the filter into q->cells, with these metrics (one bit each); they differ at
 * least by `dims` (enum tw_fleet_dim). */
enum tw_status tw_fleet_read(struct tw_fleet_request *q, unsigned metrics, unsigned dims,
        struct tw_err *err) TW_MUST_USE;
/* Likewise, of these methods alone; a hint. */
enum tw_status tw_fleet_read_only(struct tw_fleet_request *q, const struct tw_fleet_query *of,
        struct tw_err *err) TW_MUST_USE;
struct tw_fleet_store *tw_fleet_store_of(const struct tw_fleet_request *q);
extern const struct tw_param tw_fleet_by_params[]; /* by= and top= */
/* Reads by=, or dflt; for label:KEY the filter then covers all its values. */
enum tw_status tw_fleet_read_by(struct tw_fleet_request *q, const char *dflt, enum tw_fleet_by *ret,
        struct tw_err *err) TW_MUST_USE;
/* Sums the cells of a label by value (top=); does nothing if the response is grouped by another
 * dimension. */
enum tw_status tw_fleet_sum_label_values(
        struct tw_fleet_request *q, struct tw_err *err) TW_MUST_USE;
uint64_t tw_fleet_traces(const struct tw_fleet_request *q); /* that the cells count */

/* The begin of every response: time, sample sizes, the error of quantiles. */
void tw_fleet_put_head(struct tw_fleet_request *q);
void tw_fleet_put_by(struct tw_fleet_request *q, enum tw_fleet_by by);
void tw_fleet_put_key(struct tw_fleet_request *q, const char *key); /* of a group */
void tw_fleet_put_stat(struct tw_fleet_request *q, const struct tw_fleet_stat *s);
/* The id of a trace that still exists, otherwise null. */
void tw_fleet_put_trace(struct tw_fleet_request *q, const char *key, const char *id);

/* Write responses; defined in api_fleet_methods.c, api_fleet_findings.c and api_fleet_search.c. */
enum tw_status tw_fleet_write_methods(struct tw_fleet_request *q, struct tw_err *err);
enum tw_status tw_fleet_write_method(struct tw_fleet_request *q, struct tw_err *err);
enum tw_status tw_fleet_write_findings(struct tw_fleet_request *q, struct tw_err *err);
enum tw_status tw_fleet_write_search(struct tw_fleet_request *q, struct tw_err *err);

/* Their parameters, and those of tw_fleet_take_names and tw_fleet_read_root (api_fleet_tree.h). */
extern const struct tw_param tw_fleet_methods_params[], tw_fleet_method_params[];
extern const struct tw_param tw_fleet_callers_params[], tw_fleet_flame_params[];
extern const struct tw_param tw_fleet_compare_params[], tw_fleet_findings_params[];
extern const struct tw_param tw_fleet_search_params[], tw_fleet_taking_params[];
extern const struct tw_param tw_fleet_root_params[];

#endif
