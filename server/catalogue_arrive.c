/*
 * catalogue_arrive.c - uploads get their rows, those that come at once together.
 *
 * A commit costs a sync of the disk, and what a second upload adds to one is
 * next to nothing.  So uploads queue: the first that finds nobody writing writes
 * all that wait, in one transaction with a savepoint each, while the next ones
 * gather.  Nobody waits for company, and every answer comes after the commit of
 * its own row (I1); of two equal uploads in one transaction the second finds the
 * first (I10).
 */
#include "catalogue_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "crash_point.h"
#include "ulid.h"

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
		(void)snprintf(
		        ret_id, TW_ID_BYTES, "%s", (const char *)sqlite3_column_text(q->stmt, 0));
		same = strcmp((const char *)sqlite3_column_text(q->stmt, 1), content) == 0;
	}
	if (!same)
		return tw_cat_close_after(q,
		        tw_fail(err, TW_CONFLICT, TW_NO_OFFSET,
		                "this Idempotency-Key was used for an upload with other content"),
		        err);
	return tw_cat_close(q, err);
}

/* One upload on its way into the catalogue. */
struct tw_cat_arrival {
	const struct tw_caller *caller;
	const char *key, *content;
	const struct tw_trace_meta *meta;
	const struct tw_part *parts;
	size_t n_parts;
	char id[TW_ID_BYTES];
	bool known; /* the id is of an earlier upload of the same */
	enum tw_status status;
	struct tw_err err;
	struct tw_cat_arrival *next;
	bool done; /* committed or failed; under the queue's lock */
};

static enum tw_status find_same(sqlite3 *db, struct tw_cat_arrival *up, struct tw_err *err)
{
	const struct tw_trace_meta *m = up->meta;
	struct tw_cat_query q;
	enum tw_status st;

	if (up->key[0])
		st = tw_cat_query(&q, db, err, /* trace_once_by_key */
		        "SELECT trace_id, content FROM trace WHERE project_id=? AND"
		        " idempotency_key=? AND idempotency_key<>''",
		        "tt", up->caller->project_id, up->key);
	else if (text_or_empty(m->device)[0] && text_or_empty(m->uuid)[0])
		st = tw_cat_query(&q, db, err, /* trace_once_by_content */
		        "SELECT trace_id, content FROM trace WHERE project_id=? AND device=? AND"
		        " uuid=? AND content=? AND idempotency_key='' AND device<>'' AND uuid<>''",
		        "tttt", up->caller->project_id, m->device, m->uuid, up->content);
	else
		return TW_OK;
	return st == TW_OK ? known_before(&q, up->content, up->id, &up->known, err) : st;
}

static enum tw_status insert_trace(sqlite3 *db, const struct tw_cat_arrival *up, uint64_t bytes,
        int64_t now, struct tw_err *err)
{
	const struct tw_trace_meta *m = up->meta;

	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO trace(project_id,trace_id,key_id,idempotency_key,content,state,"
	        "created_ms,upload_bytes,app,version_name,version_code,build_id,mapping_id,device,"
	        "os,abi,process,scenario,session_id,uuid,labels,pid,started_ms)"
	        " VALUES(?,?,?,?,?,0,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	        "tttttiitttttttttttttii", up->caller->project_id, up->id, up->caller->key_id,
	        up->key, up->content, now, (int64_t)bytes, m->app, m->version_name, m->version_code,
	        m->build_id, m->mapping_id, m->device, m->os, m->abi, m->process, m->scenario,
	        m->session_id, m->uuid, m->labels, (int64_t)m->pid, m->started_ms);
}

static enum tw_status insert_parts(sqlite3 *db, const struct tw_cat_arrival *up, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < up->n_parts; i++) {
		const struct tw_part *p = &up->parts[i];

		st = tw_cat_exec(db, NULL, err, "INSERT INTO part VALUES(?,?,?,?,?,?)", "ttttti",
		        up->caller->project_id, up->id, p->part, p->sha256, p->format,
		        (int64_t)p->bytes);
	}
	return st;
}

static enum tw_status note_build(sqlite3 *db, const char *project_id, const struct tw_trace_meta *m,
        int64_t now, struct tw_err *err)
{
	if (!text_or_empty(m->build_id)[0])
		return TW_OK;
	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO build(project_id,build_id,created_ms,traces,app,version_name)"
	        " VALUES(?,?,?,1,?,?) ON CONFLICT DO UPDATE SET traces=traces+1, app=excluded.app,"
	        " version_name=excluded.version_name",
	        "ttitt", project_id, m->build_id, now, m->app, m->version_name);
}

