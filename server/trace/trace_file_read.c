/*
 * trace_file_read.c - reads one trace file.
 *
 * The file never changes, so it needs no locks, no journal and no -wal file.  Its
 * content may still be damaged; every number is checked before it is used as a size or index, and
 * frames have checksums.
 */
#include "decoder/base/codec_memory.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "server/base/clock.h"
#include "server/trace/trace_file_internal.h"
#include "server/trace/trace_file_vfs.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { STATEMENTS = 24 };

/* The members before `damaged` are used for several files, one after the other. */
struct tw_trace_file {
	struct tw_trace_image image;
	sqlite3 *db;                          /* of all files that have this schema */
	sqlite3_stmt *statements[STATEMENTS]; /* prepared and not in use; NULL: none */
	uint8_t schema[TW_TRACE_SCHEMA_BYTES];
	struct tw_unpacker *unpacker;
	struct tw_arena *arena; /* strings and tables until close */
	bool damaged, sanitized;
	struct tw_trace_info info;
	struct tw_trace_facts facts;
	struct tw_thread_info *threads;
	uint32_t n_threads, cap_threads;
	struct tw_repair_count *repairs;
	uint32_t n_repairs;
	struct tw_method_info *methods;
	uint32_t n_methods, cap_methods;
	struct tw_method_ref *refs;
	uint32_t n_refs, cap_refs;
	/* Positions of the chunks of all threads, by thread, level, time.  Read in one pass, as the
	 * table has no index by thread: a query per thread would scan the table each time. */
	struct tw_chunk_row *chunks;
	uint32_t n_chunks, cap_chunks;
	bool has_chunks, bad_chunk; /* they were read; a row was damaged */
	struct tw_inlined *inlined; /* NULL: as stored */
	int owned_fd;               /* -1 none */
};

/* Method and thread tables of the largest trace, with names. */
#define ARENA_MAX_BYTES ((size_t)1 << 30)
enum { KEPT_MAX_BYTES = 1 << 20 }; /* of a reader without a file */
enum { OPS_PER_CHECK = 20000 }; /* instructions of SQLite's virtual machine: about a millisecond */

/* --- frames, without the file --- */

struct tw_unpacker {
	ZSTD_DCtx *zstd;
	struct tw_buf payload;
};

struct tw_unpacker *tw_unpacker_new(void)
{
	struct tw_unpacker *u = tw_mem_zalloc(1, sizeof *u);

	if (!u)
		return NULL;
	tw_buf_init(&u->payload, SIZE_MAX / 2);
	u->zstd = ZSTD_createDCtx_advanced(tw_zstd_memory());
	return u->zstd ? u : tw_unpacker_free(u);
}

struct tw_unpacker *tw_unpacker_free(struct tw_unpacker *u)
{
	if (!u)
		return NULL;
	(void)ZSTD_freeDCtx(u->zstd);
	tw_buf_done(&u->payload);
	tw_mem_free(u);
	return NULL;
}

static enum tw_status damaged_frame(struct tw_err *err)
{
	return tw_fail(err, TW_CORRUPT, "the trace file is damaged (frame)");
}

/* Replaces *payload by the content of a zstd frame, which states its decoded size.  TW_CORRUPT if
 * damaged or larger than max_bytes. */
static enum tw_status decode_into(ZSTD_DCtx *zstd, struct tw_str frame, uint64_t max_bytes,
        struct tw_buf *payload, struct tw_err *err)
{
	unsigned long long size = ZSTD_getFrameContentSize(frame.ptr, frame.len);
	size_t n;

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > max_bytes)
		return damaged_frame(err);
	tw_buf_clear(payload);
	if (tw_buf_reserve(payload, (size_t)size) != TW_OK)
		return tw_oom(err);
	n = ZSTD_decompressDCtx(zstd, payload->data, (size_t)size, frame.ptr, frame.len);
	if (ZSTD_isError(n) || n != size)
		return damaged_frame(err);
	payload->len = n;
	return TW_OK;
}

/* The content is valid until the next call. */
static enum tw_status decode_frame(struct tw_unpacker *u, struct tw_str frame, uint64_t max_bytes,
        struct tw_str *ret, struct tw_err *err)
{
	enum tw_status st = decode_into(u->zstd, frame, max_bytes, &u->payload, err);

	if (st == TW_OK)
		*ret = tw_buf_str(&u->payload);
	return st;
}

