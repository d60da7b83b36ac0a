/*
 * catalogue_mapping.c - uploaded mappings that are not in use: queued, being compiled, failed.
 *
 * A build has at most one of each kind; the last upload wins, and the one it replaces is deleted
 * with its job.  Claims are in catalogue_job.c.
 */
#include "server/base/age_clock.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_job.h"

#include <stdio.h>
#include <string.h>

#include "server/base/ulid.h"

enum { QUEUED_MOST = 1000 }; /* per project */

static const struct tw_mapping_upload *upload_of(
        const struct tw_build_row *b, enum tw_mapping_kind kind)
{
	return kind == TW_MAPPING_RETRACE ? &b->retrace.upload : &b->upload;
}

static const char *image_of(const struct tw_build_row *b, enum tw_mapping_kind kind)
{
	return kind == TW_MAPPING_RETRACE ? b->retrace.sha256 : b->map_sha256;
}

static const char *source_of(const struct tw_build_row *b, enum tw_mapping_kind kind)
{
	return kind == TW_MAPPING_RETRACE ? b->retrace.source_sha256 : b->source_sha256;
}

static bool is_pending(const struct tw_mapping_upload *u)
{
	return u->state == TW_MAPPING_QUEUED || u->state == TW_MAPPING_COMPILING;
}

struct add {
	const struct tw_mapping_sent *sent;
	struct tw_arena *arena;
	struct tw_build_row build; /* current row, if found */
	bool found, queued;
	const char *dropped; /* the replaced upload, "" none */
	const char *job_id;
	struct tw_blob_list unused;
};

static enum tw_status drop_earlier(struct tw_db *db, const struct add *a, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* mapping_job_by_build */
	        "DELETE FROM mapping_job WHERE project_id=? AND build_id=? AND kind=?", "tti",
	        a->sent->project_id, a->sent->build_id, (int64_t)a->sent->kind);
}

/* Not counting the upload that this one replaces. */
static enum tw_status has_space(
        struct tw_db *db, const struct tw_mapping_sent *sent, struct tw_err *err)
{
	struct tw_cat_query q;
	unsigned n = 0;
	uint64_t bytes = 0;
	enum tw_status st = tw_cat_query(&q, db, err, /* the limit of mapping_job_by_project */
	        "SELECT bytes FROM mapping_job WHERE claimed=0 AND project_id=?"
	        " AND NOT (build_id=? AND kind=?)",
	        "tti", sent->project_id, sent->build_id, (int64_t)sent->kind);

	for (; tw_cat_row(&q); n++)
		bytes += (uint64_t)tw_cat_int(&q, 0);
	st = tw_cat_close(&q, err);
	if (st == TW_OK && (n >= QUEUED_MOST || bytes + sent->bytes > sent->waiting_bytes_most))
		st = tw_fail(err, TW_BUSY,
		        "%u mappings of this project (%llu bytes) wait to be compiled; retry later",
		        n, (unsigned long long)bytes);
	return st;
}

enum tw_status tw_catalogue_mapping_has_space(
        struct tw_catalogue *c, const struct tw_mapping_sent *sent, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st;

	tw_catalogue_shorten_timeout(true); /* clients wait for this before they send a body */
	st = tw_cat_reader(c, &db, err);
	if (st == TW_OK) {
		st = has_space(db, sent, err);
		tw_cat_done(c, db);
	}
	tw_catalogue_shorten_timeout(false);
	return st;
}

static enum tw_status insert(struct tw_db *db, struct add *a, struct tw_err *err)
{
	const struct tw_mapping_sent *s = a->sent;
	const int64_t now = tw_wait_ms();
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "INSERT INTO build(project_id,build_id,created_ms) VALUES(?,?,?)"
	        " ON CONFLICT DO NOTHING",
	        "tti", s->project_id, s->build_id, now);

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO mapping_job(project_id,job_id,build_id,kind,source_sha256,"
		        "may_replace,due_ms,queued_ms,bytes) VALUES(?,?,?,?,?,?," TW_CAT_BY_NOW(
		                "?7") ",?7,?8)",
		        "tttitiii", s->project_id, a->job_id, s->build_id, (int64_t)s->kind,
		        s->source_sha256, (int64_t)s->may_replace, now, (int64_t)s->bytes);
	a->queued = st == TW_OK;
	return st;
}

