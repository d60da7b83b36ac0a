/*
 * catalogue_anr_rollup.c - adds reports to the rollups of their day, and deletes invalid rollups.
 *
 * Only named and grouped reports are added, as long as no pending mapping or rules will change
 * them. A report's row has the generation of its day in which it was counted, so that queries read
 * uncounted reports in addition to the rollups.
 *
 * A list of all groups would read a row per group and day.  Once a day has ended, its rows over all
 * dimensions are also packed into one: for each name, its length and bytes, then those of the sums.
 * A change to the day deletes the pack; it is made again after PACK_AFTER_MS, so that reports that
 * arrive late one by one do not rewrite it each time.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "server/catalogue/anr/catalogue_anr_rollup_int.h"
#include "server/stats/anr_rollup.h"

enum {
	COUNTED_AT_ONCE = 256,
	DROPPED_AT_ONCE = 2000,
	BEING_COUNTED = -1,
	SUM_BYTES = 8 << 20,
	PACK_BYTES = 4 << 20, /* a writer must not be held for long */
	PACK_AFTER_MS = 600000,
	DIMS = 6
};
#define FOLD_BYTES ((size_t)256 << 20)

enum tw_status tw_cat_anr_rollup_waits(
        struct tw_db *db, const char *project_id, int64_t day, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "INSERT INTO anr_day(project_id,day) VALUES(?,?) ON CONFLICT (project_id,day)"
	        " DO UPDATE SET waiting=1",
	        "ti", project_id, day);
}

enum tw_status tw_cat_anr_rollup_undo(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* primary keys */
	        "UPDATE anr_day SET generation=generation+1, waiting=1 WHERE project_id=?1 AND"
	        " day=(SELECT day FROM anr_trace WHERE project_id=?1 AND trace_id=?2) AND"
	        " generation=(SELECT rollup_generation FROM anr_trace WHERE project_id=?1 AND"
	        " trace_id=?2)",
	        "tt", project_id, trace_id);
}

/* --- counting --- */

struct dims {
	const char *texts[DIMS]; /* app, version_name, build_id, scenario, device_class, os */
};
struct sum { /* a row of anr_rollup being computed; first in a struct that rollups refer to */
	enum tw_anr_rollup_what what;
	bool fine;
	struct dims dims;
};
struct counting {
	struct tw_db *db;
	const char *project_id;
	int64_t day, generation, rules, now_ms;
	enum tw_anr_rollup_what what; /* the kind being read */
	struct tw_anr_rollups sums;   /* their values point to struct sum, in list order */
	struct sum **of;
	uint32_t cap;
	bool outdated; /* rollups of earlier generations may be left */
};

/* Sets its dimensions; false: out of memory. */
static bool begin_sum(struct counting *c, struct tw_anr_rollup *t, const char *name,
        const struct dims *d, bool fine)
{
	struct sum *s = tw_arena_alloc(c->sums.arena, 1, sizeof *s);
	bool fits = s != NULL;

	if (!fits)
		return false;
	*s = (struct sum){c->what, fine, {{"", "", "", "", "", ""}}};
	for (int i = 0; fits && fine && i < DIMS; i++) {
		s->dims.texts[i] = tw_arena_str(c->sums.arena, tw_str_of(d->texts[i]));
		fits = s->dims.texts[i] != NULL;
	}
	t->name = tw_arena_str(c->sums.arena, tw_str_of(name));
	c->of[c->sums.n - 1] = s;
	return fits && t->name;
}

/* The rollup of that name and these dimensions; stored lengths keep their texts distinct. */
static struct tw_anr_rollup *sum_at(
        struct counting *c, const char *name, const struct tw_anr_rollup_report *r, bool fine)
{
	const struct dims d = {
	        {r->app, r->version_name, r->build_id, r->scenario, r->device_class, r->os}};
	const size_t before = c->sums.n;
	struct tw_anr_rollup *t = NULL;
	struct tw_buf key;