enum tw_status tw_unpacker_chunk(struct tw_unpacker *u, struct tw_str frame,
        const struct tw_chunk_row *row, struct tw_chunk *c, struct tw_err *err)
{
	struct tw_str payload = {NULL, 0};
	enum tw_status st = decode_frame(u, frame, TW_CHUNK_MAX_BYTES, &payload, err);

	if (st != TW_OK)
		return st;
	return tw_chunk_decode(
	        c, (const uint8_t *)payload.ptr, payload.len, row->info.start_ns, err);
}

enum tw_status tw_unpacker_tree(
        struct tw_unpacker *u, struct tw_str frame, uint32_t *ret_n, struct tw_err *err)
{
	struct tw_str payload = {NULL, 0};
	enum tw_status st = decode_frame(u, frame, TW_TREE_MAX_BYTES, &payload, err);

	if (st == TW_OK)
		st = tw_tree_decode_size((const uint8_t *)payload.ptr, payload.len, ret_n, err);
	return st;
}

enum tw_status tw_unpacker_tree_into(
        struct tw_unpacker *u, struct tw_tree_node *nodes, struct tw_err *err)
{
	return tw_tree_decode_into(u->payload.data, u->payload.len, nodes, err);
}

/* --- the file --- */

enum tw_status tw_trace_file_noted(struct tw_trace_file *f, enum tw_status st)
{
	f->damaged = f->damaged || st == TW_CORRUPT;
	return st;
}

bool tw_trace_file_is_damaged(const struct tw_trace_file *f)
{
	return f->damaged;
}

static enum tw_status damaged(struct tw_trace_file *f, const char *what, struct tw_err *err)
{
	return tw_trace_file_noted(
	        f, tw_fail(err, TW_CORRUPT, "the trace file is damaged (%s)", what));
}

static enum tw_status sql_fail(struct tw_trace_file *f, const char *doing, struct tw_err *err)
{
	return tw_trace_file_noted(f, tw_trace_sql_fail(f->db, doing, err));
}

static _Thread_local bool text_oom;

struct tw_str tw_trace_text_at(sqlite3_stmt *s, int col)
{
	const char *p = (const char *)sqlite3_column_text(s, col);

	if (!p && sqlite3_column_type(s, col) != SQLITE_NULL)
		text_oom = true;
	return (struct tw_str){p ? p : "", p ? (size_t)sqlite3_column_bytes(s, col) : 0};
}

bool tw_trace_text_oom(void)
{
	bool was = text_oom;

	text_oom = false;
	return was;
}

static bool keep_text(struct tw_trace_file *f, sqlite3_stmt *s, int col, struct tw_str *ret)
{
	struct tw_str t = tw_trace_text_at(s, col);
	char *copy = tw_arena_str(f->arena, t);

	*ret = (struct tw_str){copy, t.len};
	return copy != NULL;
}

sqlite3_stmt *tw_trace_file_statement(struct tw_trace_file *f, const char *sql)
{
	sqlite3_stmt *s = NULL;

	for (int i = 0; i < STATEMENTS; i++)
		if (f->statements[i] && strcmp(sqlite3_sql(f->statements[i]), sql) == 0) {
			s = f->statements[i];
			f->statements[i] = NULL;
			return s;
		}
	return sqlite3_prepare_v2(f->db, sql, -1, &s, NULL) == SQLITE_OK ? s : NULL;
}

void tw_trace_file_statement_done(struct tw_trace_file *f, sqlite3_stmt *s)
{
	if (!s)
		return;
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	for (int i = 0; i < STATEMENTS; i++)
		if (!f->statements[i]) {
			f->statements[i] = s;
			return;
		}
	(void)sqlite3_finalize(s);
}

/* Calls `row` for each row of `sql`; it returns false if memory is short. */
static enum tw_status each_row(struct tw_trace_file *f, const char *sql,
        bool (*row)(struct tw_trace_file *, sqlite3_stmt *), struct tw_err *err)
{
	sqlite3_stmt *s = tw_trace_file_statement(f, sql);
	enum tw_status st = TW_OK;
	int rc = SQLITE_ERROR;

	if (!s)
		return sql_fail(f, "opening a trace file", err);
	while (st == TW_OK && (rc = sqlite3_step(s)) == SQLITE_ROW)
		if (!row(f, s) || tw_trace_text_oom())
			st = tw_oom(err);
	if (st == TW_OK && rc != SQLITE_DONE)
		st = sql_fail(f, "reading a trace file", err);
	tw_trace_file_statement_done(f, s);
	return st;
}

