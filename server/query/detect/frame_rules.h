/*
 * frame_rules.h - classifies methods as the app's own or as framework code.
 *
 * A rule is a prefix of a name.  The longest matching rule decides; a name without a match belongs
 * to the app.  Stored per project as JSON:
 *   {"off":["compose"],"framework":["com.vendor.sdk"],"app":["com.android.ourapp"]}
 * `off` lists disabled presets (frame_rules.def).  Thread: any; rules are immutable.
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

/* `project` NULL: only the presets.  Strings are copied.  TW_BAD_REQUEST: the message names the
 * invalid member. */
enum tw_status tw_frame_rules_new(const json_t *project, struct tw_arena *a,
        const struct tw_frame_rules **ret, struct tw_err *err) TW_MUST_USE;

#define TW_SETTING_FRAMES "frames"
extern const struct tw_setting tw_frame_setting; /* catalogue_setting.h */
/* The rules that a project stores, and their version: the number of changes. */
enum tw_status tw_frame_rules_of(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        const struct tw_frame_rules **ret, int64_t *ret_version, struct tw_err *err) TW_MUST_USE;

/* Returns whether a method of this name is the app's own. */
bool tw_frame_rules_app(const struct tw_frame_rules *r, struct tw_str name);

/* Returns whether the name has this prefix.  A prefix must end at the end of a package, class or
 * method name, unless its last character is *. */
bool tw_frame_begins(struct tw_str name, struct tw_str beginning);

/* {"presets":[{"id","title","prefixes","enabled"}],"framework":[…],"app":[…]}; NULL: out of memory.
 */
json_t *tw_frame_rules_json(const json_t *project);

#endif