	tw_buf_init(&key, 1 << 20);
	tw_buf_printf(&key, "%d %d %zu %s", c->what, fine, strlen(name), name);
	for (int i = 0; fine && i < DIMS; i++)
		tw_buf_printf(&key, "%zu %s", strlen(d.texts[i]), d.texts[i]);
	if (TW_GROW(c->sums.arena, c->of, c->sums.n, c->cap) && tw_buf_status(&key) == TW_OK)
		t = tw_anr_rollups_at(&c->sums, tw_buf_str(&key));
	tw_buf_done(&key);
	if (t && c->sums.n > before && !begin_sum(c, t, name, &d, fine))
		return NULL;
	return t;
}

static bool count(void *arg, const struct tw_anr_rollup_report *of, const char *name,
        const struct tw_anr_rollup_one *one)
{
	struct counting *c = arg;

	for (int fine = 0; fine < 2; fine++) {
		struct tw_anr_rollup *t = sum_at(c, name, of, fine != 0);

		if (!t || !tw_anr_rollup_add(c->sums.arena, t, one))
			return false;
	}
	return true;
}

static enum tw_status pick(struct counting *c, int *ret_n, struct tw_err *err)
{
	return tw_cat_exec(c->db, ret_n, err, /* anr_trace_by_rollup, primary key */
	        "UPDATE anr_trace SET rollup_generation=?6 WHERE " TW_CAT_SOME(
	                "project_id,trace_id",
	                "anr_trace WHERE project_id=?1 AND day=?2 AND rollup_generation<?3 AND"
	                " keyed<>0 AND (anr=0 OR keyed=?4) LIMIT ?5"),
	        "tiiiii", c->project_id, c->day, c->generation, c->rules, (int64_t)COUNTED_AT_ONCE,
	        (int64_t)BEING_COUNTED);
}

static enum tw_status read_picked(struct counting *c, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, c->db, err, /* anr_trace_by_rollup */
	        "SELECT" TW_ANR_ROLLUP_COLUMNS
	        ", h.key FROM anr_trace h WHERE h.project_id=? AND h.day=?"
	        " AND h.rollup_generation=? AND h.anr=1",
	        "tii", c->project_id, c->day, (int64_t)BEING_COUNTED);

	c->what = TW_ANR_ROLLUP_ANRS;
	if (st == TW_OK)
		st = tw_cat_feed_anrs(&q, count, c, err);
	c->what = TW_ANR_ROLLUP_LOCKS;
	if (st == TW_OK)
		st = tw_cat_query(&q, c->db, err, /* anr_trace_by_rollup, primary key */
		        "SELECT" TW_ANR_ROLLUP_LOCK_COLUMNS
		        " FROM anr_trace h CROSS JOIN lock_wait l WHERE"
		        " h.project_id=? AND h.day=? AND h.rollup_generation=? AND "
		        "l.project_id=h.project_id"
		        " AND l.trace_id=h.trace_id ORDER BY h.trace_id, l.seq",
		        "tii", c->project_id, c->day, (int64_t)BEING_COUNTED);
	return st == TW_OK ? tw_cat_feed_locks(&q, count, c, err) : st;
}

/* The key of a rollup, as the columns c1 to c11 of the rows of a statement. */
#define SUM_KEY   "project_id,what,fine,day,name,app,version_name,build_id,scenario,device_class,os"
#define SUM_ROW   "c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11"
#define SUM_TYPES "tiiittttttt"
#define SUM_ARGS(c, i)                                                                             \
	(c)->project_id, (int64_t)(c)->of[i]->what, (int64_t)(c)->of[i]->fine, (c)->day,           \
	        (c)->sums.list[i]->name, (c)->of[i]->dims.texts[0], (c)->of[i]->dims.texts[1],     \
	        (c)->of[i]->dims.texts[2], (c)->of[i]->dims.texts[3], (c)->of[i]->dims.texts[4],   \
	        (c)->of[i]->dims.texts[5]