/* Stores a number of trace_meta; unknown keys are from a newer writer. */
static void set_meta(struct tw_trace_file *f, const char *key, int64_t v)
{
	struct tw_trace_info *i = &f->info;
	const struct {
		const char *key;
		int64_t *i64;
		uint64_t *u64;
		uint32_t *u32;
	} numbers[] = {
	        {"mono_base_ns", .i64 = &i->mono_base_ns},
	        {"boot_base_ns", .i64 = &i->boot_base_ns},
	        {"start_ns", .i64 = &i->start_ns},
	        {"end_ns", .i64 = &i->end_ns},
	        {"slices", .u64 = &i->slices},
	        {"input_bytes", .u64 = &f->facts.input_bytes},
	        {"decoded_bytes", .u64 = &f->facts.decoded_bytes},
	        {"pid", .u32 = &i->pid},
	        {"threads", .u32 = &i->threads},
	        {"methods", .u32 = &i->methods},
	        {"max_depth", .u32 = &i->max_depth},
	        {"decoder_version", .u32 = &f->facts.decoder_version},
	};

	for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
		if (strcmp(numbers[k].key, key) != 0)
			continue;
		if (numbers[k].i64)
			*numbers[k].i64 = v;
		else if (numbers[k].u64)
			*numbers[k].u64 = (uint64_t)v;
		else if (numbers[k].u32)
			*numbers[k].u32 = (uint32_t)v;
	}
}

static bool meta_row(struct tw_trace_file *f, sqlite3_stmt *s)
{
	const char *key = tw_trace_text_at(s, 0).ptr;
	struct tw_str text;

	if (strcmp(key, "format") == 0) {
		if (!keep_text(f, s, 1, &text))
			return false;
		f->facts.format = text.ptr;
	} else if (strcmp(key, "has_cpu") == 0) {
		f->info.has_cpu = sqlite3_column_int64(s, 1) != 0;
	} else {
		set_meta(f, key, sqlite3_column_int64(s, 1));
	}
	return true;
}

static bool thread_row(struct tw_trace_file *f, sqlite3_stmt *s)
{
	struct tw_thread_info *t = &f->threads[f->n_threads];

	if (f->n_threads == f->cap_threads)
		return true; /* more rows than counted: a damaged file */
	*t = (struct tw_thread_info){
	        .thread_id = (uint32_t)sqlite3_column_int64(s, 0),
	        .pid = (uint32_t)sqlite3_column_int64(s, 1),
	        .tid = (uint64_t)sqlite3_column_int64(s, 2),
	        .is_main = sqlite3_column_int(s, 4) != 0,
	        .slices = (uint64_t)sqlite3_column_int64(s, 5),
	        .roots = (uint64_t)sqlite3_column_int64(s, 6),
	        .max_depth = (uint32_t)sqlite3_column_int64(s, 7),
	        .start_ns = sqlite3_column_int64(s, 8),
	        .end_ns = sqlite3_column_int64(s, 9),
	        .busy_ns = sqlite3_column_int64(s, 10),
	        .source = tw_slice_source_of_name(tw_trace_text_at(s, 11).ptr),
	        .interval_ns = sqlite3_column_int64(s, 12),
	};
	f->n_threads++;
	return keep_text(f, s, 3, &t->name);
}

static bool repair_row(struct tw_trace_file *f, sqlite3_stmt *s)
{
	enum tw_repair what = tw_repair_of_name(tw_trace_text_at(s, 0).ptr);
	bool no_offset = sqlite3_column_type(s, 2) == SQLITE_NULL;

	if (what == TW_REPAIR_COUNT || f->n_repairs == TW_REPAIR_COUNT)
		return true; /* written by a newer decoder */
	f->repairs[f->n_repairs++] = (struct tw_repair_count){
	        .what = what,
	        .count = (uint64_t)sqlite3_column_int64(s, 1),
	        .first_offset = no_offset ? TW_NO_OFFSET : (uint64_t)sqlite3_column_int64(s, 2),
	};
	return true;
}

static bool method_row(struct tw_trace_file *f, sqlite3_stmt *s)
{
	struct tw_method_info *m = &f->methods[f->n_methods];

	if (f->n_methods == f->cap_methods)
		return true;
	*m = (struct tw_method_info){
	        .has_id = sqlite3_column_type(s, 0) != SQLITE_NULL,
	        .id = (uint64_t)sqlite3_column_int64(s, 0),
	        .name = TW_STR(""),
	        .count = (uint64_t)sqlite3_column_int64(s, 2),
	        .total_ns = sqlite3_column_int64(s, 3),
	        .sum_ns = sqlite3_column_int64(s, 4),
	        .self_ns = sqlite3_column_int64(s, 5),
	        .max_ns = sqlite3_column_int64(s, 6),
	        .cpu_ns = sqlite3_column_int64(s, 7),
	};
	f->n_methods++;
	return m->has_id || keep_text(f, s, 1, &m->name);
}

