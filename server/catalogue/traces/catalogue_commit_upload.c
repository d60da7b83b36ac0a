/*
 * catalogue_commit_upload.c - adds rows of uploads, grouping concurrent ones.
 *
 * A commit costs a sync of the disk, and a second upload adds almost nothing to it.  So uploads
 * queue: the first that finds no writer writes all waiting ones, in one transaction with a
 * savepoint each, while the next ones queue.  No upload waits for others to add_upload, and every
 * response is sent after the commit of its own row (I1); of two equal uploads in one transaction
 * the second finds the first (I10).
 *
 * The uploads' files are synced in parallel, and the commit becomes visible when they are durable
 * too (catalogue_vfs.c).  An upload whose files are not durable fails the transaction; the others
 * are written again without it.  Transactions have rising numbers, because only the last one can be
 * left without its files by a power failure.
 */
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/base/age_clock.h"
#include "server/catalogue/anr/catalogue_anr_index_int.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_trace.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "server/base/file/crash_point.h"
#include "server/catalogue/access/catalogue_capture.h"
#include "server/catalogue/access/catalogue_project.h"

enum { AT_ONCE_MAX = 256 };

static const char *text_or_empty(const char *s)
{
	return s ? s : "";
}

/* "part=sha256 part=sha256": equal for equal uploads. */
static enum tw_status content_of(const struct tw_part *parts, size_t n, struct tw_buf *out)
{
	for (size_t i = 0; i < n; i++)
		(void)tw_buf_printf(out, "%s%s=%s", i ? " " : "", parts[i].part, parts[i].sha256);
	(void)tw_buf_add_u8(out, 0);
	return tw_buf_status(out);
}

static enum tw_status known_before(struct tw_cat_query *q, const char *content,
        char ret_id[TW_ID_BYTES], bool *ret_known, struct tw_err *err)
{
	bool same = true;

	*ret_known = tw_cat_row(q);
	if (*ret_known) {
		(void)snprintf(ret_id, TW_ID_BYTES, "%s", tw_cat_str(q, 0));
		same = strcmp(tw_cat_str(q, 1), content) == 0;
	}
	if (!same)
		return tw_cat_close_after(q,
		        tw_fail(err, TW_CONFLICT,
		                "this Idempotency-Key was used for an upload with other content"),
		        err);
	return tw_cat_close(q, err);
}

/* An upload being added. */
struct tw_cat_arrival {
	struct tw_arrival of;
	const char *content;
	char own_id[TW_ID_BYTES]; /* the same when it is written again */
	char id[TW_ID_BYTES];
	bool known; /* the id is of an earlier, equal upload */
	enum tw_status status;
	struct tw_err err;
	bool lost; /* its files are not durable, or its project is deleted */
	struct tw_cat_arrival *next;
	bool done; /* committed or failed; protected by the queue's lock */
};

struct batch { /* the transaction of a group */
	struct tw_db *db;
	struct tw_stmt **prepared; /* of its connection */
	int64_t number;
};

/* Without key and uuid, equal content with the same device and start time is one trace for a day.
 * If device or time are unknown, two devices may have produced the same content. */
static bool is_once(const struct tw_arrival *of)
{
	return !of->key[0] && !text_or_empty(of->meta->uuid)[0] &&
	       text_or_empty(of->meta->device)[0] && of->meta->started_ms > 0;
}

/* An equal trace older than a day does not prevent a new one. */
static enum tw_status drop_old_content(
        struct batch *b, const struct tw_cat_arrival *up, struct tw_err *err)
{
	return tw_cat_exec_prepared(b->db, &b->prepared[TW_PREPARED_OLD], err,
	        "UPDATE trace SET once=0 WHERE project_id=? AND device=? AND started_ms=?"
	        " AND content=? AND once=1 AND created_ms<=?", /* trace_once_by_time */
	        "ttiti", up->of.caller->project_id, up->of.meta->device, up->of.meta->started_ms,
	        up->content, tw_unix_ms() - TW_DAY_MS);
}

static enum tw_status find_same(struct batch *b, struct tw_cat_arrival *up, struct tw_err *err)
{
	const char *project_id = up->of.caller->project_id;
	const char *device = text_or_empty(up->of.meta->device);
	const char *uuid = text_or_empty(up->of.meta->uuid);
	struct tw_stmt **prepared = b->prepared;
	struct tw_cat_query q;
	enum tw_status st;