/* The texts may exceed the limit of PostgreSQL's indexes: there the key is their hashes. */
#define HASHES                                                                                     \
	TW_ANR_ROLLUP_HASH("c5")                                                                   \
	"," TW_ANR_ROLLUP_HASH(                                                                    \
	        "c6||chr(31)||c7||chr(31)||c8||chr(31)||c9||chr(31)||c10||chr(31)||c11")
#define SUM_UNIQUE TW_EITHER(SUM_KEY, "project_id,what,fine,day,name_hash,dims_hash")
#define IS_OF_ROW  "(" SUM_UNIQUE ")=(" TW_EITHER(SUM_ROW, "c1,c2,c3,c4," HASHES) ")"

static enum tw_status add_stored(void *arg, const struct tw_cat_query *q, struct tw_err *err)
{
	struct counting *c = arg;
	const struct tw_str data = tw_cat_blob(q, 1);

	return tw_anr_rollup_merge(c->sums.arena, c->sums.list[tw_cat_int(q, 0)],
	        (const uint8_t *)data.ptr, data.len, err);
}

/* Adds the stored rollups; those of another generation are ignored. */
static enum tw_status add_all_stored(struct counting *c, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = c->db, /* primary key */
	        .types = SUM_TYPES "ii",
	        .sql = "SELECT c13, data FROM {rows} CROSS JOIN anr_rollup WHERE " IS_OF_ROW
	               " AND generation=c12",
	        .take = add_stored,
	        .arg = c};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < c->sums.n; i++)
		st = tw_cat_rows_add(&rows, err, SUM_ARGS(c, i), c->generation, (int64_t)i);
	return tw_cat_rows_end(&rows, st, err);
}

static enum tw_status store_all(struct counting *c, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = c->db,
	        .types = SUM_TYPES "ib",
	        .sql = "INSERT INTO anr_rollup(" SUM_KEY ",generation,data) SELECT " SUM_ROW
	               ",c12,c13 FROM {rows} WHERE 1=1 ON CONFLICT (" SUM_UNIQUE
	               ") DO UPDATE SET generation=excluded.generation, data=excluded.data"};
	struct tw_buf out;
	enum tw_status st = TW_OK;

	tw_buf_init(&out, SUM_BYTES);
	for (size_t i = 0; st == TW_OK && i < c->sums.n; i++) {
		tw_buf_clear(&out);
		tw_anr_rollup_write(c->sums.arena, c->sums.list[i], &out);
		st = tw_buf_status(&out) == TW_OK
		             ? tw_cat_rows_add(&rows, err, SUM_ARGS(c, i), c->generation,
		                       &(struct tw_str){(const char *)out.data, out.len})
		             : tw_oom(err);
	}
	st = tw_cat_rows_end(&rows, st, err);
	tw_buf_done(&out);
	return st;
}

/* Deletes rollups of earlier generations in batches, so that other writers run in between. */
static enum tw_status drop_some(struct tw_db *db, const char *project_id, int64_t day,
        int64_t before, int *ret_n, struct tw_err *err)
{
	return tw_cat_exec(db, ret_n, err, /* primary keys */
	        "DELETE FROM anr_rollup WHERE " TW_CAT_SOME(SUM_KEY,
	                "anr_rollup WHERE project_id=? AND what IN (0,1) AND fine IN (0,1,2) AND"
	                " day=? AND generation<? LIMIT ?"),
	        "tiii", project_id, day, before, (int64_t)DROPPED_AT_ONCE);
}

/* If this is interrupted, the rest is no longer read, and is deleted with the day. */
static enum tw_status drop_outdated(
        struct tw_catalogue *c, const struct counting *k, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = TW_OK;
	int n = DROPPED_AT_ONCE;

	while (st == TW_OK && n == DROPPED_AT_ONCE) {
		st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);
		if (st == TW_OK)
			st = tw_cat_end(c, w,
			        drop_some(w, k->project_id, k->day, k->generation, &n, err), err);
	}
	return st;
}

