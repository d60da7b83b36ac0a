/* catalogue_ruleset.c - versioned rules of a project. */
#include "server/catalogue/access/catalogue_ruleset.h"

#include "server/catalogue/catalogue_internal.h"

enum { VERSIONS_KEPT = 200 };

#define RULESET(member, json) TW_FIELD(struct tw_ruleset, member, #member, json)
const struct tw_fields tw_ruleset_fields = TW_FIELDS_OF(RULESET(version, "version"),
        RULESET(author, "author"), RULESET(created_ms, "created_ms"), RULESET(value, NULL));

enum tw_status tw_catalogue_ruleset(struct tw_catalogue *c, const char *project_id,
        const char *kind, int64_t version, struct tw_arena *a, struct tw_ruleset *ret,
        struct tw_err *err)
{
	bool found = false;
	enum tw_status st;

	*ret = (struct tw_ruleset){.author = ""};
	st = tw_cat_read_row(c, &tw_ruleset_fields, a, ret, &found, err, /* primary key */
	        "SELECT version, author, created_ms, value FROM ruleset WHERE project_id=?1 AND"
	        " kind=?2 AND version>=?3 AND version<=CASE ?3 WHEN 0 THEN 9223372036854775807"
	        " ELSE ?3 END ORDER BY version DESC LIMIT 1",
	        "tti", project_id, kind, version);
	if (st == TW_OK && !found && version)
		return tw_fail(err, TW_NOT_FOUND,
		        "version %lld of the rules does not exist or is no longer stored",
		        (long long)version);
	return st;
}

enum tw_status tw_catalogue_ruleset_versions(struct tw_catalogue *c, const char *project_id,
        const char *kind, struct tw_arena *a, struct tw_ruleset **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_RULESETS_LISTED, &tw_ruleset_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT version, author, created_ms, '' FROM ruleset WHERE project_id=? AND kind=?"
	        " ORDER BY version DESC LIMIT ?",
	        "tti", project_id, kind, (int64_t)TW_RULESETS_LISTED);
}

static enum tw_status add_version(struct tw_db *db, const char *project_id, const char *kind,
        const struct tw_ruleset *r, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "INSERT INTO ruleset(project_id,kind,version,value,author,created_ms)"
	        " VALUES(?,?,?,?,?,?)",
	        "ttitti", project_id, kind, r->version, r->value, r->author, tw_unix_ms());

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "DELETE FROM ruleset WHERE project_id=? AND kind=? AND version<=?", "tti",
		        project_id, kind, r->version - VERSIONS_KEPT);
	return st;
}

static enum tw_status check_last(int64_t last, int64_t after, struct tw_err *err)
{
	if (after < 0 || after == last)
		return TW_OK;
	return tw_fail(err, TW_CONFLICT,
	        "the rules were changed: the current version is %lld, not %lld; load them again "
	        "and repeat the change",
	        (long long)last, (long long)after);
}

enum tw_status tw_catalogue_ruleset_put(struct tw_catalogue *c, const char *project_id,
        const char *kind, int64_t after, const struct tw_ruleset *rules, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_ruleset next = *rules;
	char number[TW_NUMBER_BYTES];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	next.version = 0;
	st = tw_cat_get_int(w, &next.version, err, /* primary key */
	        "SELECT version FROM ruleset WHERE project_id=? AND kind=? ORDER BY version DESC"
	        " LIMIT 1",
	        "tt", project_id, kind);
	if (st == TW_OK)
		st = check_last(next.version, after, err);
	next.version++;
	if (st == TW_OK)
		st = add_version(w, project_id, kind, &next, err);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"setting.set", project_id, kind,
	                .facts = {{"version", tw_cat_number(next.version, number)},
	                        {"value", next.value}}},
	        err);
}
