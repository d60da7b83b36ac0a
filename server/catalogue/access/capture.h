/*
 * capture.h - what devices should record: a project's rules, and which of them a device follows.
 *
 * As JSON, which a project stores:
 *   {"valid_s":3600,"rules":[{"name":"cold-8.3","on":true,"scenario":"cold_start",
 *     "where":{"version_name":["8.3.*"]},"share":0.05,"per_day":500,"record":{"max_seconds":20}}]}
 * `where` has patterns for app, version_name, device and os, of which one of each list must fit
 * (* any text, ? a character, [a-z] one of these); `record` is for the recorder on the device and
 * is handed on as it is.  A share is kept by the device's own name: the same devices are chosen
 * every time, and a larger share adds to them.  Thread: any.
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

/* Who asks; "" where it does not say. */
struct tw_capture_device {
	const char *id; /* one installation, by a name of its own choice */
	const char *app, *version_name, *device, *os, *scenario;
};

/* May this be stored?  TW_BAD_REQUEST names the rule and what is wrong with it. */
enum tw_status tw_capture_check(const json_t *doc, struct tw_err *err) TW_MUST_USE;

/* {"valid_s","captures":[{"rule","scenario","share"?,"record"}]}: the rules that are on, fit the
 * device, have room today and, when the device says who it is, chose it; a device that does not is
 * told the share, to draw by itself.  doc passed tw_capture_check, or is NULL for no rules;
 * taken says how many traces of a rule came today.  NULL: no memory. */
json_t *tw_capture_answer(const json_t *doc, const struct tw_capture_device *d,
        uint64_t (*taken)(void *arg, const char *rule), void *arg);

#endif
