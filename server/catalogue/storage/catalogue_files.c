/*
 * catalogue_files.c - lists the files that the catalogue refers to, a page at a time.
 *
 * No snapshot stays open between pages, so that a check of terabytes blocks nothing; the checker
 * looks twice at files that appear or disappear in the meantime.
 */
#include "server/catalogue/storage/catalogue_files.h"

#include "server/catalogue/catalogue_internal.h"

enum { PAGE = 256, PAGE_ARENA = 4 << 20 };

struct page {
	struct tw_stored_file *rows;
	size_t n;
};

static bool reserve_space(struct page *p, uint32_t limit, struct tw_arena *a)
{
	*p = (struct page){tw_arena_alloc(a, limit, sizeof *p->rows), 0};
	return p->rows != NULL;
}

static const struct tw_fields file_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_stored_file, project_id, "", NULL),
                TW_FIELD(struct tw_stored_file, id, "", NULL),
                TW_FIELD(struct tw_stored_file, what, "", NULL),
                TW_FIELD(struct tw_stored_file, sha256, "", NULL),
                TW_FIELD(struct tw_stored_file, bytes, "", NULL),
                TW_FIELD(struct tw_stored_file, has_upload, "", NULL));

/* sql takes project, id and `what` of the previous row, and the limit. */
static enum tw_status list_files(struct tw_catalogue *c, const char *sql,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err)
{
	static const struct tw_stored_file first = {"", "", "", "", 0, false};
	const struct tw_stored_file *from = after ? after : &first;
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &file_fields, ret, ret_n), err, sql, "ttti",
	        from->project_id, from->id, from->what, (int64_t)limit);
}

enum tw_status tw_catalogue_stored_parts(struct tw_catalogue *c, const struct tw_stored_file *after,
        uint32_t limit, struct tw_arena *a, struct tw_stored_file **ret, size_t *ret_n,
        struct tw_err *err)
{
	return list_files(c, /* primary key */
	        "SELECT project_id, trace_id, part, sha256, bytes, 1 FROM part"
	        " WHERE (project_id, trace_id, part) > (?1, ?2, ?3)"
	        " ORDER BY project_id, trace_id, part LIMIT ?4",
	        after, limit, a, ret, ret_n, err);
}

enum tw_status tw_catalogue_stored_traces(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err)
{
	return list_files(c, /* primary key */
	        "SELECT project_id, trace_id, 'decoded', file_sha256, file_bytes, has_upload"
	        " FROM trace WHERE (project_id, trace_id) > (?1, ?2) AND ?3=?3 AND state=2"
	        " ORDER BY project_id, trace_id LIMIT ?4",
	        after, limit, a, ret, ret_n, err);
}

enum { FILES_OF_BUILD = 6 };

/* The existing files of a build row, each image after its source. */
static bool add_build(const struct tw_cat_query *q, struct tw_arena *a, struct page *p)
{
	static const char *const whats[FILES_OF_BUILD] = {"mapping", "mapping image", "retrace",
	        "retrace image", "mapping upload", "retrace upload"};
	const char *project = tw_cat_text(q, 0, a);
	const char *build = tw_cat_text(q, 1, a);

	for (int i = 0; i < FILES_OF_BUILD; i++) {
		const char *sha256 = tw_cat_text(q, 2 + i, a);

		if (!sha256)
			return false;
		if (*sha256)
			p->rows[p->n++] =
			        (struct tw_stored_file){project, build, whats[i], sha256, 0, true};
	}
	return project && build;
}

static enum tw_status read_builds(struct tw_cat_query *q, uint32_t limit, struct tw_arena *a,
        struct page *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (!reserve_space(p, limit, a))
		return tw_cat_close_after(q, tw_oom(err), err);
	while (st == TW_OK && p->n + FILES_OF_BUILD <= limit && tw_cat_row(q))
		if (!add_build(q, a, p))
			st = tw_oom(err);
	return tw_cat_close_after(q, st, err);
}

enum tw_status tw_catalogue_stored_mappings(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err)
{
	struct page p = {0};
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, /* primary key; builds without a mapping have nothing */
	        "SELECT build.project_id, build.build_id, build.source_sha256, map_sha256,"
	        " retrace_source_sha256, retrace_sha256, coalesce(m.source_sha256,''),"
	        " coalesce(r.source_sha256,'') FROM build"
	        " LEFT JOIN mapping_job m ON m.project_id=build.project_id AND"
	        " m.build_id=build.build_id AND m.kind=0"
	        " LEFT JOIN mapping_job r ON r.project_id=build.project_id AND"
	        " r.build_id=build.build_id AND r.kind=1"
	        " WHERE (build.project_id, build.build_id) > (?1, ?2)"
	        " AND build.source_sha256 || retrace_source_sha256 ||"
	        " coalesce(m.source_sha256,'') || coalesce(r.source_sha256,'') <> ''"
	        " ORDER BY build.project_id, build.build_id",
	        "tt", after ? after->project_id : "", after ? after->id : "");
	if (st == TW_OK)
		st = read_builds(&q, limit, a, &p, err);
	tw_cat_done(c, db);
	if (st != TW_OK)
		return st;
	*ret = p.rows;
	*ret_n = p.n;
	return TW_OK;
}

/* --- every file --- */

static enum tw_status do_page(struct tw_stored_file *rows, size_t n, tw_stored_fn one, void *arg,
        struct tw_arena *a, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = one(arg, &rows[i], a, err);
	return st;
}

enum tw_status tw_stored_each(struct tw_catalogue *c, tw_stored_page_fn page, tw_stored_fn one,
        void *arg, struct tw_err *err)
{
	struct tw_arena *a = NULL;
	struct tw_stored_file *rows = NULL;
	enum tw_status st;
	size_t n = 0;

	do { /* a page stays valid until the next one was read from its last row on */
		struct tw_arena *next = tw_arena_new(PAGE_ARENA);

		st = next ? page(c, n ? &rows[n - 1] : NULL, PAGE, next, &rows, &n, err)
		          : tw_oom(err);
		tw_arena_free(a);
		a = next;
		if (st == TW_OK)
			st = do_page(rows, n, one, arg, a, err);
	} while (st == TW_OK && n);
	tw_arena_free(a);
	return st;
}

static enum tw_status count_one(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	(void)f;
	(void)a;
	(void)err;
	++*(uint64_t *)arg;
	return TW_OK;
}

uint64_t tw_stored_count(struct tw_catalogue *c, tw_stored_page_fn page)
{
	uint64_t n = 0;

	return tw_stored_each(c, page, count_one, &n, NULL) == TW_OK ? n : 0;
}
