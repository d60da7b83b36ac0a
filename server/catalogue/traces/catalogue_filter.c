/* catalogue_filter.c - saved filters of a project. */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_list.h"

#define ROW(member) TW_FIELD(struct tw_filter_row, member, #member, #member)
static const struct tw_field row_fields[] = {ROW(name), ROW(query), ROW(author), ROW(updated_ms)};
const struct tw_fields tw_filter_fields = TW_FIELDS(row_fields);

enum tw_status tw_catalogue_filters(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_filter_row **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_FILTERS_MAX, &tw_filter_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT {columns} FROM saved_filter WHERE project_id=? ORDER BY name", "t",
	        project_id);
}

static enum tw_status check_room(
        struct tw_db *db, const char *project_id, const char *name, struct tw_err *err)
{
	int64_t others = 0;
	enum tw_status st = tw_cat_first_int(/* primary key */
	        db, &others, err,
	        "SELECT count(*) FROM saved_filter WHERE project_id=? AND name<>?", "tt",
	        project_id, name);

	if (st == TW_OK && others >= TW_FILTERS_MAX)
		st = tw_fail(err, TW_CONFLICT,
		        "a project can have at most %d filters; delete one first", TW_FILTERS_MAX);
	return st;
}

enum tw_status tw_catalogue_filter_set(struct tw_catalogue *c, const char *project_id,
        const struct tw_filter_row *row, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	st = check_room(w, project_id, row->name, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO saved_filter(project_id,name,query,author,updated_ms)"
		        " VALUES(?,?,?,?,?) ON CONFLICT(project_id,name) DO UPDATE SET"
		        " query=excluded.query, author=excluded.author,"
		        " updated_ms=excluded.updated_ms",
		        "tttti", project_id, row->name, row->query, row->author, tw_unix_ms());
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){
	                "filter.set", project_id, row->name, .facts = {{"query", row->query}}},
	        err);
}

enum tw_status tw_catalogue_filter_delete(
        struct tw_catalogue *c, const char *project_id, const char *name, struct tw_err *err)
{
	return tw_cat_run(c,
	        &(struct tw_cat_alone){TW_ALONE_ACCESS, "",
	                .missing = "no saved filter of that name",
	                .change = &(struct tw_change){"filter.delete", project_id, name}},
	        err, "DELETE FROM saved_filter WHERE project_id=? AND name=?", "tt", project_id,
	        name);
}