	if (up->of.key[0]) /* CAST: SQLite would plan again for each key, as it might be '' */
		st = tw_cat_query_prepared(&q, b->db, &prepared[TW_PREPARED_BY_KEY], err,
		        "SELECT trace_id, content FROM trace WHERE project_id=? AND "
		        "idempotency_key="
		        "CAST(? AS TEXT) AND idempotency_key<>''", /* trace_once_by_key */
		        "tt", project_id, up->of.key);
	else if (device[0] && uuid[0])
		st = tw_cat_query_prepared(&q, b->db, &prepared[TW_PREPARED_BY_CONTENT], err,
		        "SELECT trace_id, content FROM trace WHERE project_id=? AND device=? AND"
		        " uuid=? AND content=? AND idempotency_key='' AND device<>'' AND uuid<>''",
		        "tttt", project_id, device, uuid, up->content); /* trace_once_by_content */
	else if (is_once(&up->of)) {
		st = drop_old_content(b, up, err);
		if (st == TW_OK)
			st = tw_cat_query_prepared(&q, b->db, &prepared[TW_PREPARED_BY_TIME], err,
			        "SELECT trace_id, content FROM trace WHERE project_id=? AND"
			        " device=? AND started_ms=? AND content=? AND once=1",
			        "ttit", project_id, device, up->of.meta->started_ms,
			        up->content); /* trace_once_by_time */
	} else
		return TW_OK;
	return st == TW_OK ? known_before(&q, up->content, up->id, &up->known, err) : st;
}

static enum tw_status insert_trace(struct batch *b, const struct tw_cat_arrival *up, uint64_t bytes,
        int64_t now, struct tw_err *err)
{
	struct tw_trace_meta m = *up->of.meta;

	if (m.recorded_ms <= 0)
		m.recorded_ms = now;
	return tw_cat_write(b->db,
	        &(struct tw_cat_written){
	                &tw_trace_meta_fields, &m, &b->prepared[TW_PREPARED_TRACE]},
	        err,
	        "INSERT INTO trace(project_id,trace_id,key_id,idempotency_key,content,state,"
	        "created_ms,upload_bytes,install,once,{columns})"
	        " VALUES(?1,?2,?3,?4,?5,0,?6,?7,?8,?9,{values})",
	        "tttttiiii", up->of.caller->project_id, up->id, up->of.caller->key_id, up->of.key,
	        up->content, now, (int64_t)bytes,
	        tw_cat_install(up->of.caller->project_id, m.device_id), (int64_t)is_once(&up->of));
}

static enum tw_status insert_parts(
        struct batch *b, const struct tw_cat_arrival *up, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < up->of.n_parts; i++) {
		const struct tw_part *p = &up->of.parts[i];

		st = tw_cat_exec_prepared(b->db, &b->prepared[TW_PREPARED_PART], err,
		        "INSERT INTO part(project_id,trace_id,part,sha256,format,bytes)"
		        " VALUES(?,?,?,?,?,?)",
		        "ttttti", up->of.caller->project_id, up->id, p->part, p->sha256, p->format,
		        (int64_t)p->bytes);
	}
	return st;
}

/* The first revision is retained, as devices may send any value and the build system sets it.  In
 * PostgreSQL the row of a known build is not locked (catalogue_shared.c). */
#define BUILD_KNOWN                                                                                \
	" ON CONFLICT(project_id,build_id) DO UPDATE SET app=excluded.app,"                        \
	" version_name=excluded.version_name, commit_id=CASE WHEN build.commit_id='' THEN"         \
	" excluded.commit_id ELSE build.commit_id END"
#define BUILD_COLUMNS                                                                              \
	"INSERT INTO build(project_id,build_id,created_ms,app,version_name,commit_id,traces)"

static enum tw_status note_build(
        struct batch *b, const struct tw_cat_arrival *up, int64_t now, struct tw_err *err)
{
	const struct tw_trace_meta *m = up->of.meta;

	if (!text_or_empty(m->build_id)[0])
		return TW_OK;
	return tw_cat_exec_prepared(b->db, &b->prepared[TW_PREPARED_BUILD], err,
	        BUILD_COLUMNS " VALUES(?1,?2,?3,?4,?5,?6,1)" BUILD_KNOWN ", traces=build.traces+1",
	        "ttittt", up->of.caller->project_id, m->build_id, now, m->app, m->version_name,
	        text_or_empty(m->commit));
}

static uint64_t bytes_of(const struct tw_cat_arrival *up)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < up->of.n_parts; i++)
		bytes += up->of.parts[i].bytes;
	return bytes;
}

