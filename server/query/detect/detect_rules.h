/*
 * detect_rules.h - a project's detector rules: calls and notes that should not take long, and the
 * threads to which this applies.
 *
 * Stored per project as JSON; without one the rules of detect_rules.def apply:
 *   {"rules":[{"id":"prefs","kind":"io","title":"Preferences on the main thread",
 *              "methods":["android.app.SharedPreferencesImpl"],"notes":["io"],
 *              "threads":"main","threshold_ms":16,"severity":"warning","message":"...","enabled":true}],
 *    "frames":{"slow_ms":16,"frozen_ms":700}}
 * `methods` are patterns of names (name_pattern.h), `notes` kinds of notes.def; at least one of
 * both is required.  `threads` is main, others, all, or a name with * in it.  Pure; thread: one at
 * a time.
 */
#ifndef TW_DETECT_RULES_H
#define TW_DETECT_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/trace/trace_out.h"
#include "server/query/detect/name_pattern.h"

enum {
	TW_DETECT_RULES_MAX = 64, /* one bit each */
	TW_DETECT_PATTERNS_MAX = 100,
	TW_DETECT_EXPRESSIONS_MAX = 40, /* in all rules together */
	TW_DETECT_ID_BYTES = 40,
	TW_DETECT_TITLE_BYTES = 100,
	TW_DETECT_MESSAGE_BYTES = 300,
	TW_DETECT_THRESHOLD_MS = 600000
};

/* The kinds of rules; ends with NULL.  The last is for a project's own rules. */
extern const char *const tw_detect_kinds[];

struct tw_detect_rule {
	const char *id, *kind, *title, *threads, *severity;
	const char *message; /* "" none */
	unsigned group; /* shared by built-in rules of one kind: the index of the first; an own rule
	                   has its own */
	bool on;
	int64_t threshold_ns;
	uint64_t notes; /* one bit per kind: 1 << TW_NOTE_io */
	struct tw_name_pattern *patterns;
	size_t n_patterns;
	bool left_out[TW_DETECT_PATTERNS_MAX]; /* per pattern: disabled, was too costly for an
	                                          earlier name */
	char costly_why[200];                  /* message of the first such pattern; "" none */
};

struct tw_detect_rules {
	int64_t slow_ns, frozen_ns; /* frames */
	size_t n;
	struct tw_detect_rule rules[];
};

/* TW_BAD_REQUEST names the rule, the member and the error.  Texts are borrowed from doc, which must
 * outlive the rules. */
enum tw_status tw_detect_rules_new(
        const json_t *doc, struct tw_detect_rules **ret, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_detect_setting; /* catalogue_setting.h; a ruleset */
struct tw_detect_rules *tw_detect_rules_free(struct tw_detect_rules *r);

/* The default rules.  The caller frees with json_decref; NULL: out of memory. */
json_t *tw_detect_defaults(void);

/* The rules that match a name, one bit each.  An expression that is too costly for the name is
 * disabled from then on, and the rule records it (`costly_why`). */
uint64_t tw_detect_rules_of(struct tw_detect_rules *r, struct tw_str name);
/* The rules that apply to a thread; NULL: to notes without a thread. */
uint64_t tw_detect_rules_on(
        const struct tw_detect_rules *r, const struct tw_thread_info *t, bool is_main);

#endif
