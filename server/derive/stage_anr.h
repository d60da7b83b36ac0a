/*
 * hang_fold.h - traces are looked at for ANRs and locks, and what they tell is named and keyed.
 *
 * What the background job of the server does and `tracewell rollup` does, in one
 * place.  Thread: one at a time.
 */
#ifndef TW_STAGE_ANR_H
#define TW_STAGE_ANR_H

#include "server/catalogue/anr/catalogue_hang.h"
#include "server/derive/rollup/rollup_writer.h"

struct tw_hanger;

/* NULL: no memory. */
struct tw_hanger *tw_hanger_new(const struct tw_folder_parts *parts);
struct tw_hanger *tw_hanger_free(struct tw_hanger *h);

/* Each does a little and says whether there may be more. */
enum tw_status tw_hanger_look(struct tw_hanger *h, bool *ret_more, struct tw_err *err) TW_MUST_USE;
/* Of all projects: marks what a mapping names otherwise, and names and keys what is to be. */
enum tw_status tw_hanger_key(struct tw_hanger *h, bool *ret_more, struct tw_err *err) TW_MUST_USE;

/* The number of the rules by which a project's ANRs are keyed: of its rules for groups and of whose
 * frames are the app's.  Always above 0. */
enum tw_status tw_hang_rules(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        int64_t *ret, struct tw_err *err) TW_MUST_USE;

#endif