static enum tw_status one_number(
        struct tw_trace_file *f, const char *sql, int64_t *ret, struct tw_err *err)
{
	sqlite3_stmt *s = tw_trace_file_statement(f, sql);
	const bool got = s && sqlite3_step(s) == SQLITE_ROW;
	const enum tw_status st = got ? TW_OK : sql_fail(f, "opening a trace file", err);

	if (got)
		*ret = sqlite3_column_int64(s, 0);
	tw_trace_file_statement_done(f, s);
	return st;
}

static enum tw_status check_kind(struct tw_trace_file *f, struct tw_err *err)
{
	int64_t id = 0;
	int64_t version = 0;
	int64_t odd = 0;
	enum tw_status st = one_number(f, "PRAGMA application_id", &id, err);

	if (st == TW_OK)
		st = one_number(f, "PRAGMA user_version", &version, err);
	if (st == TW_OK && id != TW_TRACE_APPLICATION_ID)
		st = tw_fail_at(err, TW_UNSUPPORTED, 0, "not a tracewell trace file");
	if (st == TW_OK && version != TW_TRACE_SCHEMA_VERSION)
		st = tw_fail_at(err, TW_UNSUPPORTED, 0,
		        "trace file of schema %lld; this program reads %d", (long long)version,
		        TW_TRACE_SCHEMA_VERSION);
	/* A view or a virtual table in place of a table could return endless rows. */
	if (st == TW_OK)
		st = one_number(f,
		        "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table','index')"
		        " OR (type='table' AND rootpage=0)",
		        &odd, err);
	if (st == TW_OK && odd)
		st = damaged(f, "schema", err);
	return st;
}

static enum tw_status load(struct tw_trace_file *f, struct tw_err *err)
{
	int64_t threads = 0;
	enum tw_status st = one_number(f, "SELECT count(*) FROM trace_thread", &threads, err);

	if (st != TW_OK)
		return st;
	f->threads = tw_arena_alloc(f->arena, (size_t)threads, sizeof *f->threads);
	f->repairs = tw_arena_alloc(f->arena, TW_REPAIR_COUNT, sizeof *f->repairs);
	if (!f->threads || !f->repairs)
		return tw_oom(err);
	f->cap_threads = (uint32_t)threads;
	f->facts.format = "";
	st = each_row(f, "SELECT key, value FROM trace_meta WHERE key<>'" TW_TRACE_SYSTEM_KEY "'",
	        meta_row, err);
	if (st == TW_OK)
		st = each_row(f, "SELECT * FROM trace_thread ORDER BY thread_id", thread_row, err);
	if (st == TW_OK)
		st = each_row(f, "SELECT name, count, first_offset FROM trace_repair ORDER BY name",
		        repair_row, err);
	return st;
}

/* Called by SQLite within a statement, which it then interrupts. */
static int is_overdue(void *arg)
{
	(void)arg;
	return tw_work_is_overdue();
}

static enum tw_status connect(struct tw_trace_file *f, struct tw_err *err)
{
	const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;

	if (tw_trace_vfs_open(&f->image, flags, &f->db) != SQLITE_OK)
		return sql_fail(f, "opening a trace file", err);
	(void)sqlite3_exec(f->db,
	        "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA cache_size=-512",
	        NULL, NULL, NULL);
	sqlite3_progress_handler(f->db, OPS_PER_CHECK, is_overdue, NULL);
	return check_kind(f, err);
}

static void disconnect(struct tw_trace_file *f)
{
	for (int i = 0; i < STATEMENTS; i++) {
		(void)sqlite3_finalize(f->statements[i]);
		f->statements[i] = NULL;
	}
	(void)sqlite3_close(f->db);
	f->db = NULL;
}

static struct tw_trace_file *new_reader(void)
{
	struct tw_trace_file *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->owned_fd = -1;
	f->arena = tw_arena_new(ARENA_MAX_BYTES);
	f->unpacker = tw_unpacker_new();
	return f->arena && f->unpacker ? f : tw_trace_file_close(f);
}

static enum tw_status open_image(struct tw_trace_file *f, int fd, struct tw_err *err)
{
	enum tw_status st =
	        tw_trace_file_noted(f, tw_trace_image_load(&f->image, fd, f->unpacker->zstd, err));

	if (st == TW_OK && f->db && !tw_trace_image_has_schema(&f->image, f->schema))
		disconnect(f);
	if (st == TW_OK && !f->db)
		st = connect(f, err);
	return st == TW_OK ? load(f, err) : st;
}