static enum tw_status end_day(struct counting *c, struct tw_err *err)
{
	int ended = 0;
	enum tw_status st = tw_cat_exec(c->db, NULL, err, /* anr_trace_by_rollup */
	        "UPDATE anr_trace SET rollup_generation=?3 WHERE project_id=?1 AND day=?2 AND "
	        "rollup_generation=?4",
	        "tiii", c->project_id, c->day, c->generation, (int64_t)BEING_COUNTED);

	if (st == TW_OK)
		st = tw_cat_exec(c->db, &ended, err, /* primary key, anr_trace_by_rollup */
		        "UPDATE anr_day SET waiting=0 WHERE project_id=?1 AND day=?2 AND NOT"
		        " EXISTS(SELECT 1 FROM anr_trace h WHERE h.project_id=?1 AND h.day=?2 AND"
		        " h.rollup_generation<?3)",
		        "tii", c->project_id, c->day, c->generation);
	c->outdated = ended && c->generation > 1;
	return st;
}

/* --- packs --- */

/* Call in the transaction that changes rollups of the day. */
static enum tw_status unpack(struct counting *c, struct tw_err *err)
{
	const int64_t ended_ms = (c->day + 1) * TW_DAY_MS;
	const int64_t again_ms = c->now_ms + PACK_AFTER_MS;
	int packed = 0;
	enum tw_status st = tw_cat_exec(c->db, &packed, err, /* primary key */
	        "UPDATE anr_day SET pack_ms=?3 WHERE project_id=?1 AND day=?2 AND pack_ms=0", "tii",
	        c->project_id, c->day, ended_ms > again_ms ? ended_ms : again_ms);

	return st == TW_OK && packed
	               ? tw_cat_exec(c->db, NULL, err, /* primary key */
	                         "DELETE FROM anr_rollup WHERE project_id=? AND what IN (0,1) AND"
	                         " fine=2 AND day=?",
	                         "ti", c->project_id, c->day)
	               : st;
}

static enum tw_status read_to_pack(const struct counting *c, enum tw_anr_rollup_what what,
        struct tw_buf *out, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, c->db, err, /* primary key */
	        "SELECT name, data FROM anr_rollup WHERE project_id=? AND what=? AND fine=0 AND"
	        " day=? AND generation=? AND name<>''",
	        "tiii", c->project_id, (int64_t)what, c->day, c->generation);

	while (st == TW_OK && tw_buf_status(out) == TW_OK && tw_cat_row(&q))
		for (int i = 0; i < 2; i++) {
			const struct tw_str s =
			        i == 0 ? tw_str_of(tw_cat_str(&q, 0)) : tw_cat_blob(&q, 1);

			(void)tw_buf_add_varint(out, s.len);
			(void)tw_buf_add_str(out, s);
		}
	return tw_cat_close_after(&q, st, err);
}

/* Names that are too large together are read one by one. */
static enum tw_status pack(
        const struct counting *c, enum tw_anr_rollup_what what, struct tw_err *err)
{
	struct tw_buf out;
	enum tw_status st;

	tw_buf_init(&out, PACK_BYTES);
	st = read_to_pack(c, what, &out, err);
	if (st == TW_OK && tw_buf_status(&out) == TW_OK)
		st = tw_cat_exec(c->db, NULL, err,
		        "INSERT INTO anr_rollup(" SUM_KEY ",generation,data)"
		        " VALUES(?1,?2,2,?3,'','','','','','','',?4,?5) ON CONFLICT (" SUM_UNIQUE
		        ") DO UPDATE SET generation=excluded.generation, data=excluded.data",
		        "tiiib", c->project_id, (int64_t)what, c->day, c->generation,
		        &(struct tw_str){(const char *)out.data, out.len});
	tw_buf_done(&out);
	return st;
}

