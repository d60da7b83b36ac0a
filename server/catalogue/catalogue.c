/* catalogue.c - opening, connections and transactions. */
#include "decoder/base/order.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_tables.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/small_file.h"
#include "server/catalogue/traces/catalogue_job.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/base/text/json.h"
#include "server/base/thread/cond.h"
#include "server/catalogue/catalogue.h"
#include "server/db/catalogue_postgres.h"
#include "server/db/catalogue_sqlite.h"

enum { FREE_WAIT_S = 10, FREE_SHORT_WAIT_S = 1 };

static enum tw_status open_writer(struct tw_catalogue *c, bool may_migrate, struct tw_err *err)
{
	struct tw_db **db = &c->writers[0].db;
	bool same = false;
	int reserved = 0;
	enum tw_status st;

	if (tw_db_is_postgres(c->path)) {
		st = tw_db_postgres_open(c->path, db, err);
		if (st == TW_OK)
			st = tw_postgres_upgrade(
			        *db, tw_catalogue_postgres_schema, may_migrate, &same, err);
	} else {
		st = tw_db_sqlite_open(c->path, TW_DB_CREATE, db, &reserved, err);
		if (st == TW_OK)
			st = tw_cat_upgrade(c, tw_catalogue_schema, reserved, may_migrate, err);
	}
	return st == TW_OK && !same ? tw_cat_check_columns(*db, err) : st;
}

static enum tw_status open_as(const char *path, bool serves, bool may_migrate,
        struct tw_catalogue **ret, struct tw_err *err)
{
	struct tw_catalogue *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	c->serve_lock = -1;
	tw_cat_writers_init(c);
	(void)pthread_mutex_init(&c->pool_lock, NULL);
	(void)pthread_mutex_init(&c->locker.lock, NULL);
	tw_cond_init(&c->locker.changed);
	c->locker.last = &c->locker.first;
	(void)pthread_mutex_init(&c->writes.lock, NULL);
	(void)pthread_mutex_init(&c->arrivals.lock, NULL);
	(void)pthread_cond_init(&c->arrivals.changed, NULL);
	(void)pthread_cond_init(&c->given_back, NULL);
	c->arrivals.last = &c->arrivals.first;
	for (int i = 0; i < TW_QUEUES; i++)
		tw_fair_init(&c->turns[i].fair);
	for (int i = 0; i < TW_QUEUES; i++)
		(void)pthread_mutex_init(&c->turns[i].lock, NULL);
	c->path = tw_mem_alloc(strlen(path) + 1, 1);
	if (!c->path) {
		tw_catalogue_close(c);
		return tw_oom(err);
	}
	memcpy(c->path, path, strlen(path) + 1);
	st = serves && !tw_db_is_postgres(path) ? tw_cat_hold_folder(c, err) : TW_OK;
	if (st == TW_OK)
		st = open_writer(c, may_migrate, err);
	if (st == TW_OK)
		*ret = c;
	else
		tw_catalogue_close(c);
	return st;
}

enum tw_status tw_catalogue_open(const char *path, struct tw_catalogue **ret, struct tw_err *err)
{
	return open_as(path, false, true, ret, err);
}

enum tw_status tw_catalogue_open_to_serve(
        const char *path, struct tw_catalogue **ret, struct tw_err *err)
{
	return open_as(path, true, true, ret, err);
}

enum tw_status tw_catalogue_open_current(
        const char *path, struct tw_catalogue **ret, struct tw_err *err)
{
	return open_as(path, false, false, ret, err);
}

struct tw_catalogue *tw_catalogue_close(struct tw_catalogue *c)
{
	if (!c)
		return NULL;
	for (unsigned i = 0; i < c->n_idle; i++)
		tw_db_close(c->idle[i]);
	tw_cat_writers_close(c);
	tw_db_close(c->renewer);
	tw_db_close(c->locker.db);
	if (c->serve_lock >= 0)
		(void)close(c->serve_lock);
	(void)pthread_mutex_destroy(&c->locker.lock);
	(void)pthread_cond_destroy(&c->locker.changed);
	(void)pthread_mutex_destroy(&c->writes.lock);
	(void)pthread_mutex_destroy(&c->pool_lock);
	(void)pthread_mutex_destroy(&c->arrivals.lock);
	(void)pthread_cond_destroy(&c->arrivals.changed);
	(void)pthread_cond_destroy(&c->given_back);
	for (int i = 0; i < TW_QUEUES; i++)
		tw_fair_done(&c->turns[i].fair);
	for (int i = 0; i < TW_QUEUES; i++)
		(void)pthread_mutex_destroy(&c->turns[i].lock);
	tw_mem_free(c->path);
	tw_mem_free(c);
	return NULL;
}

void tw_catalogue_stop_record(struct tw_catalogue *c)
{
	c->unrecorded = true;
}

enum tw_status tw_cat_reader_new(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err)
{
	int reserved;

