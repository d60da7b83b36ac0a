/*
 * api_ruleset.h - what routes of rules that keep their versions share: telling one, adding one.
 */
#ifndef TW_API_RULESET_H
#define TW_API_RULESET_H

#include "server/api/api.h"
#include "server/catalogue/access/catalogue_ruleset.h"

struct tw_api_ruleset {
	const char *kind;
	json_t *(*none)(void); /* the document of a project that has no version; owned */
	/* Adds what is told beside the versions; may be NULL.  False: no memory. */
	bool (*more)(json_t *answer);
};

/* The document of a version (0: the last), whose rules are *ret; json_decref is owed. */
enum tw_status tw_api_ruleset_load(struct tw_req *r, const struct tw_api_ruleset *of,
        int64_t version, struct tw_ruleset *ret, json_t **ret_doc, struct tw_err *err) TW_MUST_USE;
/* Replies with the version that ?version= names, and what versions there are. */
enum tw_status tw_api_ruleset_get(
        struct tw_req *r, const struct tw_api_ruleset *of, struct tw_err *err);
/* Takes doc, which was judged; `body` says which version it is a change of.  Replies. */
enum tw_status tw_api_ruleset_put(struct tw_req *r, const struct tw_api_ruleset *of,
        const json_t *body, json_t *doc, struct tw_err *err);

#endif
