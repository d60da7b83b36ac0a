/*
 * capture.h - capture rules: what devices should record, and which rules apply to a device.
 *
 * A project stores them as JSON:
 *   {"max_age_s":3600,"rules":[{"name":"cold-8.3","enabled":true,"scenario":"cold_start",
 *     "where":{"version_name":["8.3.*"]},"share":0.05,"per_day":500,"record":{"max_seconds":20}}]}
 * `where` has lists of patterns for app, version_name, device and os; one of each list must match
 * (* any text, ? a character, [a-z] one of these).  `record` is passed unchanged to the recorder on
 * the device.  The share is decided by a hash of the device's id: the same devices are selected
 * each time, and a larger share adds to them.
 * Thread: any.
 */
#ifndef TW_CAPTURE_H
#define TW_CAPTURE_H

#include <jansson.h>
#include <stdint.h>

#include "decoder/base/err.h"

#define TW_SETTING_CAPTURE "capture"

enum {
	TW_CAPTURE_RULES_MAX = 50,
	TW_CAPTURE_NAME_MAX = 64, /* bytes of a rule's name */
	TW_CAPTURE_PATTERNS_MAX = 20,
	TW_CAPTURE_PATTERN_BYTES = 64,
	TW_CAPTURE_RECORD_BYTES = 4096,
	TW_CAPTURE_VALID_S = 3600
};

/* The requesting device; "" for missing values. */
struct tw_capture_device {
	const char *id; /* one installation, by an id that it chooses itself */
	const char *app, *version_name, *device, *os, *scenario;
};

/* Validates rules.  TW_BAD_REQUEST names the rule and the error. */
enum tw_status tw_capture_check(const json_t *doc, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_capture_setting; /* catalogue_setting.h */

/* {"max_age_s","captures":[{"rule","scenario","share"?,"record"}]}: the rules that are on, match
 * the device, have quota left today and selected the device by its id.  A device without an id gets
 * the share and draws a random number.  doc: checked by tw_capture_check, or NULL for no rules.
 * taken: number of traces of a rule today.  NULL: out of memory. */
json_t *tw_capture_response(const json_t *doc, const struct tw_capture_device *d,
        uint64_t (*taken)(void *arg, const char *rule), void *arg);

#endif