	if (tw_db_is_postgres(c->path))
		return tw_db_postgres_open(c->path, ret, err);
	/* read-write, because the last reader of a WAL may have to recover it; only SELECTs run */
	return tw_db_sqlite_open(c->path, TW_DB_WRITE, ret, &reserved, err);
}

/* A database server has a limited number of connections, which it shares.  Call with pool_lock
 * held. */
static enum tw_status await_free(struct tw_catalogue *c, struct tw_err *err)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += tw_postgres_timeout_is_short() ? FREE_SHORT_WAIT_S : FREE_WAIT_S;
	while (!tw_cat_is_sqlite(c) && c->n_out >= TW_CATALOGUE_OUT)
		if (pthread_cond_timedwait(&c->given_back, &c->pool_lock, &until) == ETIMEDOUT)
			return tw_fail(err, TW_BUSY, "catalogue: all %d connections are in use",
			        TW_CATALOGUE_OUT);
	return TW_OK;
}

static void give_back(struct tw_catalogue *c)
{
	(void)pthread_mutex_lock(&c->pool_lock);
	c->n_out--;
	(void)pthread_cond_signal(&c->given_back);
	(void)pthread_mutex_unlock(&c->pool_lock);
}

enum tw_status tw_cat_reader(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err)
{
	struct tw_db *db = NULL;
	enum tw_status st;

	(void)pthread_mutex_lock(&c->pool_lock);
	*ret = NULL;
	st = await_free(c, err);
	if (st == TW_OK && c->n_idle)
		db = c->idle[--c->n_idle];
	c->n_out += st == TW_OK;
	(void)pthread_mutex_unlock(&c->pool_lock);
	if (st != TW_OK)
		return st;
	if (db)
		*ret = db;
	else
		st = tw_cat_reader_new(c, ret, err);
	if (st != TW_OK) {
		*ret = NULL;
		give_back(c);
	}
	return st;
}

const char *tw_catalogue_engine(const struct tw_catalogue *c)
{
	return c->writers[0].db->engine->name;
}

bool tw_cat_is_sqlite(const struct tw_catalogue *c)
{
	return !tw_db_is_postgres(c->path);
}

bool tw_catalogue_is_shared(const struct tw_catalogue *c)
{
	return c->shared;
}

/* A connection whose transaction cannot be ended is closed: its next user would read an old
 * snapshot. */
void tw_cat_done(struct tw_catalogue *c, struct tw_db *db)
{
	bool ended;

	if (!db)
		return;
	(void)tw_cat_undo(db, NULL);
	ended = !db->engine->in_transaction(db);
	(void)pthread_mutex_lock(&c->pool_lock);
	if (ended && c->n_idle < TW_CATALOGUE_READERS) {
		c->idle[c->n_idle++] = db;
		db = NULL;
	}
	(void)pthread_mutex_unlock(&c->pool_lock);
	tw_db_close(db);
	give_back(c);
}

enum tw_status tw_cat_snapshot(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err)
{
	enum tw_status st = tw_cat_reader(c, ret, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(*ret, NULL, err, "BEGIN", "");
	if (st != TW_OK)
		tw_cat_done(c, *ret);
	return st;
}

/* The rows read are valid whatever the result. */
void tw_cat_snapshot_done(struct tw_catalogue *c, struct tw_db *db)
{
	(void)tw_cat_exec(db, NULL, NULL, "COMMIT", "");
	tw_cat_done(c, db);
}

static enum tw_status referred(struct tw_db *db, const char *sha256, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* part_by_content, build_by_* */
	        "SELECT 1 FROM part p WHERE sha256=?1 AND NOT EXISTS (SELECT 1 FROM small_file f"
	        " WHERE f.trace_id=p.trace_id AND f.part=p.part) UNION ALL"
	        " SELECT 1 FROM build WHERE map_sha256=?1 AND map_sha256<>'' UNION ALL"
	        " SELECT 1 FROM build WHERE source_sha256=?1 AND source_sha256<>'' UNION ALL"
	        " SELECT 1 FROM build WHERE retrace_sha256=?1 AND retrace_sha256<>''"
	        " UNION ALL SELECT 1 FROM build WHERE retrace_source_sha256=?1"
	        " AND retrace_source_sha256<>'' UNION ALL"
	        " SELECT 1 FROM mapping_job WHERE source_sha256=?1 AND source_sha256<>''"
	        " LIMIT 1",
	        "t", sha256);

	if (st == TW_OK)
		*ret = n != 0;
	return st;
}

/* Two transactions that each delete one of the last two rows of a content are serialized, so that
 * the second finds it unused.  Locks are taken in one order to prevent deadlocks. */
enum tw_status tw_cat_unused_blobs(struct tw_db *db, const char *const *sha256, size_t n,
        struct tw_arena *a, const char ***ret, size_t *ret_n, struct tw_err *err)
{
	const char **unused = tw_arena_alloc(a, n ? n : 1, sizeof *unused);
	const char **all = tw_arena_alloc(a, n ? n : 1, sizeof *all);
	size_t n_unused = 0;

