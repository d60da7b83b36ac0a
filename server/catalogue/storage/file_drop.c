#include "server/catalogue/storage/file_drop.h"

#include "server/base/age_clock.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/storage/blob_store.h"

enum { ATTEMPT_MS = 60000 }; /* after which another server may try */

/* The database's clock, if several servers use it; `ms` otherwise. */
#define NOW(ms) TW_EITHER(ms, ms "*0+" TW_CAT_DATABASE_MS)
/* primary key */
#define ADD                                                                                        \
	"INSERT INTO file_drop(key,due_ms,attempts) VALUES(?1," NOW(                               \
	        "?2") ",0) ON CONFLICT(key) DO"                                                    \
	              " UPDATE SET due_ms=excluded.due_ms"

void tw_catalogue_add_drops(struct tw_catalogue *c)
{
	c->adds_drops = true;
}

static enum tw_status add(struct tw_db *w, const char *key, struct tw_err *err)
{
	return w->adds_drops ? tw_cat_exec(w, NULL, err, ADD, "ti", key, tw_wait_ms()) : TW_OK;
}

enum tw_status tw_cat_blob_drop(struct tw_db *w, const char *sha256, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	return tw_blob_key(sha256, key) ? add(w, key, err) : TW_OK;
}

enum tw_status tw_cat_trace_drop(struct tw_db *w, const char *trace_id, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	return tw_trace_key(trace_id, key) ? add(w, key, err) : TW_OK;
}

enum tw_status tw_cat_record_drop(struct tw_db *w, const char *trace_id, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	tw_record_key(trace_id, key);
	return add(w, key, err);
}

enum tw_status tw_cat_build_record_drop(
        struct tw_db *w, const char *project_id, const char *build_id, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	tw_record_build_key(project_id, build_id, key);
	return add(w, key, err);
}

enum tw_status tw_catalogue_file_drop(struct tw_catalogue *c, const char *key, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin_one(c, &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, ADD, "ti", key, tw_wait_ms());
	return tw_cat_end(c, w, st, err);
}

static enum tw_status read_taken(struct tw_cat_query *q, struct tw_arena *a,
        struct tw_file_drop *ret, size_t *ret_n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	size_t n = 0;

	while (st == TW_OK && n < TW_FILE_DROPS && tw_cat_row(q)) {
		ret[n] = (struct tw_file_drop){
		        tw_cat_text(q, 0, a), tw_cat_int(q, 1), (uint32_t)tw_cat_int(q, 2)};
		if (!ret[n++].key)
			st = tw_oom(err);
	}
	*ret_n = st == TW_OK ? n : 0;
	return tw_cat_close_after(q, st, err);
}

enum tw_status tw_catalogue_file_drops_take(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_file_drop **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_file_drop *of = tw_arena_alloc(a, TW_FILE_DROPS, sizeof *of);
	struct tw_cat_query q;
	struct tw_db *w = NULL;
	size_t n = 0;
	enum tw_status st = of ? tw_cat_begin_one(c, &w, err) : tw_oom(err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, w, err, /* file_drop_due */
	        "UPDATE file_drop SET due_ms=" NOW(
	                "?1") "+?2, attempts=attempts+1 FROM (SELECT key AS k"
	                      " FROM file_drop WHERE due_ms<=" NOW(
	                              "?1") " ORDER BY due_ms LIMIT ?3" TW_EITHER("",
	                              " FOR UPDATE SKIP LOCKED") ") taken WHERE key=taken.k"
	                                                         " RETURNING key,due_ms,attempts",
	        "iii", tw_wait_ms(), (int64_t)ATTEMPT_MS, (int64_t)TW_FILE_DROPS);
	if (st == TW_OK)
		st = read_taken(&q, a, of, &n, err);
	st = tw_cat_end(c, w, st, err);
	*ret = of;
	*ret_n = st == TW_OK ? n : 0;
	return st;
}

/* In the order of keys, in which other transactions add them: two that wait for each other would be
 * ended by PostgreSQL. */
enum tw_status tw_catalogue_file_drops_done(
        struct tw_catalogue *c, const struct tw_file_drop *of, size_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_cat_rows rows = {.types = "ti",
	        .sql = "DELETE FROM file_drop WHERE key IN (SELECT key FROM file_drop WHERE"
	               " (key,due_ms) IN (SELECT r.c1,r.c2 FROM {rows}) ORDER BY key" TW_EITHER(
	                       "", " FOR UPDATE") ")"};
	enum tw_status st = tw_cat_begin_one(c, &w, err);

	if (st != TW_OK)
		return st;
	rows.db = w;
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_cat_rows_add(&rows, err, of[i].key, of[i].due_ms);
	st = tw_cat_rows_end(&rows, st, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_file_drop_later(
        struct tw_catalogue *c, const struct tw_file_drop *of, int64_t wait_ms, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin_one(c, &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* primary key */
		        "UPDATE file_drop SET due_ms=" NOW("?1") "+?2 WHERE key=?3 AND due_ms=?4",
		        "iiti", tw_wait_ms(), wait_ms, of->key, of->due_ms);
	return tw_cat_end(c, w, st, err);
}
