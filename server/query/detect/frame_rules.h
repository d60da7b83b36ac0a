/*
 * frame_rules.h - which methods are the app's own and which somebody else's.
 *
 * A rule is the beginning of a name; the longest that fits decides, and a name
 * that none fits is the app's.  As JSON, which a project stores:
 *   {"off":["compose"],"framework":["com.vendor.sdk"],"app":["com.android.ourapp"]}
 * `off` names presets (frame_rules.def) that are not taken.  Thread: any; rules do not change.
 */
#ifndef TW_FRAME_RULES_H
#define TW_FRAME_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_FRAME_RULES_MAX = 1000, TW_FRAME_RULE_BYTES = 200 };

struct tw_frame_rules;
struct tw_catalogue;

/* `project` NULL: nothing but the presets.  Strings are copied.  TW_BAD_REQUEST in words that name
 * the member that is wrong. */
enum tw_status tw_frame_rules_new(const json_t *project, struct tw_arena *a,
        const struct tw_frame_rules **ret, struct tw_err *err) TW_MUST_USE;

/* Those that a project stores, and how often they were changed. */
enum tw_status tw_frame_rules_of(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        const struct tw_frame_rules **ret, int64_t *ret_version, struct tw_err *err) TW_MUST_USE;

/* Is a method of this name the app's? */
bool tw_frame_rules_app(const struct tw_frame_rules *r, struct tw_str name);

/* Does the name begin so?  A beginning ends where a package, a class or a method does, unless its
 * last character is *. */
bool tw_frame_begins(struct tw_str name, struct tw_str beginning);

/* {"presets":[{"id","title","prefixes","on"}],"framework":[…],"app":[…]}; NULL: no memory. */
json_t *tw_frame_rules_json(const json_t *project);

#endif
