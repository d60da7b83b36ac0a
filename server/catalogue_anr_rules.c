/*
 * catalogue_anr_rules.c - the rules for groups of ANRs, all their versions.
 */
#include "catalogue_hang_int.h"

enum { VERSIONS_KEPT = 200, ALL = 1 << 20 };

static bool read_rules(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_ruleset *r = ret_row;

	*r = (struct tw_anr_ruleset){.version = tw_cat_int(q, 0),
	        .author = tw_cat_text(q, 1, a),
	        .created_ms = tw_cat_int(q, 2),
	        .value = tw_cat_text(q, 3, a)};
	return r->value && r->author;
}

enum tw_status tw_catalogue_anr_rules(struct tw_catalogue *c, const char *project_id,
        int64_t version, struct tw_arena *a, struct tw_anr_ruleset *ret, struct tw_err *err)
{
	struct tw_cat_list list = {a, 1, sizeof *ret, read_rules, NULL, 0};
	enum tw_status st = tw_cat_list(c, &list, err, /* primary key */
	        "SELECT version, author, created_ms, value FROM anr_rules WHERE project_id=?1 AND"
	        " version>=?2 AND version<=iif(?2=0,9223372036854775807,?2)"
	        " ORDER BY version DESC LIMIT 1",
	        "ti", project_id, version);

	if (st == TW_OK && list.n == 0 && version)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        "there is no version %lld of the rules, or it is not kept any more",
		        (long long)version);
	if (st == TW_OK)
		*ret = list.n ? *(struct tw_anr_ruleset *)list.rows
		              : (struct tw_anr_ruleset){.author = ""};
	return st;
}

enum tw_status tw_catalogue_anr_versions(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_anr_ruleset **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list list = {a, TW_ANR_VERSIONS_TOLD, sizeof **ret, read_rules, NULL, 0};
	enum tw_status st = tw_cat_list(c, &list, err, /* primary key */
	        "SELECT version, author, created_ms, '' FROM anr_rules WHERE project_id=?"
	        " ORDER BY version DESC LIMIT ?",
	        "ti", project_id, (int64_t)TW_ANR_VERSIONS_TOLD);

	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}

static enum tw_status add_version(sqlite3 *db, const char *project_id, int64_t version,
        const struct tw_anr_ruleset *r, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "INSERT INTO anr_rules(project_id,version,value,author,created_ms)"
	        " VALUES(?,?,?,?,?)",
	        "titti", project_id, version, r->value, r->author, tw_unix_ms());

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "DELETE FROM anr_rules WHERE project_id=? AND version<=?", "ti", project_id,
		        version - VERSIONS_KEPT);
	return st;
}

enum tw_status tw_catalogue_anr_rules_put(struct tw_catalogue *c, const char *project_id,
        int64_t after, const char *value, const char *author, struct tw_err *err)
{
	const struct tw_anr_ruleset rules = {.value = value, .author = author};
	char number[TW_NUMBER_BYTES];
	int64_t last = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_first_int(c->writer, &last, err, /* primary key */
	        "SELECT version FROM anr_rules WHERE project_id=? ORDER BY version DESC LIMIT 1",
	        "t", project_id);
	if (st == TW_OK && after >= 0 && after != last)
		st = tw_fail(err, TW_CONFLICT, TW_NO_OFFSET,
		        "the rules were changed meanwhile: version %lld holds now, not %lld; look "
		        "at them again and make the change there",
		        (long long)last, (long long)after);
	if (st == TW_OK)
		st = add_version(c->writer, project_id, last + 1, &rules, err);
	return tw_cat_end_audited(c, st,
	        &(struct tw_change){"setting.set", project_id, "anr_rules",
	                .facts = {{"version", tw_cat_number(last + 1, number)}, {"value", value}}},
	        err);
}