static enum tw_status pack_all(struct tw_db *w, void *arg, struct tw_err *err)
{
	struct counting *c = arg;
	int due = 0;
	enum tw_status st = tw_cat_exec(w, &due, err, /* primary key */
	        "UPDATE anr_day SET pack_ms=0 WHERE project_id=? AND day=? AND pack_ms>0", "ti",
	        c->project_id, c->day);

	c->db = w;
	if (st != TW_OK || !due)
		return st;
	st = tw_cat_get_int(w, &c->generation, err, /* primary key */
	        "SELECT generation FROM anr_day WHERE project_id=? AND day=?", "ti", c->project_id,
	        c->day);
	if (st == TW_OK)
		st = pack(c, TW_ANR_ROLLUP_ANRS, err);
	return st == TW_OK ? pack(c, TW_ANR_ROLLUP_LOCKS, err) : st;
}

/* So that it does not delay the days after it.  False: it is still due. */
static bool pack_later(struct tw_catalogue *c, const struct counting *k, int64_t due_ms)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_ANR, ""}, NULL, /* primary key */
	               "UPDATE anr_day SET pack_ms=? WHERE project_id=? AND day=? AND pack_ms>0",
	               "iti", due_ms, k->project_id, k->day) == TW_OK;
}

static enum tw_status pack_some(struct tw_catalogue *c, const struct tw_anr_rollup_due *due,
        struct tw_anr_rollup_done *ret, struct tw_err *err)
{
	struct counting k = {.project_id = due->project_id, .day = -1};
	enum tw_status st = tw_cat_read_int(c, &k.day, err, /* anr_day_unpacked */
	        "SELECT day FROM anr_day WHERE project_id=? AND pack_ms>0 AND pack_ms<=?"
	        " ORDER BY pack_ms LIMIT 1",
	        "ti", due->project_id, due->now_ms);

	ret->day = k.day;
	if (st != TW_OK || k.day < 0)
		return st;
	ret->packed = true;
	st = tw_cat_transact(c, TW_SUBJECT_ANR, pack_all, &k, err);
	ret->more = st == TW_OK || pack_later(c, &k, due->now_ms + PACK_AFTER_MS);
	return st;
}

/* --- a turn --- */

static enum tw_status count_some(struct counting *c, int *ret_n, struct tw_err *err)
{
	enum tw_status st = tw_cat_get_int(c->db, &c->generation, err, /* primary key */
	        "SELECT generation FROM anr_day WHERE project_id=? AND day=?", "ti", c->project_id,
	        c->day);

	if (st == TW_OK)
		st = pick(c, ret_n, err);
	if (st == TW_OK && *ret_n)
		st = read_picked(c, err);
	if (st == TW_OK)
		st = add_all_stored(c, err);
	if (st == TW_OK)
		st = store_all(c, err);
	if (st == TW_OK && *ret_n)
		st = unpack(c, err);
	return st == TW_OK ? end_day(c, err) : st;
}

/* Uncounted reports of a day; d is the day, parameter 2 the rules. */
/* CAST: SQLite would plan again for each value, as it might be that of a partial index. */
#define SETTLED                                                                                    \
	"SELECT 1 FROM anr_trace h WHERE h.project_id=?1 AND h.day=d.day AND "                     \
	"h.rollup_generation<d.generation"                                                         \
	" AND h.keyed<>0 AND (h.anr=0 OR h.keyed=CAST(?2 AS BIGINT))"