static bool is_in_use(const struct add *a)
{
	const struct tw_mapping_sent *s = a->sent;

	return *s->known_image && strcmp(image_of(&a->build, s->kind), s->known_image) == 0 &&
	       strcmp(source_of(&a->build, s->kind), s->source_sha256) == 0;
}

/* Compares the upload with the mapping in use and the pending one, which it may replace. *ret_done:
 * nothing to queue. */
static enum tw_status compare(struct tw_db *db, struct add *a, bool *ret_done, struct tw_err *err)
{
	const struct tw_mapping_sent *s = a->sent;
	const struct tw_mapping_upload *there = upload_of(&a->build, s->kind);
	const bool pending = is_pending(there);
	enum tw_status st = TW_OK;

	if (pending) {
		a->dropped = "";
		st = tw_cat_get_row(db, &tw_text_fields, a->arena, &a->dropped, NULL,
		        err, /* primary key */
		        "SELECT source_sha256 FROM mapping_job WHERE project_id=? AND job_id=?",
		        "tt", s->project_id, there->job_id);
	}
	if (st != TW_OK)
		return st;
	if (is_in_use(a)) {
		*ret_done = true;
		a->job_id = "";
		if (!pending || s->may_replace)
			return drop_earlier(db, a, err);
		a->dropped = "";
		return TW_OK;
	}
	if (!pending)
		return TW_OK;
	if (strcmp(a->dropped, s->source_sha256) == 0) { /* it is being compiled already */
		*ret_done = true;
		a->job_id = there->job_id;
		a->dropped = "";
		return s->may_replace ? tw_cat_exec(db, NULL, err, /* primary key */
		                                "UPDATE mapping_job SET may_replace=1 WHERE"
		                                " project_id=? AND job_id=?",
		                                "tt", s->project_id, there->job_id)
		                      : TW_OK;
	}
	return s->may_replace ? TW_OK
	                      : tw_fail(err, TW_DENIED,
	                                "another mapping of build %s is being compiled: replacing "
	                                "it requires a key of scope write",
	                                s->build_id);
}

static enum tw_status add(struct tw_db *db, struct add *a, struct tw_err *err)
{
	const struct tw_mapping_sent *s = a->sent;
	bool done = false;
	enum tw_status st = tw_cat_lock(db, TW_SUBJECT_CONTENT, s->source_sha256, false, err);

	if (st == TW_OK)
		st = tw_cat_build_get(
		        db, s->project_id, s->build_id, a->arena, &a->build, &a->found, err);

	if (st == TW_OK && a->found)
		st = compare(db, a, &done, err);
	if (st == TW_OK && !done && a->found)
		st = drop_earlier(db, a, err);
	if (st == TW_OK && !done)
		st = has_space(db, s, err);
	if (st == TW_OK && !done)
		st = insert(db, a, err);
	if (st == TW_OK)
		st = tw_cat_unused_blobs(
		        db, &a->dropped, 1, a->arena, &a->unused.sha256, &a->unused.n, err);
	return st;
}

enum tw_status tw_catalogue_mapping_add(struct tw_catalogue *c, const struct tw_mapping_sent *sent,
        struct tw_arena *arena, char ret_id[TW_ID_BYTES], struct tw_blob_list *ret_unused,
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	char id[TW_ID_BYTES];
	struct add a = {.sent = sent, .arena = arena, .dropped = "", .job_id = id};
	const struct tw_change change = {"mapping.set", sent->project_id, sent->build_id,
	        .facts = {{"kind", tw_mapping_kind_words[sent->kind]}}};
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_BUILD, sent->build_id, &w, err);

	if (st != TW_OK)
		return st;
	tw_ulid_new(tw_unix_ms(), id);
	st = add(w, &a, err);
	st = a.queued ? tw_cat_end_audited(c, w, st, &change, err) : tw_cat_end(c, w, st, err);
	if (st != TW_OK)
		return st;
	(void)snprintf(ret_id, TW_ID_BYTES, "%s", a.job_id);
	*ret_unused = a.unused;
	return TW_OK;
}

enum tw_status tw_catalogue_mapping_expire(
        struct tw_catalogue *c, int64_t before_ms, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_NONE, ""},
	        err, /* mapping_job_by_project */
	        "DELETE FROM mapping_job WHERE claimed=2 AND queued_ms<?", "i", before_ms);
}

