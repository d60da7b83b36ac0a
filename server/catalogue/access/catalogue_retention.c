/* catalogue_retention.c - a project's use of storage, its oldest traces, and waits that became too
 * long. */
#include "server/catalogue/access/catalogue_retention.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/catalogue_files.h"

enum { OLD_MAX = 4096 };

#define USE(member) TW_FIELD(struct tw_use, member, "", NULL)
static const struct tw_fields use_fields = TW_FIELDS_OF(
        USE(traces), USE(pinned), USE(decoded_bytes), USE(archived), USE(upload_bytes));

enum tw_status tw_catalogue_use(
        struct tw_catalogue *c, const char *project_id, struct tw_use *ret, struct tw_err *err)
{
	return tw_cat_read_row(c, &use_fields, NULL, ret, NULL,
	        err, /* the project's rows; primary key */
	        "SELECT count(*), sum(pinned), sum(file_bytes), sum(CASE state WHEN 4 THEN 1"
	        " ELSE 0 END), (SELECT sum(bytes) FROM part WHERE project_id=?1) FROM trace"
	        " WHERE project_id=?1",
	        "t", project_id);
}

#define OLD(member) TW_FIELD(struct tw_old_trace, member, "", NULL)
static const struct tw_fields old_fields =
        TW_FIELDS_OF(OLD(id), OLD(name), OLD(created_ms), OLD(since_ms), OLD(bytes));

static enum tw_status select_old(struct tw_catalogue *c, const char *sql,
        const struct tw_old_query *of, struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err)
{
	const uint32_t limit = of->limit < OLD_MAX ? of->limit : OLD_MAX;

	return tw_cat_list(c, TW_CAT_LIST(a, limit, &old_fields, ret, ret_n), err, sql, "tiiii",
	        of->project_id, of->before_ms, (int64_t)limit, (int64_t)of->keep_annotated,
	        of->firsts_ms);
}

#define NAMED                                                                                      \
	"trace_id, coalesce(nullif(title,''), nullif(trim(app||' '||version_name||' '||scenario)," \
	"''), trace_id), created_ms, "
#define PARTS_OF(which)                                                                            \
	"(SELECT coalesce(sum(bytes),0) FROM part p WHERE p.project_id=trace.project_id"           \
	" AND p.trace_id=trace.trace_id" which ")"
/* Neither pinned nor kept for a reason. */
#define MAY_GO                                                                                     \
	" AND pinned=0 AND exempt_reason='' AND (?4=0 OR (title='' AND annotations=0))"            \
	" AND NOT (created_ms>=?5 AND " TW_TRACE_IS_FIRST ") "
/* The stages that read the decoded file are done with it. */
#define IS_DERIVED " AND rollup_state<>0 AND anr_state<>0 AND (detected<>0 OR rollup_state<>1)"
#define ALL_BYTES  "file_bytes + " PARTS_OF("")
#define OLDEST(index, which, since, bytes)                                                         \
	"SELECT " NAMED since ", " bytes " FROM trace INDEXED BY " index                           \
	" WHERE project_id=?1 AND " since "<?2 AND " which MAY_GO "ORDER BY " since                \
	", trace_id LIMIT ?3"

enum tw_status tw_catalogue_oldest(struct tw_catalogue *c, enum tw_old_which which,
        const struct tw_old_query *of, struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err)
{
	static const char *const sql[TW_OLD_KINDS] = {
	        [TW_OLD_ALL] = OLDEST("trace_by_created", "state>=2", "created_ms", ALL_BYTES),
	        [TW_OLD_WITHOUT_ANR] =
	                OLDEST("trace_by_created", "state>=2 AND anr=''", "created_ms", ALL_BYTES),
	        [TW_OLD_WITH_ANR] =
	                OLDEST("trace_with_anr", "state>=2 AND anr<>''", "created_ms", ALL_BYTES),
	        [TW_OLD_WITH_UPLOAD] = OLDEST("trace_with_upload", "state=2 AND has_upload=1",
	                "created_ms", PARTS_OF(" AND part<>'system'")),
	        [TW_OLD_ARCHIVED] = OLDEST("trace_with_upload", "state=4 AND has_upload=1",
	                "created_ms", PARTS_OF("")),
	        [TW_OLD_DECODED] = OLDEST("trace_decoded", "state=2 AND has_upload=1" IS_DERIVED,
	                "ready_ms", "file_bytes"),
	};

	return select_old(c, sql[which], of, a, ret, ret_n, err);
}

/* Steps from group to group of ANRs, not over all their reports. */
#define NEXT_GROUP(after)                                                                          \
	"(SELECT n.anr FROM trace n INDEXED BY trace_of_anr WHERE n.project_id=?1 AND "            \
	"n.anr>" after " AND n.anr<>'' ORDER BY n.anr LIMIT 1)"
#define WITH_GROUPS                                                                                \
	"WITH RECURSIVE g(anr) AS (SELECT " NEXT_GROUP("''") " UNION ALL SELECT " NEXT_GROUP(      \
	        "g.anr") " FROM g WHERE g.anr IS NOT NULL) "
#define FIRST_OF_GROUP                                                                             \
	"(SELECT o.trace_id FROM trace o INDEXED BY trace_of_anr WHERE o.project_id=?1 AND"        \
	" o.anr=g.anr AND o.anr<>'' ORDER BY o.created_ms, o.trace_id LIMIT 1)"

