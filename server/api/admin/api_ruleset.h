/*
 * api_ruleset.h - shared by the routes of versioned rules: returning a version, adding one.
 */
#ifndef TW_API_RULESET_H
#define TW_API_RULESET_H

#include "server/api/api.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/access/catalogue_setting.h"

struct tw_api_ruleset {
	const struct tw_setting *setting; /* its key is the kind of rules */
	json_t *(*none)(void); /* the document without a valid version; the caller frees it */
	/* Adds members next to the versions; may be NULL.  False: out of memory. */
	bool (*more)(json_t *answer);
};

/* The document of a version (0: the last), with its row in *ret; the caller frees with
 * json_decref. */
enum tw_status tw_api_ruleset_load(struct tw_req *r, const struct tw_api_ruleset *of,
        int64_t version, struct tw_ruleset *ret, json_t **ret_doc, struct tw_err *err) TW_MUST_USE;
/* Replies with the version in ?version= and the list of versions. */
extern const struct tw_param tw_api_ruleset_params[]; /* version= */
enum tw_status tw_api_ruleset_get(
        struct tw_req *r, const struct tw_api_ruleset *of, struct tw_err *err);
/* Stores doc, which must be valid, and frees it; `body` contains the version on which it is based.
 * Replies. */
enum tw_status tw_api_ruleset_put(struct tw_req *r, const struct tw_api_ruleset *of,
        const json_t *body, json_t *doc, struct tw_err *err);

#endif