static enum tw_status insert_all(sqlite3 *db, const struct tw_cat_arrival *up, struct tw_err *err)
{
	int64_t now = tw_cat_now_ms();
	uint64_t bytes = 0;
	enum tw_status st;

	for (size_t i = 0; i < up->n_parts; i++)
		bytes += up->parts[i].bytes;
	st = insert_trace(db, up, bytes, now, err);
	if (st == TW_OK)
		st = insert_parts(db, up, err);
	if (st == TW_OK)
		st = note_build(db, up->caller->project_id, up->meta, now, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO job(project_id,trace_id,due_ms,queued_ms) VALUES(?,?,?,?)",
		        "ttii", up->caller->project_id, up->id, now, now);
	return st;
}

/* --- together --- */

static enum tw_status arrive(sqlite3 *db, struct tw_cat_arrival *up, struct tw_err *err)
{
	enum tw_status st = find_same(db, up, err);

	if (st == TW_OK && !up->known)
		st = tw_ulid_new(tw_cat_now_ms(), up->id, err);
	if (st == TW_OK && !up->known)
		st = insert_all(db, up, err);
	return st;
}

static enum tw_status run_sql(sqlite3 *db, const char *sql, struct tw_err *err)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? TW_OK : tw_cat_fail(db, err);
}

/* An upload that is refused leaves nothing behind and the others alone.  Gives what ends the whole
 * transaction: some errors make SQLite roll all of it back. */
static enum tw_status arrive_apart(sqlite3 *db, struct tw_cat_arrival *up, struct tw_err *err)
{
	enum tw_status st = run_sql(db, "SAVEPOINT arrival", err);

	if (st != TW_OK)
		return st;
	up->status = arrive(db, up, &up->err);
	if (sqlite3_get_autocommit(db)) {
		*err = up->err;
		return up->status == TW_OK ? TW_IO : up->status;
	}
	if (up->status != TW_OK)
		st = run_sql(db, "ROLLBACK TO arrival", err);
	return st == TW_OK ? run_sql(db, "RELEASE arrival", err) : st;
}

/* Sets the status of each. */
static void write_all(struct tw_catalogue *c, struct tw_cat_arrival *all)
{
	struct tw_err err = {0};
	enum tw_status st = tw_cat_begin(c, &err);
	bool began = st == TW_OK;

	for (struct tw_cat_arrival *up = all; up && st == TW_OK; up = up->next)
		st = arrive_apart(c->writer, up, &err);
	if (began)
		st = tw_cat_end(c, st, &err);
	if (st == TW_OK) {
		tw_crash_point("row_committed");
		return;
	}
	for (struct tw_cat_arrival *up = all; up; up = up->next) {
		up->status = st;
		up->err = err;
	}
}

/* Those that wait, the longest waiting first.  Called with the queue's lock held. */
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

/* Returns when the upload has its row, or none. */
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
		while (all) { /* one that is done may be gone as soon as the lock is free */
			all->done = true;
			all = all->next;
		}
		(void)pthread_cond_broadcast(&q->changed);
	}
	(void)pthread_mutex_unlock(&q->lock);
}

enum tw_status tw_catalogue_trace_add(struct tw_catalogue *c, const struct tw_caller *caller,
        const char *idempotency_key, const struct tw_trace_meta *meta, const struct tw_part *parts,
        size_t n_parts, char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct tw_cat_arrival up = {.caller = caller,
	        .key = text_or_empty(idempotency_key),
	        .meta = meta,
	        .parts = parts,
	        .n_parts = n_parts};
	struct tw_buf content;

	if (n_parts == 0 || n_parts > TW_CATALOGUE_PARTS)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "a trace has 1 to %d parts",
		        TW_CATALOGUE_PARTS);
	tw_buf_init(&content, 4096);
	if (content_of(parts, n_parts, &content) != TW_OK) {
		tw_buf_done(&content);
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	}
	up.content = (const char *)content.data;
	queue_up(c, &up);
	tw_buf_done(&content);
	if (up.status != TW_OK) {
		if (err)
			*err = up.err;
		return up.status;
	}
	memcpy(ret_id, up.id, TW_ID_BYTES);
	*ret_new = !up.known;
	return TW_OK;
}