enum tw_status tw_trace_file_open_on(int fd, struct tw_trace_file **ret, struct tw_err *err)
{
	struct tw_trace_file *f = new_reader();
	enum tw_status st = f ? open_image(f, fd, err) : tw_oom(err);

	if (st == TW_OK)
		*ret = f;
	else
		tw_trace_file_close(f);
	return st;
}

enum tw_status tw_trace_file_open_fd(
        int owned_fd, struct tw_trace_file *used, struct tw_trace_file **ret, struct tw_err *err)
{
	struct tw_trace_file *f = used ? used : new_reader();
	enum tw_status st;

	if (!f) {
		(void)close(owned_fd);
		return tw_oom(err);
	}
	f->owned_fd = owned_fd;
	st = open_image(f, owned_fd, err);
	if (st == TW_OK)
		*ret = f;
	else
		tw_trace_file_close(f);
	return st;
}

enum tw_status tw_trace_file_open(const char *path, struct tw_trace_file **ret, struct tw_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return tw_fail_errno(err, TW_IO, "%.200s cannot be opened", path);
	return tw_trace_file_open_fd(fd, NULL, ret, err);
}

/* Detaches the file, and keeps the memory and statements for the next one. */
static void end_file(struct tw_trace_file *f)
{
	struct tw_trace_file next = {.owned_fd = -1};

	tw_trace_image_done(&f->image);
	if (f->owned_fd >= 0)
		(void)close(f->owned_fd);
	tw_mem_free(f->chunks);
	memcpy(&next, f, offsetof(struct tw_trace_file, damaged));
	*f = next;
}

struct tw_trace_file *tw_trace_file_close(struct tw_trace_file *f)
{
	if (!f)
		return NULL;
	disconnect(f);
	end_file(f);
	tw_unpacker_free(f->unpacker);
	tw_arena_free(f->arena);
	tw_mem_free(f);
	return NULL;
}

struct tw_trace_file *tw_trace_file_reuse(struct tw_trace_file *f)
{
	if (!f || f->damaged || !f->image.in_memory ||
	        tw_arena_bytes(f->arena) + f->unpacker->payload.cap > KEPT_MAX_BYTES)
		return tw_trace_file_close(f);
	tw_trace_image_schema(&f->image, f->schema);
	end_file(f);
	tw_arena_reset(f->arena);
	return f;
}

static enum tw_status check_time(struct tw_err *err)
{
	return tw_work_is_overdue() ? tw_fail_overdue(err) : TW_OK;
}

sqlite3 *tw_trace_file_db(struct tw_trace_file *f)
{
	return f->db;
}

const struct tw_trace_info *tw_trace_file_info(const struct tw_trace_file *f)
{
	return &f->info;
}

const struct tw_trace_facts *tw_trace_file_facts(const struct tw_trace_file *f)
{
	return &f->facts;
}

const struct tw_thread_info *tw_trace_file_threads(const struct tw_trace_file *f, uint32_t *ret_n)
{
	*ret_n = f->n_threads;
	return f->threads;
}

void tw_trace_file_sanitize(struct tw_trace_file *f)
{
	f->sanitized = true;
	for (uint32_t i = 0; i < f->n_threads; i++) {
		struct tw_str *name = &f->threads[i].name;

		/* OkHttp names its threads after the addresses that they connect to */
		for (size_t at = 0; at < name->len; at++)
			if (strchr(" /@", name->ptr[at]))
				name->len = at;
	}
}

bool tw_trace_file_is_sanitized(const struct tw_trace_file *f)
{
	return f->sanitized;
}

struct tw_str tw_sanitized_name(struct tw_str name)
{
	size_t n = tw_str_find(name, TW_STR("://"));

	if (n == name.len)
		return name;
	while (n && name.ptr[n - 1] != ' ')
		n--;
	return n ? (struct tw_str){name.ptr, n} : TW_STR("(address)");
}

bool tw_trace_has_times(const struct tw_thread_info *t)
{
	return t->slices &&
	       (t->source == TW_SOURCE_CALLS ||
	               (t->source == TW_SOURCE_SAMPLES && t->interval_ns != TW_INTERVAL_NONE));
}

int64_t tw_trace_duration_ns(const struct tw_trace_info *i, bool timed)
{
	/* without calls, the notes determine the duration; a snapshot has a single time */
	return timed || (i->slices == 0 && i->end_ns > i->start_ns) ? i->end_ns - i->start_ns : -1;
}

