/*
 * catalogue_digest.h - contents of digests, a project's settings for them, and those already made.
 *
 * Thread: any.
 */
#ifndef TW_CATALOGUE_DIGEST_H
#define TW_CATALOGUE_DIGEST_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/clock.h"

struct tw_catalogue;

enum { TW_MAILS_MAX = 20 }; /* addresses of a digest */

#define TW_SETTING_DIGEST "digest"

enum tw_digest_every { TW_DIGEST_OFF, TW_DIGEST_DAILY, TW_DIGEST_WEEKLY };
struct tw_digest_rules {
	enum tw_digest_every every;
	unsigned hour, weekday; /* UTC; 0 is Sunday */
	bool webhook;           /* to the hooks that subscribe to digests */
	const char *mail[TW_MAILS_MAX];
	size_t n_mail;
};

struct tw_digest_period {
	int64_t since_ms, until_ms;
};
struct tw_digest_of {
	const char *project_id, *project;
	struct tw_digest_period period;
	struct tw_deadline deadline; /* checked between and within sections; the digest names
	                              * omitted ones */
};
struct tw_digest_ingest {
	int64_t accepted, failed, expired;
};
enum tw_status tw_catalogue_digest_ingest(struct tw_catalogue *c, const char *project_id,
        struct tw_digest_period of, struct tw_digest_ingest *ret, struct tw_err *err) TW_MUST_USE;
enum { TW_DIGEST_REGRESSIONS_MAX = 200 };
/* Ids of regressions with that event (enum tw_hook_event), newest first. */
enum tw_status tw_catalogue_digest_regressions(struct tw_catalogue *c, const char *project_id,
        struct tw_digest_period of, int event, struct tw_arena *a, const char *const **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum { TW_DIGEST_ANRS_MAX = 10 };
struct tw_digest_anr {
	const char *key, *name, *title, *verdict;
	int64_t count;
	int64_t total; /* of all such groups */
};
/* Groups whose first report arrived in the period, most reports first. */
enum tw_status tw_catalogue_digest_anrs(struct tw_catalogue *c, const char *project_id,
        struct tw_digest_period of, struct tw_arena *a, struct tw_digest_anr **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
struct tw_digest_project {
	const char *id, *name;
	const char *rules;  /* TW_SETTING_DIGEST */
	int64_t changed_ms; /* of the rules */
	int64_t until_ms;   /* the end of its last digest; 0: none */
};
/* The projects that have rules. */
enum tw_status tw_catalogue_digest_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_digest_project **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Whether that digest ends on the day of until_ms (UTC) or later. */
bool tw_catalogue_digest_made(const struct tw_digest_project *p, int64_t until_ms);
/* The end of the last one before, 0: none. */
enum tw_status tw_catalogue_digest_last(struct tw_catalogue *c, const char *project_id,
        int64_t before_ms, int64_t *ret, struct tw_err *err) TW_MUST_USE;
/* In one transaction: claims this period, for the first caller, and queues the messages. */
enum tw_status tw_catalogue_digest_claim(struct tw_catalogue *c, const struct tw_digest_of *of,
        const char *facts, const struct tw_digest_rules *to, struct tw_err *err) TW_MUST_USE;
/* Sends a digest now, on request; planned ones are unaffected. */
enum tw_status tw_catalogue_digest_notify(struct tw_catalogue *c, const struct tw_digest_of *of,
        const char *facts, const struct tw_digest_rules *to, struct tw_err *err) TW_MUST_USE;

#endif
