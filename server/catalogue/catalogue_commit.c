/* catalogue_commit.c - the source revision of builds. */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_build.h"

enum tw_status tw_catalogue_commit_set(struct tw_catalogue *c, const char *project_id,
        const char *build_id, const char *commit, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_BUILD, build_id, &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(w, NULL, err,
	        "INSERT INTO build(project_id,build_id,created_ms,commit_id,commit_set)"
	        " VALUES(?,?,?,?,?) ON CONFLICT (project_id,build_id) DO UPDATE SET "
	        "commit_id=excluded.commit_id,"
	        " commit_set=excluded.commit_set",
	        "ttiti", project_id, build_id, tw_unix_ms(), commit, (int64_t)(*commit != 0));
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){
	                "build.commit", project_id, build_id, .facts = {{"commit", commit}}},
	        err);
}

static bool read_text(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	*(const char **)ret_row = tw_cat_text(q, 0, a);
	return *(const char **)ret_row != NULL;
}

/* A version's revision is the one set for its builds by the build system: values from devices are
 * not trusted, and if two builds differ (variants, or two apps without a filter) it is unknown. */
enum tw_status tw_catalogue_commit_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret, struct tw_err *err)
{
	struct tw_cat_list l = {a, 2, sizeof *ret, read_text, NULL, 0};
	enum tw_status st;

	if (*of->build_id)
		st = tw_cat_list(c, &l, err, /* primary key */
		        "SELECT commit_id FROM build WHERE project_id=? AND build_id=?", "tt",
		        project_id, of->build_id);
	else
		st = tw_cat_list(c, &l, err, /* build_with_commit */
		        "SELECT DISTINCT commit_id FROM build WHERE project_id=?1 AND"
		        " version_name=?2 AND commit_set=1 AND (?3='' OR app=?3) LIMIT 2",
		        "ttt", project_id, of->version_name, of->app);
	if (st == TW_OK)
		*ret = l.n == 1 ? *(const char **)l.rows : "";
	return st;
}