int64_t tw_trace_file_duration_ns(const struct tw_trace_file *f)
{
	bool timed = false;

	for (uint32_t i = 0; i < f->n_threads && !timed; i++)
		timed = tw_trace_has_times(&f->threads[i]);
	return tw_trace_duration_ns(&f->info, timed);
}

const struct tw_repair_count *tw_trace_file_repairs(const struct tw_trace_file *f, uint32_t *ret_n)
{
	*ret_n = f->n_repairs;
	return f->repairs;
}

static bool ref_row(struct tw_trace_file *f, sqlite3_stmt *s)
{
	struct tw_method_ref *m = &f->refs[f->n_refs];
	struct tw_str name;

	if (f->n_refs == f->cap_refs)
		return true;
	f->n_refs++;
	*m = (struct tw_method_ref){.id = (uint64_t)sqlite3_column_int64(s, 0)};
	if (sqlite3_column_type(s, 0) != SQLITE_NULL)
		return true;
	if (!keep_text(f, s, 1, &name))
		return false;
	*m = (struct tw_method_ref){name.ptr, name.len};
	return true;
}

enum tw_status tw_trace_file_method_refs(struct tw_trace_file *f, const struct tw_method_ref **ret,
        uint32_t *ret_n, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = TW_OK;

	if (f->inlined) {
		*ret = tw_inlined_refs(f->inlined, ret_n);
		return TW_OK;
	}
	if (!f->refs) {
		st = one_number(f, "SELECT count(*) FROM trace_method", &n, err);
		if (st != TW_OK)
			return st;
		f->refs = tw_arena_alloc(f->arena, (size_t)n, sizeof *f->refs);
		if (!f->refs)
			return tw_oom(err);
		f->n_refs = 0;
		f->cap_refs = (uint32_t)n;
		st = each_row(f, "SELECT id, name FROM trace_method ORDER BY method", ref_row, err);
	}
	if (st != TW_OK) {
		f->refs = NULL;
		return st;
	}
	*ret = f->refs;
	*ret_n = f->n_refs;
	return TW_OK;
}

enum tw_status tw_trace_file_methods(struct tw_trace_file *f, const struct tw_method_info **ret,
        uint32_t *ret_n, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = TW_OK;

	if (f->inlined)
		return tw_inlined_methods(f->inlined, ret, ret_n, err);
	if (!f->methods) {
		st = one_number(f, "SELECT count(*) FROM trace_method", &n, err);
		if (st != TW_OK)
			return st;
		f->methods = tw_arena_alloc(f->arena, (size_t)n, sizeof *f->methods);
		if (!f->methods)
			return tw_oom(err);
		f->n_methods = 0;
		f->cap_methods = (uint32_t)n;
		st = each_row(f,
		        "SELECT id, name, count, total_ns, sum_ns, self_ns, max_ns, cpu_ns"
		        " FROM trace_method ORDER BY method",
		        method_row, err);
	}
	if (st != TW_OK) {
		f->methods = NULL;
		return st;
	}
	*ret = f->methods;
	*ret_n = f->n_methods;
	return TW_OK;
}

/* --- notes --- */

enum tw_status tw_trace_file_notes_of(struct tw_trace_file *f, struct tw_str frame,
        struct tw_arena *a, struct tw_buf *payload, struct tw_notes *ret, struct tw_err *err)
{
	enum tw_status st = check_time(err);

	if (st == TW_OK)
		st = decode_into(f->unpacker->zstd, frame, TW_NOTES_MAX_BYTES, payload, err);
	if (st == TW_OK)
		st = tw_notes_decode(payload->data, payload->len, a, ret, err);
	return tw_trace_file_noted(f, st);
}

/* --- chunks --- */

/* A row that our code did not write is left out. */
static bool chunk_row(struct tw_trace_file *f, sqlite3_stmt *s)
{
	int64_t thread = sqlite3_column_int64(s, 0);
	int64_t slices = sqlite3_column_int64(s, 5);
	const struct tw_chunk_row row = {
	        .chunk_id = (uint32_t)sqlite3_column_int64(s, 1),
	        .info = {.thread_id = (uint32_t)thread,
	                .level = (uint32_t)sqlite3_column_int64(s, 2),
	                .start_ns = sqlite3_column_int64(s, 3),
	                .end_ns = sqlite3_column_int64(s, 4),
	                .slices = (uint32_t)slices,
	                .open = (uint32_t)sqlite3_column_int64(s, 6),
	                .min_dur_ns = sqlite3_column_int64(s, 7)},
	        .stored_bytes = (uint32_t)sqlite3_column_int64(s, 8),
	};

	if (thread <= 0 || thread > UINT32_MAX || slices <= 0 || slices > TW_CHUNK_SLICES ||
	        row.info.start_ns < 0 || row.info.end_ns < row.info.start_ns) {
		f->bad_chunk = true;
		return true;
	}
	if (!TW_GROW_MEM(f->chunks, f->n_chunks, f->cap_chunks))
		return false;
	f->chunks[f->n_chunks++] = row;
	return true;
}