/* The first past day with an uncounted report, or any day with many; -1: none. */
static enum tw_status next_day(struct tw_catalogue *c, const struct tw_anr_rollup_due *due,
        int64_t *ret_day, struct tw_err *err)
{
	enum tw_status st;
	int64_t after;

	*ret_day = -1;
	do {
		after = *ret_day;
		*ret_day = -1;
		st = tw_cat_read_int(c, ret_day, err, /* anr_day_waiting, anr_trace_by_rollup */
		        "SELECT d.day FROM anr_day d WHERE d.project_id=?1 AND d.waiting=1 AND"
		        " d.day>?5 AND ((d.day<?3 AND EXISTS(" SETTLED ")) OR (" SETTLED
		        " LIMIT 1 OFFSET ?4)=1) AND NOT EXISTS(SELECT 1 FROM build_rename r WHERE"
		        " r.project_id=?1 AND r.stage='anr') ORDER BY d.day LIMIT 1",
		        "tiiii", due->project_id, due->rules, due->now_ms / TW_DAY_MS,
		        (int64_t)due->least - 1, after);
	} while (st == TW_OK && *ret_day >= 0 && due->skips && due->skips(due->arg, *ret_day));
	return st;
}

/* Rollups of an earlier generation are ignored. */
static void discard(struct tw_catalogue *c, const struct counting *k)
{
	(void)tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_ANR, ""}, NULL, /* primary key */
	        "UPDATE anr_day SET generation=generation+1 WHERE project_id=? AND day=?", "ti",
	        k->project_id, k->day);
}

enum tw_status tw_catalogue_anr_rollup(struct tw_catalogue *c, const struct tw_anr_rollup_due *due,
        struct tw_anr_rollup_done *ret, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct counting k = {
	        .project_id = due->project_id, .rules = due->rules, .now_ms = due->now_ms};
	int n = 0;
	enum tw_status st = next_day(c, due, &k.day, err);

	*ret = (struct tw_anr_rollup_done){.day = k.day};
	if (st == TW_OK && k.day < 0)
		return pack_some(c, due, ret, err);
	if (st != TW_OK)
		return st;
	k.sums.arena = tw_arena_new(FOLD_BYTES);
	if (!k.sums.arena)
		return tw_oom(err);
	st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);
	if (st == TW_OK) {
		k.db = w;
		st = tw_cat_end(c, w, count_some(&k, &n, err), err);
	}
	tw_arena_free(k.sums.arena);
	if (st == TW_OK && k.outdated)
		st = drop_outdated(c, &k, err);
	else if (st == TW_CORRUPT)
		discard(c, &k);
	ret->more = st == TW_OK && n > 0;
	return st;
}

/* --- expiry --- */

/* Deletes some of its rollups, and with the last of them the day itself.  Until then no rollup is
 * of the day's generation, so that none is read partially. */
static enum tw_status expire_some(
        struct tw_db *db, const char *project_id, int64_t day, struct tw_err *err)
{
	int n = 0;
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE anr_day SET generation=generation+1, waiting=0 WHERE project_id=? AND"
	        " day=?",
	        "ti", project_id, day);

	if (st == TW_OK)
		st = drop_some(db, project_id, day, INT64_MAX, &n, err);
	if (st != TW_OK || n == DROPPED_AT_ONCE)
		return st;
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "DELETE FROM anr_day WHERE project_id=? AND day=?", "ti", project_id, day);
}

struct old_day {
	const char *project_id;
	int64_t day;
};

static const struct tw_fields old_fields =
        TW_FIELDS_OF(TW_FIELD(struct old_day, project_id, "project_id", NULL),
                TW_FIELD(struct old_day, day, "day", NULL));

enum tw_status tw_cat_anr_rollup_expire(
        struct tw_catalogue *c, int64_t day, struct tw_arena *a, bool *ret_more, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_cat_list list = {
	        .arena = a, .limit = 1, .row_bytes = sizeof(struct old_day), .fields = &old_fields};
	const struct old_day *old;
	enum tw_status st = tw_cat_list(c, &list, err, /* anr_day_by_age */
	        "SELECT {columns} FROM anr_day WHERE day<? LIMIT 1", "i", day);

	*ret_more = st == TW_OK && list.n > 0;
	if (!*ret_more)
		return st;
	old = list.rows;
	st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);
	if (st != TW_OK)
		return st;
	return tw_cat_end(c, w, expire_some(w, old->project_id, old->day, err), err);
}
