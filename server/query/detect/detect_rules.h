/*
 * detect_rules.h - a project's rules of what should not take long, and where: detectors.
 *
 * As JSON, which a project stores; without one those of detect_rules.def hold:
 *   {"rules":[{"id":"prefs","kind":"io","title":"Preferences on the main thread",
 *              "methods":["android.app.SharedPreferencesImpl"],"notes":["io"],
 *              "threads":"main","threshold_ms":16,"severity":"warning","says":"...","on":true}],
 *    "frames":{"slow_ms":16,"frozen_ms":700}}
 * `methods` are patterns of names (name_pattern.h), `notes` kinds of notes.def; one of both is
 * needed.  `threads` is main, others, all, or a name with * in it.  Pure; thread: one at a time.
 */
#ifndef TW_DETECT_RULES_H
#define TW_DETECT_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/trace/builder.h"
#include "server/query/detect/name_pattern.h"

enum {
	TW_DETECT_RULES_MAX = 64, /* a bit for each */
	TW_DETECT_PATTERNS_MAX = 100,
	TW_DETECT_EXPRESSIONS_MAX = 40, /* of all rules together */
	TW_DETECT_ID_BYTES = 40,
	TW_DETECT_TITLE_BYTES = 100,
	TW_DETECT_SAYS_BYTES = 300,
	TW_DETECT_THRESHOLD_MS = 600000
};

/* What rules are about; ended by NULL.  The last is a project's own. */
extern const char *const tw_detect_kinds[];

struct tw_detect_rule {
	const char *id, *kind, *title, *threads, *severity;
	const char *says; /* "": nothing */
	unsigned group; /* of rules of one kind: the number of the first; of an own rule its own */
	bool on;
	int64_t threshold_ns;
	uint64_t notes; /* a bit for each kind: 1 << TW_NOTE_io */
	struct tw_name_pattern *patterns;
	size_t n_patterns;
	bool left_out[TW_DETECT_PATTERNS_MAX]; /* of each pattern: too costly for some name before
	                                        */
	char costly_why[200];                  /* of the first of them; "": none */
};

struct tw_detect_rules {
	int64_t slow_ns, frozen_ns; /* frames */
	size_t n;
	struct tw_detect_rule rules[];
};

/* TW_BAD_REQUEST names the rule, the member and what is wrong with it.  Texts are borrowed from
 * doc, which must live as long. */
enum tw_status tw_detect_rules_new(
        const json_t *doc, struct tw_detect_rules **ret, struct tw_err *err) TW_MUST_USE;
struct tw_detect_rules *tw_detect_rules_free(struct tw_detect_rules *r);

/* What holds where a project says nothing; owned, NULL: no memory. */
json_t *tw_detect_defaults(void);

/* Which rules fit a name, a bit for each.  An expression that is too costly for it is left out from
 * then on, and its rule says so (`costly_why`). */
uint64_t tw_detect_rules_of(struct tw_detect_rules *r, struct tw_str name);
/* Which rules are about a thread; NULL: about what belongs to none. */
uint64_t tw_detect_rules_on(
        const struct tw_detect_rules *r, const struct tw_thread_info *t, bool is_main);
/* Which rules are about a kind of note. */
uint64_t tw_detect_rules_noting(const struct tw_detect_rules *r, enum tw_note_kind kind);

#endif