TW_ORDER_BY(by_thread_and_level, struct tw_chunk_row, TW_RISING(info.thread_id),
        TW_RISING(info.level), TW_RISING(chunk_id))

static enum tw_status read_chunks(struct tw_trace_file *f, struct tw_err *err)
{
	enum tw_status st;

	if (f->has_chunks)
		return TW_OK;
	f->n_chunks = 0;
	f->bad_chunk = false;
	st = each_row(f,
	        "SELECT thread_id, chunk_id, level, start_ns, end_ns, slices, open, min_dur_ns,"
	        " length(data) FROM trace_chunk",
	        chunk_row, err);
	if (st == TW_OK && f->bad_chunk)
		st = damaged(f, "chunk directory", err);
	if (st == TW_OK && f->n_chunks)
		TW_SORT(f->chunks, f->n_chunks, by_thread_and_level);
	f->has_chunks = st == TW_OK;
	return st;
}

/* The first chunk of this thread or a later one. */
static uint32_t first_of(const struct tw_trace_file *f, uint64_t thread_id)
{
	uint32_t at;

	TW_BISECT(at, f->n_chunks, f->chunks[at].info.thread_id < thread_id);
	return at;
}

enum tw_status tw_trace_file_stored_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err)
{
	enum tw_status st = read_chunks(f, err);
	uint32_t at;

	if (st != TW_OK)
		return st;
	at = first_of(f, thread_id);
	*ret = f->chunks ? f->chunks + at : NULL;
	*ret_n = first_of(f, (uint64_t)thread_id + 1) - at;
	return TW_OK;
}

enum tw_status tw_trace_file_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err)
{
	return f->inlined ? tw_inlined_chunks(f->inlined, thread_id, ret, ret_n, err)
	                  : tw_trace_file_stored_chunks(f, thread_id, ret, ret_n, err);
}

enum tw_status tw_trace_file_call_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err)
{
	uint32_t n = 0;
	enum tw_status st = tw_trace_file_chunks(f, thread_id, ret, &n, err);

	if (st != TW_OK)
		return st;
	for (*ret_n = 0; *ret_n < n && (*ret)[*ret_n].info.level == 0;)
		++*ret_n;
	return TW_OK;
}

/* The row's only column. */
static struct tw_str blob_at(sqlite3_stmt *s)
{
	const char *p = sqlite3_column_blob(s, 0);

	return (struct tw_str){p, (size_t)sqlite3_column_bytes(s, 0)};
}

/* Runs a statement for the row of an id.  *ret_stmt is set also on failure. */
static enum tw_status find_row(struct tw_trace_file *f, const char *sql, uint32_t id,
        sqlite3_stmt **ret_stmt, const char *missing, struct tw_err *err)
{
	int rc = SQLITE_ERROR;

	*ret_stmt = tw_trace_file_statement(f, sql);
	if (*ret_stmt) {
		(void)sqlite3_bind_int64(*ret_stmt, 1, id);
		rc = sqlite3_step(*ret_stmt);
	}
	if (rc == SQLITE_ROW)
		return TW_OK;
	if (rc == SQLITE_DONE)
		return tw_fail(err, TW_NOT_FOUND, "%s", missing);
	return sql_fail(f, "reading a trace file", err);
}

static enum tw_status find_chunk(
        struct tw_trace_file *f, uint32_t chunk_id, sqlite3_stmt **ret_stmt, struct tw_err *err)
{
	return find_row(f, "SELECT data FROM trace_chunk WHERE chunk_id=?", chunk_id, ret_stmt,
	        "no such chunk", err);
}

enum tw_status tw_trace_file_chunk_raw(
        struct tw_trace_file *f, uint32_t chunk_id, struct tw_buf *out, struct tw_err *err)
{
	struct tw_str blob = {NULL, 0};
	sqlite3_stmt *s = NULL;
	enum tw_status st = f->inlined ? tw_inlined_chunk(f->inlined, chunk_id, &blob, err)
	                               : find_chunk(f, chunk_id, &s, err);

	if (st == TW_OK && s)
		blob = blob_at(s);
	if (st == TW_OK && tw_buf_add(out, blob.ptr, blob.len) != TW_OK)
		st = tw_oom(err);
	tw_trace_file_statement_done(f, s);
	return st;
}