enum tw_status tw_catalogue_firsts_since(struct tw_catalogue *c, const struct tw_old_query *of,
        uint64_t bytes, struct tw_arena *a, int64_t *ret_ms, struct tw_err *err)
{
	struct tw_old_trace *rows = NULL;
	size_t n = 0;
	enum tw_status st = select_old(c,
	        WITH_GROUPS
	        "SELECT '', '', created_ms, created_ms, " ALL_BYTES " FROM"
	        " g CROSS JOIN trace ON project_id=?1 AND trace_id=" FIRST_OF_GROUP
	        " WHERE created_ms<?2 AND pinned=0 AND exempt_reason='' AND (?4=0 OR (title=''"
	        " AND annotations=0)) AND ?5=?5 ORDER BY created_ms DESC, trace_id DESC LIMIT ?3",
	        of, a, &rows, &n, err);

	*ret_ms = INT64_MAX;
	/* one that is too large ends the list: it must not take the others with it */
	for (size_t i = 0; st == TW_OK && i < n && bytes > 0; i++) {
		bytes -= rows[i].bytes < bytes ? rows[i].bytes : bytes;
		*ret_ms = rows[i].created_ms;
	}
	return st;
}

static const char was_changed[] = "the trace was changed during the request";

enum tw_status tw_catalogue_decoded_drop(
        struct tw_catalogue *c, const char *project_id, const char *trace_id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	unsigned small = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st == TW_OK)
		st = tw_cat_change(w, was_changed,
		        err, /* not before rollups, which read its decoded file */
		        "UPDATE trace SET state=4, file_bytes=0, file_sha256='' WHERE project_id=?"
		        " AND trace_id=? AND state=2 AND has_upload=1 AND pinned=0"
		        " AND exempt_reason=''" IS_DERIVED,
		        "tt", project_id, trace_id);
	if (st == TW_OK)
		st = tw_cat_small_drop(w, trace_id, TW_CAT_SMALL_DECODED, &small, err);
	if (st == TW_OK && !small)
		st = tw_cat_trace_drop(w, trace_id, err);
	return tw_cat_end_audited(
	        c, w, st, &(struct tw_change){"decoded.delete", project_id, trace_id}, err);
}

/* The parts deleted with the upload; the device's own trace is shown, so it stays. */
static enum tw_status read_contents(struct tw_db *db, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_blob_list *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT sha256 FROM part WHERE project_id=? AND trace_id=? AND part<>'system'"
	        " LIMIT ?",
	        "tti", project_id, trace_id, (int64_t)TW_CATALOGUE_PARTS);

	ret->n = 0;
	ret->sha256 = tw_arena_alloc(a, TW_CATALOGUE_PARTS, sizeof *ret->sha256);
	if (st != TW_OK)
		return st;
	if (!ret->sha256)
		return tw_cat_close_after(&q, tw_oom(err), err);
	while (ret->n < TW_CATALOGUE_PARTS && tw_cat_row(&q))
		ret->sha256[ret->n++] = tw_cat_text(&q, 0, a);
	return tw_cat_close(&q, err);
}

static enum tw_status drop_rows(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	enum tw_status st = tw_cat_change(db, was_changed, err,
	        "UPDATE trace SET has_upload=0 WHERE project_id=? AND trace_id=? AND state=2"
	        " AND pinned=0 AND exempt_reason=''",
	        "tt", project_id, trace_id);

	return st == TW_OK ? tw_cat_exec(db, NULL, err,
	                             "DELETE FROM part WHERE project_id=? AND trace_id=?"
	                             " AND part<>'system'",
	                             "tt", project_id, trace_id)
	                   : st;
}

enum tw_status tw_catalogue_upload_drop(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_blob_list all;
	unsigned small = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st == TW_OK)
		st = read_contents(w, project_id, trace_id, a, &all, err);
	if (st == TW_OK)
		st = drop_rows(w, project_id, trace_id, err);
	if (st == TW_OK)
		st = tw_cat_small_drop(w, trace_id, TW_CAT_SMALL_UPLOAD, &small, err);
	if (st == TW_OK && !small)
		st = tw_cat_unused_blobs(
		        w, all.sha256, all.n, a, &ret_unused->sha256, &ret_unused->n, err);
	return tw_cat_end_audited(
	        c, w, st, &(struct tw_change){"upload.delete", project_id, trace_id}, err);
}

enum tw_status tw_catalogue_end_long_waits(struct tw_catalogue *c, struct tw_err *err)
{
	static const char *const statements[] = {
	        /* job_by_project, mapping_job_by_project; also a claim that a dead server left */
	        "UPDATE job SET due_ms=?1 WHERE claimed IN (0,1) AND due_ms>?2",
	        "UPDATE mapping_job SET due_ms=?1 WHERE claimed IN (0,1) AND due_ms>?2",
	        "UPDATE outbox SET due_ms=?1 WHERE state=0 AND due_ms>?2", /* outbox_waiting */
	        "UPDATE webhook SET hold_ms=?1 WHERE hold_ms>?2",          /* few rows */
	        "UPDATE ticket SET due_ms=?1 WHERE due_ms>?2",             /* ticket_due */
	        "UPDATE file_drop SET due_ms=?1 WHERE due_ms>?2",          /* file_drop_due */
	};
	struct tw_db *w = NULL;
	int64_t now = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_now(w, &now, err);
	for (size_t i = 0; st == TW_OK && i < sizeof statements / sizeof *statements; i++)
		st = tw_cat_exec(w, NULL, err, statements[i], "ii", now, now + TW_LONGEST_WAIT_MS);
	return tw_cat_end(c, w, st, err);
}