static enum tw_status insert_all(
        struct batch *b, const struct tw_cat_arrival *up, int64_t now, struct tw_err *err)
{
	const uint64_t bytes = bytes_of(up);
	enum tw_status st = insert_trace(b, up, bytes, now, err);

	if (st == TW_OK)
		st = insert_parts(b, up, err);
	if (st == TW_OK)
		st = note_build(b, up, now, err);
	if (st == TW_OK)
		st = tw_cat_exec_prepared(b->db, &b->prepared[TW_PREPARED_JOB], err,
		        "INSERT INTO job(project_id,trace_id,due_ms,queued_ms,batch,bytes)"
		        " VALUES(?1,?2,?3,?3,?4,?5)",
		        "ttiii", up->of.caller->project_id, up->id, tw_wait_ms(), b->number,
		        (int64_t)bytes);
	return st;
}

static enum tw_status add_by_rows(
        struct batch *b, struct tw_cat_arrival *up, int64_t now, struct tw_err *err)
{
	enum tw_status st = find_same(b, up, err);

	if (st == TW_OK && !up->known)
		st = insert_all(b, up, now, err);
	return st;
}

/* --- one statement, in PostgreSQL --- */

#define BY_KEY "project_id=?1 AND idempotency_key=?4 AND idempotency_key<>''"
#define BY_CONTENT                                                                                 \
	"project_id=?1 AND device=?19 AND uuid=?20 AND content=?5 AND md5(content)=md5(?5) AND"    \
	" idempotency_key='' AND device<>'' AND uuid<>''"
#define BY_TIME                                                                                    \
	"project_id=?1 AND device=?19 AND started_ms=?21 AND content=?5 AND"                       \
	" md5(content)=md5(?5) AND once=1"
#define BY_NOTHING "false"
/* Also finds the row of the same upload whose commit was not acknowledged.  ?22: locks of the
 * parts' files, taken before the row is added. */
#define ADD(which)                                                                                 \
	"WITH locked AS (SELECT CAST(pg_advisory_xact_lock_shared(hashtextextended(identity,n)) "  \
	"AS TEXT) AS one FROM catalogue_identity, unnest(CAST(?22 AS BIGINT[])) n), same AS "      \
	"(SELECT trace_id, content FROM trace WHERE project_id=?1 AND trace_id=?2"                 \
	" UNION ALL SELECT trace_id, content FROM trace WHERE " which "), added AS (INSERT INTO"   \
	" trace(project_id,trace_id,key_id,idempotency_key,content,state,created_ms,"              \
	"upload_bytes,install,once,{columns}) SELECT ?1,?2,?3,?4,?5,0,?6,?7,?8,?9,{values} FROM "  \
	"(SELECT count(one) FROM locked) of_files WHERE"                                           \
	" NOT EXISTS(SELECT 1 FROM same) RETURNING project_id,trace_id), parts AS (INSERT INTO"    \
	" part(project_id,trace_id,part,sha256,format,bytes) SELECT added.project_id,"             \
	"added.trace_id,p.part,p.sha256,p.format,p.bytes FROM added, unnest(CAST(?11 AS TEXT[]),"  \
	"CAST(?12 AS TEXT[]),CAST(?13 AS TEXT[]),CAST(?14 AS BIGINT[])) p(part,sha256,format,"     \
	"bytes)), small AS (INSERT INTO small_file(trace_id,part,project_id,content) SELECT "      \
	"added.trace_id,p.part,added.project_id,decode(p.hex,'hex') FROM added,"                   \
	" unnest(CAST(?11 AS TEXT[]),CAST(?23 AS TEXT[])) p(part,hex) WHERE p.hex<>''),"           \
	" of_build AS (" BUILD_COLUMNS " SELECT ?1,?15,?6,?16,?17,?18,0 FROM added WHERE"          \
	" ?15<>'' AND NOT EXISTS(SELECT 1 FROM build WHERE project_id=?1 AND build_id=?15 AND"     \
	" app=?16 AND version_name=?17 AND (?18='' OR commit_id<>''))" BUILD_KNOWN "), counted AS" \
	" (INSERT INTO count_delta(project_id,counter,name,day,trace_id,traces,devices) SELECT"    \
	" ?1,0,?15,0,?2,1,0 FROM added WHERE ?15<>''), queued AS (INSERT INTO"                     \
	" job(project_id,trace_id,due_ms,queued_ms,batch,bytes) SELECT ?1,?2,"                     \
	"least(?6," TW_CAT_DATABASE_MS                                                             \
	"),?6,?10,?7 FROM added) SELECT trace_id, content FROM same"

