/*
 * catalogue_ruleset.h - versioned rules of a project: each change adds a version, the last one
 * applies, and earlier ones can be read.  Thread: any.
 */
#ifndef TW_CATALOGUE_RULESET_H
#define TW_CATALOGUE_RULESET_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;

/* The kinds of rules; also the key of their entries in the audit log. */
#define TW_RULESET_ANR       "anr_rules"
#define TW_RULESET_DETECTORS "detectors"

struct tw_ruleset {
	const char *value, *author; /* value NULL: no rules yet */
	int64_t version, created_ms;
};
extern const struct tw_fields tw_ruleset_fields; /* catalogue_row.h */
/* version 0: the last one.  TW_NOT_FOUND: no such version. */
enum tw_status tw_catalogue_ruleset(struct tw_catalogue *c, const char *project_id,
        const char *kind, int64_t version, struct tw_arena *a, struct tw_ruleset *ret,
        struct tw_err *err) TW_MUST_USE;
/* The last versions, newest first, without their values. */
enum { TW_RULESETS_LISTED = 50 };
enum tw_status tw_catalogue_ruleset_versions(struct tw_catalogue *c, const char *project_id,
        const char *kind, struct tw_arena *a, struct tw_ruleset **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Adds a version after `after`; TW_CONFLICT if that is not the last.  after -1: no check. */
enum tw_status tw_catalogue_ruleset_put(struct tw_catalogue *c, const char *project_id,
        const char *kind, int64_t after, const struct tw_ruleset *rules,
        struct tw_err *err) TW_MUST_USE;

#endif
