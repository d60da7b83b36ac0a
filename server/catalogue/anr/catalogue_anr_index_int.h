/* catalogue_anr_index_int.h - shared by the code that writes and reads ANRs and locks. */
#ifndef TW_CATALOGUE_ANR_INDEX_INT_H
#define TW_CATALOGUE_ANR_INDEX_INT_H

#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/catalogue_internal.h"

extern const struct tw_fields tw_cat_lock_fields;
/* Within a transaction. */
enum tw_status tw_cat_lock_insert(struct tw_db *db, const char *project_id, const char *trace_id,
        const struct tw_lock_wait *l, size_t n, struct tw_err *err);
/* The lock waits of a trace in their order, at most TW_LOCKS_MAX, in the arena. */
enum tw_status tw_cat_lock_list(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_lock_wait **ret, size_t *ret_n,
        struct tw_err *err);
/* Hash of a text that identifies a person or installation within a project; never negative, 0 for
 * "". */
int64_t tw_cat_install(const char *project_id, const char *name);

/* Condition on rows `h` of anr_trace for a filter: parameters 1 to 10, including days. */
#define TW_ANR_WHERE " h.project_id=?1 AND h.day BETWEEN ?2 AND ?3" TW_ANR_FILTER
#define TW_ANR_FILTER                                                                              \
	" AND (?4='' OR h.app=?4)"                                                                 \
	" AND (?5='' OR h.version_name=?5) AND (?6='' OR h.build_id=?6)"                           \
	" AND (?7='' OR h.scenario=?7) AND (?8='' OR h.device_class=?8)"                           \
	" AND (?9='' OR h.os=?9) AND (?10='' OR 'device='||h.device=?10 OR EXISTS("                \
	"SELECT 1 FROM " TW_EITHER(                                                                \
	        "json_each(h.labels) e WHERE e.key||'='||CASE e.type WHEN 'true' THEN 'true'"      \
	        " WHEN 'false' THEN 'false' ELSE e.value END",                                     \
	        "jsonb_each_text(h.labels::jsonb) e WHERE e.key||'='||e.value") "=?10))"
#define TW_ANR_TYPES "tiittttttt"
#define TW_ANR_ARGS(project, f)                                                                    \
	(project), (f)->first_day, (f)->last_day, (f)->app, (f)->version_name, (f)->build_id,      \
	        (f)->scenario, (f)->device_class, (f)->os, (f)->label

#endif