static enum tw_cat_prepared identity_of(const struct tw_cat_arrival *up)
{
	if (up->of.key[0])
		return TW_PREPARED_BY_KEY;
	if (text_or_empty(up->of.meta->device)[0] && text_or_empty(up->of.meta->uuid)[0])
		return TW_PREPARED_BY_CONTENT;
	return is_once(&up->of) ? TW_PREPARED_BY_TIME : TW_PREPARED_TRACE;
}

static enum tw_status query_add(struct tw_cat_query *q, struct batch *b,
        const struct tw_cat_arrival *up, int64_t now, struct tw_err *err)
{
	static const char *const sql[TW_PREPARED_N] = {     /* primary keys and */
	        [TW_PREPARED_BY_KEY] = ADD(BY_KEY),         /* trace_once_by_key */
	        [TW_PREPARED_BY_CONTENT] = ADD(BY_CONTENT), /* trace_once_by_content */
	        [TW_PREPARED_BY_TIME] = ADD(BY_TIME),       /* trace_once_by_time */
	        [TW_PREPARED_TRACE] = ADD(BY_NOTHING)};
	const enum tw_cat_prepared by = identity_of(up);
	const struct tw_part *p = up->of.parts;
	const size_t n = up->of.n_parts;
	const struct tw_cat_array parts = {'t', &p->part, n, sizeof *p},
	                          files = {'t', &p->sha256, n, sizeof *p},
	                          formats = {'t', &p->format, n, sizeof *p},
	                          bytes = {'i', &p->bytes, n, sizeof *p},
	                          contents = {'t', &p->hex, p->hex ? n : 0, sizeof *p};
	int64_t locks[TW_CATALOGUE_PARTS];
	const struct tw_cat_array files_locked = {
	        'i', locks, up->of.present ? n : 0, sizeof *locks};
	struct tw_trace_meta m = *up->of.meta;

	if (m.recorded_ms <= 0)
		m.recorded_ms = now;
	for (size_t i = 0; i < n; i++)
		locks[i] = tw_cat_lock_number(TW_SUBJECT_CONTENT, p[i].sha256);
	return tw_cat_query_write(q, b->db,
	        &(struct tw_cat_written){&tw_trace_meta_fields, &m, &b->prepared[by]}, err, sql[by],
	        "tttttiiiiiaaaattttttiaa", up->of.caller->project_id, up->own_id,
	        up->of.caller->key_id, up->of.key, up->content, now, (int64_t)bytes_of(up),
	        tw_cat_install(up->of.caller->project_id, m.device_id), (int64_t)is_once(&up->of),
	        b->number, &parts, &files, &formats, &bytes, m.build_id, m.app, m.version_name,
	        text_or_empty(m.commit), text_or_empty(m.device), text_or_empty(m.uuid),
	        m.started_ms, &files_locked, &contents);
}

static enum tw_status add_by_one(
        struct batch *b, struct tw_cat_arrival *up, int64_t now, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st =
	        identity_of(up) == TW_PREPARED_BY_TIME ? drop_old_content(b, up, err) : TW_OK;

	if (st == TW_OK)
		st = query_add(&q, b, up, now, err);
	if (st == TW_OK)
		st = known_before(&q, up->content, up->id, &up->known, err);
	if (st == TW_OK && up->known && strcmp(up->id, up->own_id) == 0)
		up->known = false;
	return st;
}

/* --- in groups --- */

/* Another server may have deleted an equal file after it was stored here, and before the row was
 * added. */
static enum tw_status check_files(const struct tw_cat_arrival *up, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && up->of.present && i < up->of.n_parts; i++)
		st = up->of.present(up->of.arg, up->of.parts[i].sha256, err);
	return st;
}

static enum tw_status add_upload(struct batch *b, struct tw_cat_arrival *up, struct tw_err *err)
{
	const int64_t now = tw_unix_ms();
	enum tw_status st;

	if (!up->own_id[0])
		tw_ulid_new(now, up->own_id);
	up->known = false;
	memcpy(up->id, up->own_id, sizeof up->id);
	st = (b->db->engine->is_shared ? add_by_one : add_by_rows)(b, up, now, err);
	if (st == TW_OK && !up->known)
		st = check_files(up, err);
	if (st == TW_OK && !up->known && text_or_empty(up->of.meta->capture)[0])
		st = tw_cat_capture_count(
		        b->db, up->of.caller->project_id, up->id, up->of.meta, now, err);
	return st;
}