static const struct tw_fields sent_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_mapping_sent, build_id, "build_id", NULL),
                TW_FIELD(struct tw_mapping_sent, kind, "kind", NULL),
                TW_FIELD(struct tw_mapping_sent, source_sha256, "source_sha256", NULL),
                TW_FIELD(struct tw_mapping_sent, bytes, "bytes", NULL),
                TW_FIELD(struct tw_mapping_sent, may_replace, "may_replace", NULL));

enum tw_status tw_catalogue_mapping_get(struct tw_catalogue *c, const struct tw_job_row *job,
        struct tw_arena *a, struct tw_mapping_sent *ret, struct tw_err *err)
{
	enum tw_status st = tw_cat_list(c,
	        TW_CAT_ONE(a, &sent_fields, ret, "the upload of the mapping was deleted"), err,
	        /* primary key */
	        "SELECT {columns} FROM mapping_job WHERE project_id=? AND job_id=?", "tt",
	        job->project_id, job->trace_id);

	ret->project_id = job->project_id;
	ret->known_image = "";
	return st;
}

/* By the row's current state: a key with the permission may have sent the same content again. */
static enum tw_status may_replace(struct tw_db *db, const struct tw_job_row *job,
        const struct tw_mapping_sent *sent, const struct tw_build_row *row, struct tw_arena *a,
        struct tw_err *err)
{
	struct tw_build_row there;
	int64_t may = 0;
	bool found = false;
	const char *image;
	enum tw_status st = tw_cat_get_int(db, &may, err, /* primary key */
	        "SELECT may_replace FROM mapping_job WHERE project_id=? AND job_id=?", "tt",
	        job->project_id, job->trace_id);

	if (st != TW_OK || may)
		return st;
	st = tw_cat_build_get(db, sent->project_id, sent->build_id, a, &there, &found, err);
	if (st != TW_OK || !found)
		return st;
	image = image_of(&there, sent->kind);
	if (!*image || strcmp(image, image_of(row, sent->kind)) == 0)
		return TW_OK;
	return tw_fail(err, TW_DENIED,
	        "build %s has another mapping already: replacing it requires a key of scope write",
	        sent->build_id);
}

enum tw_status tw_catalogue_mapping_done(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_mapping_sent *sent, const struct tw_build_row *row, struct tw_arena *a,
        struct tw_blob_list *ret_unused, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_blob_list unused = {NULL, 0};
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_BUILD, sent->build_id, &w, err);

	if (st != TW_OK)
		return st;
	st = may_replace(w, job, sent, row, a, err);
	if (st == TW_OK)
		st = tw_cat_drop_job(w, job, err);
	if (st == TW_OK)
		st = tw_cat_build_put(w, sent, row, a, &unused, err);
	st = tw_cat_end(c, w, st, err);
	if (st == TW_OK)
		*ret_unused = unused;
	if (st != TW_DENIED)
		tw_fair_end(&c->turns[TW_QUEUE_MAPPINGS].fair, job->trace_id);
	return st;
}

enum tw_status tw_catalogue_mapping_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_mapping_sent *sent, const struct tw_err *why, struct tw_arena *a,
        struct tw_blob_list *ret_unused, struct tw_err *err)
{
	struct tw_db *w = NULL;
	const int64_t offset = why->offset == TW_NO_OFFSET ? -1 : (int64_t)why->offset;
	struct tw_blob_list unused = {NULL, 0};
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_BUILD, sent->build_id, &w, err);

	tw_fair_end(&c->turns[TW_QUEUE_MAPPINGS].fair, job->trace_id);
	if (st != TW_OK)
		return st;
	st = tw_cat_exec(w, &changed, err, /* primary key */
	        "UPDATE mapping_job SET claimed=2, owner='', source_sha256='', error_status=?,"
	        " error_message=?, error_offset=? WHERE project_id=? AND job_id=? AND claimed=1"
	        " AND owner=? AND attempts=?",
	        "ttittti", tw_status_name(why->code), why->msg, offset, job->project_id,
	        job->trace_id, job->owner, (int64_t)job->attempts);
	if (st == TW_OK && !changed)
		st = tw_cat_drop_job(w, job, err); /* returns why nothing changed */
	if (st == TW_OK)
		st = tw_cat_unused_blobs(
		        w, &sent->source_sha256, 1, a, &unused.sha256, &unused.n, err);
	st = tw_cat_end(c, w, st, err);
	if (st == TW_OK)
		*ret_unused = unused;
	return st;
}