enum tw_status tw_trace_file_stored_chunk(struct tw_trace_file *f, const struct tw_chunk_row *row,
        struct tw_chunk *c, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	enum tw_status st = check_time(err);

	if (st == TW_OK)
		st = find_chunk(f, row->chunk_id, &s, err);
	if (st == TW_OK)
		st = tw_unpacker_chunk(f->unpacker, blob_at(s), row, c, err);
	tw_trace_file_statement_done(f, s);
	return tw_trace_file_noted(f, st);
}

enum tw_status tw_trace_file_chunk(struct tw_trace_file *f, const struct tw_chunk_row *row,
        struct tw_chunk *c, struct tw_err *err)
{
	struct tw_str frame;
	enum tw_status st;

	if (!f->inlined)
		return tw_trace_file_stored_chunk(f, row, c, err);
	st = check_time(err);
	if (st == TW_OK)
		st = tw_inlined_chunk(f->inlined, row->chunk_id, &frame, err);
	return st == TW_OK ? tw_unpacker_chunk(f->unpacker, frame, row, c, err) : st;
}

enum tw_status tw_trace_file_tree(struct tw_trace_file *f, uint32_t thread_id, struct tw_arena *a,
        struct tw_tree *ret, struct tw_err *err)
{
	return f->inlined ? tw_inlined_tree(f->inlined, thread_id, a, ret, err)
	                  : tw_trace_file_stored_tree(f, thread_id, a, ret, err);
}

enum tw_status tw_trace_file_inline(
        struct tw_trace_file *f, const struct tw_names *names, struct tw_err *err)
{
	const struct tw_method_ref *refs;
	uint32_t n, i = 0;
	enum tw_status st;

	if (f->inlined)
		return TW_OK;
	st = tw_trace_file_method_refs(f, &refs, &n, err);
	if (st != TW_OK)
		return tw_trace_file_noted(f, st);
	while (i < n && !tw_method_is_frame(&refs[i]))
		i++;
	if (i == n)
		return TW_OK;
	st = tw_inlined_new(f, names, f->arena, &f->inlined, err);
	if (st == TW_OK)
		tw_inlined_facts(f->inlined, f->threads, &f->info);
	return tw_trace_file_noted(f, st);
}

bool tw_trace_file_is_inlined(const struct tw_trace_file *f)
{
	return f->inlined != NULL;
}

static enum tw_status find_tree(
        struct tw_trace_file *f, uint32_t thread_id, sqlite3_stmt **ret_stmt, struct tw_err *err)
{
	enum tw_status st = check_time(err);

	return st == TW_OK ? find_row(f, "SELECT data FROM trace_tree WHERE thread_id=?", thread_id,
	                             ret_stmt, "no such thread", err)
	                   : st;
}

uint32_t tw_trace_file_tree_nodes(struct tw_trace_file *f, uint32_t thread_id)
{
	sqlite3_stmt *s = NULL;
	uint32_t n = 0;

	if (find_row(f, "SELECT nodes FROM trace_tree WHERE thread_id=?", thread_id, &s,
	            "no such thread", NULL) == TW_OK)
		n = (uint32_t)sqlite3_column_int64(s, 0);
	tw_trace_file_statement_done(f, s);
	return n;
}

enum tw_status tw_trace_file_tree_raw(
        struct tw_trace_file *f, uint32_t thread_id, struct tw_buf *out, struct tw_err *err)
{
	struct tw_str blob;
	sqlite3_stmt *s = NULL;
	enum tw_status st = find_tree(f, thread_id, &s, err);

	if (st == TW_OK) {
		blob = blob_at(s);
		if (tw_buf_add(out, blob.ptr, blob.len) != TW_OK)
			st = tw_oom(err);
	}
	tw_trace_file_statement_done(f, s);
	return st;
}

enum tw_status tw_trace_file_stored_tree(struct tw_trace_file *f, uint32_t thread_id,
        struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	struct tw_tree t = {NULL, 0};
	sqlite3_stmt *s = NULL;
	enum tw_status st = find_tree(f, thread_id, &s, err);

	if (st == TW_OK)
		st = tw_unpacker_tree(f->unpacker, blob_at(s), &t.n, err);
	tw_trace_file_statement_done(f, s);
	if (st == TW_OK)
		t.nodes = tw_arena_alloc(a, t.n, sizeof *t.nodes);
	if (st == TW_OK)
		st = t.nodes ? tw_unpacker_tree_into(f->unpacker, t.nodes, err) : tw_oom(err);
	if (st == TW_OK)
		*ret = t;
	return tw_trace_file_noted(f, st);
}