/* A savepoint ensures that a refused upload writes nothing and does not affect the others.  Returns
 * errors that end the transaction: some make SQLite roll all of it back. */
static enum tw_status add_in_savepoint(
        struct batch *b, struct tw_cat_arrival *up, struct tw_err *err)
{
	enum tw_status st = tw_db_run(b->db, "SAVEPOINT arrival", err);

	if (st != TW_OK)
		return st;
	up->status = add_upload(b, up, &up->err);
	if (up->status != TW_OK &&
	        (!b->db->engine->in_transaction(b->db) || b->db->engine->conflicts(b->db))) {
		tw_err_copy(err, &up->err);
		return up->status;
	}
	if (up->status != TW_OK)
		st = tw_db_run(b->db, "ROLLBACK TO arrival", err);
	return st == TW_OK ? tw_db_run(b->db, "RELEASE arrival", err) : st;
}

/* Without a savepoint, an error ends the transaction unless the upload was refused before it wrote
 * anything. */
static enum tw_status add_in_transaction(
        struct batch *b, struct tw_cat_arrival *up, struct tw_err *err)
{
	up->status = add_upload(b, up, &up->err);
	if (up->status == TW_OK || up->status == TW_CONFLICT)
		return TW_OK;
	tw_err_copy(err, &up->err);
	return up->status;
}

/* Whether the files of all rows are durable.  Called when the log is. */
static bool all_durable(void *arg)
{
	bool durable = true;

	for (struct tw_cat_arrival *up = arg; up; up = up->next) {
		if (up->lost || up->status != TW_OK || up->known || !up->of.durable)
			continue;
		up->status = up->of.durable(up->of.arg, &up->err);
		up->lost = up->status != TW_OK;
		durable = durable && !up->lost;
	}
	return durable;
}

/* Whether all is written by one statement, which needs no BEGIN. */
static bool is_one(const struct tw_catalogue *c, const struct tw_cat_arrival *all)
{
	return !tw_cat_is_sqlite(c) && !all->next && !all->of.present && !all->lost &&
	       c->arrivals.batch > 0 && identity_of(all) != TW_PREPARED_BY_TIME &&
	       !text_or_empty(all->of.meta->capture)[0];
}

static enum tw_status next_batch(struct tw_catalogue *c, struct batch *b, struct tw_err *err)
{
	int64_t last = 0;
	enum tw_status st;

	if (c->arrivals.batch > 0) {
		b->number = ++c->arrivals.batch;
		return TW_OK;
	}
	st = tw_cat_get_int(b->db, &last, err, "SELECT max(batch) FROM job", "");
	if (st == TW_OK)
		b->number = c->arrivals.batch = last + 1;
	return st;
}

/* One transaction, without lost uploads. */
static enum tw_status write_once(
        struct tw_catalogue *c, struct tw_cat_arrival *all, bool apart, struct tw_err *err)
{
	struct tw_cat_gate gate = {all_durable, all};
	struct batch b = {.db = NULL};
	enum tw_status st;

	if (!tw_cat_is_sqlite(c)) /* its transactions do not wait for files */
		(void)all_durable(all);
	st = tw_cat_begin_uploads(c, !apart && is_one(c, all), &b.db, err);
	if (st != TW_OK)
		return st;
	b.prepared = tw_cat_writer_prepared(c, b.db);
	st = next_batch(c, &b, err);
	for (struct tw_cat_arrival *up = all; up && st == TW_OK; up = up->next)
		if (!up->lost)
			st = (apart ? add_in_savepoint : add_in_transaction)(&b, up, err);
	tw_cat_set_gate(&gate);
	st = tw_cat_end(c, b.db, st, err);
	tw_cat_set_gate(NULL);
	return st;
}

static size_t count_lost(const struct tw_cat_arrival *all)
{
	size_t n = 0;

	for (; all; all = all->next)
		n += all->lost;
	return n;
}

static bool any_failed(const struct tw_cat_arrival *all)
{
	bool failed = false;

	for (; all; all = all->next)
		failed = failed ||
		         (!all->lost && all->status != TW_OK && all->status != TW_CONFLICT);
	return failed;
}

/* The row that an upload refers to never exists again if its project is deleted. Later runs of the
 * transaction omit that upload. */