	if (!unused || !all)
		return tw_oom(err);
	if (n)
		memcpy(all, sha256, n * sizeof *all);
	TW_SORT(all, n, tw_by_text);
	for (size_t i = 0; i < n; i++) {
		bool used = false;
		enum tw_status st = TW_OK;

		if (i > 0 && strcmp(all[i], all[i - 1]) == 0)
			continue;
		if (all[i][0])
			st = tw_cat_lock(db, TW_SUBJECT_CONTENT, all[i], true, err);
		if (st == TW_OK && all[i][0])
			st = referred(db, all[i], &used, err);
		if (st == TW_OK && all[i][0] && !used) {
			unused[n_unused++] = all[i];
			st = tw_cat_blob_drop(db, all[i], err);
		}
		if (st != TW_OK)
			return st;
	}
	*ret = unused;
	*ret_n = n_unused;
	return TW_OK;
}

enum tw_status tw_catalogue_has_blob(
        struct tw_catalogue *c, const char *sha256, bool *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = referred(db, sha256, ret, err);
	tw_cat_done(c, db);
	return st;
}

static enum tw_status is_there(struct tw_catalogue *c, const char *sql, const char *trace_id,
        bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, sql, "t", trace_id); /* trace_by_id */

	if (st == TW_OK)
		*ret = n != 0;
	return st;
}

enum tw_status tw_catalogue_has_trace(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err)
{
	return is_there(c, "SELECT 1 FROM trace WHERE trace_id=?", trace_id, ret, err);
}

enum tw_status tw_catalogue_has_decoded(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err)
{
	return is_there(c,
	        "SELECT 1 FROM trace WHERE trace_id=? AND state<>4 AND NOT EXISTS (SELECT 1 FROM"
	        " small_file f WHERE f.trace_id=trace.trace_id AND f.part='" TW_SMALL_DECODED "')",
	        trace_id, ret, err);
}

#define POSITION_OF_EACH                                                                           \
	"SELECT " TW_EITHER("n.key", "n.key-1") " FROM " TW_EITHER("json_each(?1)",                \
	        "json_array_elements_text(CAST(?1 AS json)) WITH ORDINALITY") " n" TW_EITHER("",   \
	        "(value,key)") " WHERE "

static const char *const positions[] = {
        [TW_NAME_BLOB] = POSITION_OF_EACH /* part_by_content, build_by_* */
        "EXISTS (SELECT 1 FROM part WHERE sha256=n.value)"
        " OR EXISTS (SELECT 1 FROM build WHERE map_sha256=n.value AND map_sha256<>'')"
        " OR EXISTS (SELECT 1 FROM build WHERE source_sha256=n.value AND source_sha256<>'')"
        " OR EXISTS (SELECT 1 FROM build WHERE retrace_sha256=n.value AND retrace_sha256<>'')"
        " OR EXISTS (SELECT 1 FROM build WHERE retrace_source_sha256=n.value"
        " AND retrace_source_sha256<>'')"
        " OR EXISTS (SELECT 1 FROM mapping_job WHERE source_sha256=n.value"
        " AND source_sha256<>'')",
        [TW_NAME_DECODED] = POSITION_OF_EACH /* trace_by_id */
        "EXISTS (SELECT 1 FROM trace WHERE trace_id=n.value AND state<>4)",
        [TW_NAME_TRACE] = POSITION_OF_EACH /* trace_by_id */
        "EXISTS (SELECT 1 FROM trace WHERE trace_id=n.value)",
        [TW_NAME_PIECE] = POSITION_OF_EACH /* resumable_piece_by_object */
        "EXISTS (SELECT 1 FROM resumable_piece WHERE object=n.value)",
};

static enum tw_status read_positions(struct tw_catalogue *c, enum tw_name_kind what,
        const char *names, size_t n, bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, positions[what], "t", names);
	while (tw_cat_row(&q)) {
		const int64_t at = tw_cat_int(&q, 0);

		if (at >= 0 && (uint64_t)at < n)
			ret[at] = true;
	}
	st = tw_cat_close_after(&q, st, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_have(struct tw_catalogue *c, enum tw_name_kind what,
        const char *const *names, size_t n, bool *ret, struct tw_err *err)
{
	json_t *list = json_array();
	char *text;
	enum tw_status st;

	memset(ret, 0, n * sizeof *ret);
	for (size_t i = 0; i < n; i++) {
		json_t *name = json_string(names[i]); /* NULL: not UTF-8, so no row has it */

		(void)json_array_append_new(list, name ? name : json_null());
	}
	text = json_array_size(list) == n ? tw_json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
	if (!text)
		return tw_oom(err);
	st = read_positions(c, what, text, n, ret, err);
	free(text);
	return st;
}
