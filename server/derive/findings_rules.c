/*
 * findings_rules.c - the rules by which a project's traces are looked at, and their number.
 */
#include <stdlib.h>

#include "server/base/auth_secret.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/derive/stage_findings.h"
#include "server/query/detect/frame_rules.h"

/* Rises with what the code itself finds, so that traces are looked at again. */
enum { FINDS_VERSION = 1 };

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_oom(err);
}

/* By what the rules are, not by which version of them: those that come with the server change, too.
 */
static int64_t number_of(struct tw_arena *a, const json_t *doc, const char *frames)
{
	char *rules = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	const char *text =
	        rules ? tw_arena_printf(a, "%d\n%s\n%s", FINDS_VERSION, rules, frames ? frames : "")
	              : NULL;
	uint64_t bits;

	free(rules);
	if (!text)
		return 0;
	bits = tw_secret_bits(text);
	return (int64_t)(bits >> 2) + 1;
}

static enum tw_status parse(struct tw_found_rules *r, struct tw_arena *a, const char *rules,
        const char *frames, struct tw_err *err)
{
	enum tw_status st;

	r->doc = rules ? json_loads(rules, 0, NULL) : tw_detect_defaults();
	r->number = r->doc ? number_of(a, r->doc, frames) : 0;
	st = r->number ? tw_detect_rules_new(r->doc, &r->detectors, err) : no_memory(err);
	if (st != TW_OK)
		json_decref(r->doc);
	return st;
}

enum tw_status tw_found_rules_open(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_found_rules *ret, struct tw_err *err)
{
	const char *frames = NULL;
	struct tw_ruleset set;
	int64_t changed_ms;
	enum tw_status st =
	        tw_catalogue_ruleset(c, project_id, TW_RULESET_DETECTORS, 0, a, &set, err);

	*ret = (struct tw_found_rules){.number = 0};
	if (st == TW_OK)
		st = tw_catalogue_setting_get(
		        c, project_id, TW_SETTING_FRAMES, a, &frames, &changed_ms, err);
	if (st != TW_OK)
		return st;
	ret->version = set.version;
	return parse(ret, a, set.value, frames, err);
}

void tw_found_rules_done(struct tw_found_rules *r)
{
	tw_detect_rules_free(r->detectors);
	json_decref(r->doc);
	*r = (struct tw_found_rules){.number = 0};
}