static void check_projects(struct tw_catalogue *c, struct tw_cat_arrival *all)
{
	for (struct tw_cat_arrival *up = all; up; up = up->next) {
		bool exists = true;

		if (!up->lost && up->status == TW_BUSY)
			up->lost = tw_catalogue_project_exists(
			                   c, up->of.caller->project_id, &exists, NULL) == TW_OK &&
			           !exists;
	}
}

/* Sets the status of each. */
static void write_all(struct tw_catalogue *c, struct tw_cat_arrival *all)
{
	struct tw_err err = {0};
	bool apart = false, again, more;
	unsigned attempts = 0;
	enum tw_status st;

	do {
		const size_t lost = count_lost(all);

		st = write_once(c, all, apart, &err);
		again = tw_cat_again(st, &attempts);
		if (again)
			check_projects(c, all);
		more = again || (st != TW_OK && (count_lost(all) > lost ||
		                                        (!apart && all->next && any_failed(all))));
		apart = apart || st != TW_OK;
	} while (more);
	if (st == TW_OK) {
		tw_crash_point("row_committed");
		return;
	}
	for (struct tw_cat_arrival *up = all; up; up = up->next)
		if (!up->lost) {
			up->status = st;
			up->err = err;
		}
}

/* The waiting ones, longest waiting first.  Call with the queue's lock held. */
static struct tw_cat_arrival *take_waiting(struct tw_cat_queue *q)
{
	struct tw_cat_arrival *all = q->first;
	struct tw_cat_arrival *last = all;

	for (int n = 1; n < AT_ONCE_MAX && last && last->next; n++)
		last = last->next;
	q->first = last ? last->next : NULL;
	if (!q->first)
		q->last = &q->first;
	if (last)
		last->next = NULL;
	return all;
}

/* Returns once the upload has its row, or has failed. */
static void queue_up(struct tw_catalogue *c, struct tw_cat_arrival *up)
{
	struct tw_cat_queue *q = &c->arrivals;

	(void)pthread_mutex_lock(&q->lock);
	*q->last = up;
	q->last = &up->next;
	while (!up->done) {
		struct tw_cat_arrival *all;

		if (q->writing) {
			(void)pthread_cond_wait(&q->changed, &q->lock);
			continue;
		}
		q->writing = true;
		all = take_waiting(q);
		(void)pthread_mutex_unlock(&q->lock);
		write_all(c, all);
		(void)pthread_mutex_lock(&q->lock);
		q->writing = false;
		while (all) { /* a finished one may be freed once the lock is released */
			all->done = true;
			all = all->next;
		}
		(void)pthread_cond_broadcast(&q->changed);
	}
	(void)pthread_mutex_unlock(&q->lock);
}

enum tw_status tw_catalogue_trace_add(struct tw_catalogue *c, const struct tw_arrival *of,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct tw_cat_arrival up = {.of = *of};
	struct tw_buf content;

	up.of.key = text_or_empty(of->key);
	if (of->n_parts == 0 || of->n_parts > TW_CATALOGUE_PARTS)
		return tw_fail(
		        err, TW_BAD_REQUEST, "a trace has 1 to %d parts", TW_CATALOGUE_PARTS);
	tw_buf_init(&content, 4096);
	if (content_of(of->parts, of->n_parts, &content) != TW_OK) {
		tw_buf_done(&content);
		return tw_oom(err);
	}
	up.content = (const char *)content.data;
	queue_up(c, &up);
	tw_buf_done(&content);
	if (up.status != TW_OK) {
		tw_err_copy(err, &up.err);
		return up.status;
	}
	memcpy(ret_id, up.id, TW_ID_BYTES);
	*ret_new = !up.known;
	return TW_OK;
}

/* --- after a crash --- */

enum { UNVERIFIED_MAX = AT_ONCE_MAX * TW_CATALOGUE_PARTS };

#define UNVERIFIED(member, column) TW_FIELD(struct tw_unverified, member, column, NULL)
static const struct tw_fields unverified_fields =
        TW_FIELDS_OF(UNVERIFIED(project_id, "project_id"), UNVERIFIED(trace_id, "trace_id"),
                UNVERIFIED(sha256, "sha256"), UNVERIFIED(bytes, "part.bytes"));

enum tw_status tw_catalogue_unverified(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_unverified **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, UNVERIFIED_MAX, &unverified_fields, ret, ret_n),
	        err, /* part's primary key */
	        "SELECT {columns} FROM job JOIN part USING (project_id, trace_id)"
	        " WHERE batch=(SELECT max(batch) FROM job) AND batch>0",
	        "");
}
