/*
 * trace_file_write.c - writes the trace builder's output as an SQLite file.
 *
 * The file is not read before it is renamed, and a failed one is deleted. So it is written without
 * journal, locks and syncs, in one transaction, with one fsync at the end.
 */
#include "server/trace/trace_file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/list.h"
#include "decoder/base/sum.h"
#include "server/base/clock.h"
#include "server/base/embedded.h"
#include "server/base/file/io.h"
#include "server/trace/trace_file_vfs.h"

extern const struct tw_embedded tw_trace_schema[];

/* Level 1 costs 0.1 byte per slice more than level 3 and takes a third of its time. */
enum { ZSTD_LEVEL = 1 };

enum insert {
	INSERT_META,
	INSERT_THREAD,
	INSERT_METHOD,
	INSERT_CHUNK,
	INSERT_TREE,
	INSERT_NOTES,
	INSERT_DOCUMENT,
	INSERT_REPAIR
};

static const char *const inserts[] = {
        [INSERT_META] = "INSERT INTO trace_meta VALUES(?,?)",
        [INSERT_THREAD] = "INSERT INTO trace_thread VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [INSERT_METHOD] = "INSERT INTO trace_method VALUES(?,?,?,?,?,?,?,?,?)",
        [INSERT_CHUNK] = "INSERT INTO trace_chunk VALUES(?,?,?,?,?,?,?,?,?)",
        [INSERT_TREE] = "INSERT INTO trace_tree VALUES(?,?,?)",
        [INSERT_NOTES] = "INSERT INTO trace_note_block VALUES(?,?,?,?,?,?)",
        [INSERT_DOCUMENT] = "INSERT INTO trace_document VALUES(NULL,?,?)",
        [INSERT_REPAIR] = "INSERT INTO trace_repair VALUES(?,?,?)",
};
enum { INSERTS = sizeof inserts / sizeof *inserts };

struct tw_trace_writer {
	struct tw_trace_out out; /* first member */
	sqlite3 *db;
	sqlite3_stmt *stmts[INSERTS];
	struct tw_frames *frames;
	struct tw_summary_maker *summary;
	struct tw_thread_info *threads; /* not yet in the file */
	uint32_t n_threads, cap_threads;
	struct tw_buf clean;                            /* scratch space for valid text */
	struct tw_buf payload, sums_frame, notes_frame; /* of a block of notes */
	char *path; /* of a file that the writer created; NULL with the caller's descriptor */
	struct tw_trace_image image;
	uint32_t methods, chunks, notes;
	struct tw_trace_written written;
	struct tw_repair_count repairs[TW_REPAIR_COUNT];
	struct tw_buf anr;
	bool timed; /* a thread's slices have times */
	bool unsynced, committed;
};

enum tw_status tw_trace_sql_fail(sqlite3 *db, const char *doing, struct tw_err *err)
{
	int rc = db ? sqlite3_errcode(db) & 0xFF : SQLITE_NOMEM;
	const char *why = db ? sqlite3_errmsg(db) : "out of memory";

	if (rc == SQLITE_INTERRUPT)
		return tw_fail_overdue(err);
	if (rc == SQLITE_FULL)
		return tw_fail(err, TW_FULL, "the disk is full (%s)", doing);
	if (rc == SQLITE_NOMEM)
		return tw_fail(err, TW_NOMEM, "no memory (%s)", doing);
	if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
		return tw_fail(err, TW_CORRUPT, "%s: %s", doing, why);
	/* errors not caused by the disk would occur again */
	if (rc == SQLITE_TOOBIG || rc == SQLITE_CONSTRAINT || rc == SQLITE_MISMATCH ||
	        rc == SQLITE_MISUSE || rc == SQLITE_RANGE)
		return tw_fail(err, TW_BUG, "%s: %s", doing, why);
	return tw_fail(err, TW_IO, "%s: %s", doing, why);
}

static struct tw_trace_writer *writer_of(struct tw_trace_out *o)
{
	return (struct tw_trace_writer *)(void *)o;
}

static enum tw_status run(struct tw_trace_writer *w, enum insert which, struct tw_err *err)
{
	sqlite3_stmt *s = w->stmts[which];
	int rc = sqlite3_step(s);

	(void)sqlite3_reset(s);
	if (rc != SQLITE_DONE)
		return tw_trace_sql_fail(w->db, "writing a trace file", err);
	return TW_OK;
}

/* Binds text after making it valid UTF-8 in `clean`. Statements run at once, so a text that needs
 * no change is bound where it is. */
static void bind_text(sqlite3_stmt *s, int at, struct tw_str text, struct tw_buf *clean)
{
	size_t cap = text.len * 3 + 1;

	if (text.len && tw_utf8_is_plain(text)) {
		(void)sqlite3_bind_text(s, at, text.ptr, (int)text.len, SQLITE_STATIC);
		return;
	}
	tw_buf_clear(clean);
	if (tw_buf_reserve(clean, cap) != TW_OK) {
		(void)sqlite3_bind_text(s, at, "", 0, SQLITE_STATIC);
		return;
	}
	clean->len = tw_utf8_clean((char *)clean->data, cap, text);
	(void)sqlite3_bind_text(
	        s, at, (const char *)clean->data, (int)clean->len, SQLITE_TRANSIENT);
}

static void bind_ints(sqlite3_stmt *s, int at, const int64_t *values, int n)
{
	for (int i = 0; i < n; i++)
		(void)sqlite3_bind_int64(s, at + i, values[i]);
}

static enum tw_status insert_chunk(struct tw_trace_writer *w, const struct tw_chunk_info *c,
        const uint8_t *frame, size_t len, struct tw_err *err)
{
	sqlite3_stmt *s = w->stmts[INSERT_CHUNK];
	const int64_t v[] = {++w->chunks, c->thread_id, c->level, c->start_ns, c->end_ns, c->slices,
	        c->open, c->min_dur_ns};

	bind_ints(s, 1, v, 8);
	(void)sqlite3_bind_blob64(s, 9, frame, len, SQLITE_STATIC);
	return run(w, INSERT_CHUNK, err);
}

static enum tw_status insert_frame(
        void *arg, const struct tw_frame_info *info, const struct tw_buf *frame, struct tw_err *err)
{
	struct tw_trace_writer *w = arg;
	sqlite3_stmt *s = w->stmts[INSERT_TREE];
	const int64_t v[] = {info->chunk.thread_id, info->nodes};

	if (!info->is_tree)
		return insert_chunk(w, &info->chunk, frame->data, frame->len, err);
	bind_ints(s, 1, v, 2);
	(void)sqlite3_bind_blob64(s, 3, frame->data, frame->len, SQLITE_STATIC);
	return run(w, INSERT_TREE, err);
}

static enum tw_status out_chunk(struct tw_trace_out *o, const struct tw_chunk_info *c,
        struct tw_buf *payload, struct tw_err *err)
{
	struct tw_frame_info info = {.chunk = *c};

	return tw_frames_take(writer_of(o)->frames, &info, payload, err);
}

static enum tw_status out_tree(struct tw_trace_out *o, uint32_t thread_id, uint32_t nodes,
        struct tw_buf *payload, struct tw_err *err)
{
	struct tw_frame_info info = {.is_tree = true, .chunk.thread_id = thread_id, .nodes = nodes};

	return tw_frames_take(writer_of(o)->frames, &info, payload, err);
}

static void out_sums(struct tw_trace_out *o, struct tw_tree_sums *sums)
{
	tw_summary_maker_keep(writer_of(o)->summary, sums);
}

static enum tw_status out_all_sums(struct tw_trace_out *o, uint32_t methods, struct tw_err *err)
{
	return tw_summary_maker_make(writer_of(o)->summary, methods, err);
}

/* The other thread uses the database until all frames are stored, so threads are queued here. */
static enum tw_status out_thread(
        struct tw_trace_out *o, const struct tw_thread_info *t, struct tw_err *err)
{
	struct tw_trace_writer *w = writer_of(o);

	w->timed = w->timed || tw_trace_has_times(t);
	if (!TW_GROW_MEM(w->threads, w->n_threads, w->cap_threads))
		return tw_oom(err);
	w->threads[w->n_threads++] = *t;
	return TW_OK;
}

static enum tw_status insert_thread(
        struct tw_trace_writer *w, const struct tw_thread_info *t, struct tw_err *err)
{
	sqlite3_stmt *s = w->stmts[INSERT_THREAD];
	const int64_t before[] = {t->thread_id, t->pid, (int64_t)t->tid};
	const int64_t after[] = {t->is_main, (int64_t)t->slices, (int64_t)t->roots, t->max_depth,
	        t->start_ns, t->end_ns, t->busy_ns};

	bind_ints(s, 1, before, 3);
	bind_text(s, 4, t->name, &w->clean);
	bind_ints(s, 5, after, 7);
	(void)sqlite3_bind_text(s, 12, tw_slice_source_name(t->source), -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(s, 13, t->interval_ns);
	return run(w, INSERT_THREAD, err);
}

/* From here on this thread uses the database. */
static enum tw_status write_threads(struct tw_trace_writer *w, struct tw_err *err)
{
	enum tw_status st = tw_frames_finish(w->frames, err);

	for (uint32_t i = 0; st == TW_OK && i < w->n_threads; i++)
		st = insert_thread(w, &w->threads[i], err);
	w->n_threads = 0;
	return st;
}

static enum tw_status out_method(
        struct tw_trace_out *o, const struct tw_method_info *m, struct tw_err *err)
{
	struct tw_trace_writer *w = writer_of(o);
	sqlite3_stmt *s = w->stmts[INSERT_METHOD];
	const int64_t v[] = {
	        (int64_t)m->count, m->total_ns, m->sum_ns, m->self_ns, m->max_ns, m->cpu_ns};
	enum tw_status st = write_threads(w, err);

	if (st != TW_OK)
		return st;
	(void)sqlite3_bind_int64(s, 1, w->methods++);
	if (m->has_id) {
		(void)sqlite3_bind_int64(s, 2, (int64_t)m->id);
		(void)sqlite3_bind_null(s, 3);
	} else {
		(void)sqlite3_bind_null(s, 2);
		bind_text(s, 3, m->name, &w->clean);
	}
	bind_ints(s, 4, v, 6);
	return run(w, INSERT_METHOD, err);
}

static enum tw_status pack_notes(struct tw_trace_writer *w, const struct tw_note_row *rows,
        size_t n, struct tw_buf *frame, struct tw_err *err)
{
	tw_buf_clear(&w->payload);
	if (tw_notes_encode(rows, n, &w->payload) != TW_OK)
		return tw_oom(err);
	return tw_packer_pack(tw_frames_packer(w->frames), false, &w->payload, frame, err);
}

static enum tw_status pack_sums(
        struct tw_trace_writer *w, const struct tw_note_row *rows, size_t n, struct tw_err *err)
{
	struct tw_note_row *sums = tw_mem_alloc(n, sizeof *sums);
	size_t n_sums = 0;
	enum tw_status st = sums ? tw_notes_sum(rows, n, sums, &n_sums) : TW_NOMEM;

	st = st == TW_OK ? pack_notes(w, sums, n_sums, &w->sums_frame, err) : tw_oom(err);
	tw_mem_free(sums);
	return st;
}

static int64_t latest_end(const struct tw_note_row *rows, size_t n)
{
	int64_t latest = rows[0].ts_ns;

	for (size_t i = 0; i < n; i++) {
		int64_t end = rows[i].dur_ns > 0 ? tw_sum_ns(rows[i].ts_ns, rows[i].dur_ns)
		                                 : rows[i].ts_ns;

		if (end > latest)
			latest = end;
	}
	return latest;
}

static enum tw_status out_notes(
        struct tw_trace_out *o, const struct tw_note_row *rows, size_t n, struct tw_err *err)
{
	struct tw_trace_writer *w = writer_of(o);
	sqlite3_stmt *s = w->stmts[INSERT_NOTES];
	const int64_t v[] = {
	        (int64_t)w->notes + 1, (int64_t)(w->notes + n), rows[0].ts_ns, latest_end(rows, n)};
	enum tw_status st = write_threads(w, err);

	if (st == TW_OK)
		st = pack_sums(w, rows, n, err);
	if (st == TW_OK)
		st = pack_notes(w, rows, n, &w->notes_frame, err);
	if (st != TW_OK)
		return st;
	w->notes += (uint32_t)n;
	bind_ints(s, 1, v, 4);
	(void)sqlite3_bind_blob64(s, 5, w->sums_frame.data, w->sums_frame.len, SQLITE_STATIC);
	(void)sqlite3_bind_blob64(s, 6, w->notes_frame.data, w->notes_frame.len, SQLITE_STATIC);
	return run(w, INSERT_NOTES, err);
}

static enum tw_status out_document(
        struct tw_trace_out *o, const char *kind, struct tw_str json, struct tw_err *err)
{
	struct tw_trace_writer *w = writer_of(o);
	sqlite3_stmt *s = w->stmts[INSERT_DOCUMENT];
	enum tw_status st = write_threads(w, err);

	if (st != TW_OK)
		return st;
	if (strcmp(kind, "anr") == 0 && !w->anr.len &&
	        tw_buf_add(&w->anr, json.ptr, json.len) != TW_OK)
		return tw_oom(err);
	(void)sqlite3_bind_text(s, 1, kind, -1, SQLITE_STATIC);
	bind_text(s, 2, json, &w->clean);
	return run(w, INSERT_DOCUMENT, err);
}

static enum tw_status out_repair(
        struct tw_trace_out *o, const struct tw_repair_count *r, struct tw_err *err)
{
	struct tw_trace_writer *w = writer_of(o);
	sqlite3_stmt *s = w->stmts[INSERT_REPAIR];
	enum tw_status st = write_threads(w, err);

	if (st != TW_OK)
		return st;
	if (w->written.n_repairs < TW_REPAIR_COUNT)
		w->repairs[w->written.n_repairs++] = *r;
	(void)sqlite3_bind_text(s, 1, tw_repair_info(r->what)->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(s, 2, (int64_t)r->count);
	if (r->first_offset == TW_NO_OFFSET)
		(void)sqlite3_bind_null(s, 3);
	else
		(void)sqlite3_bind_int64(s, 3, (int64_t)r->first_offset);
	return run(w, INSERT_REPAIR, err);
}

static enum tw_status meta(
        struct tw_trace_writer *w, const char *key, int64_t value, struct tw_err *err)
{
	sqlite3_stmt *s = w->stmts[INSERT_META];

	(void)sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(s, 2, value);
	return run(w, INSERT_META, err);
}

enum tw_status tw_trace_writer_system(
        struct tw_trace_writer *w, struct tw_str facts, struct tw_err *err)
{
	sqlite3_stmt *s = w->stmts[INSERT_META];
	enum tw_status st = write_threads(w, err);

	if (st != TW_OK)
		return st;
	(void)sqlite3_bind_text(s, 1, TW_TRACE_SYSTEM_KEY, -1, SQLITE_STATIC);
	(void)sqlite3_bind_blob64(s, 2, facts.ptr, facts.len, SQLITE_STATIC);
	return run(w, INSERT_META, err);
}

static enum tw_status out_info(
        struct tw_trace_out *o, const struct tw_trace_info *i, struct tw_err *err)
{
	const struct {
		const char *key;
		int64_t value;
	} rows[] = {
	        {"pid", i->pid},
	        {"mono_base_ns", i->mono_base_ns},
	        {"boot_base_ns", i->boot_base_ns},
	        {"start_ns", i->start_ns},
	        {"end_ns", i->end_ns},
	        {"slices", (int64_t)i->slices},
	        {"threads", i->threads},
	        {"methods", i->methods},
	        {"max_depth", i->max_depth},
	        {"has_cpu", i->has_cpu},
	};
	struct tw_trace_writer *w = writer_of(o);
	enum tw_status st = write_threads(w, err);

	w->written.info = *i;
	w->written.duration_ns = tw_trace_duration_ns(i, w->timed);
	for (size_t k = 0; st == TW_OK && k < sizeof rows / sizeof *rows; k++)
		st = meta(w, rows[k].key, rows[k].value, err);
	return st;
}

const struct tw_trace_written *tw_trace_writer_written(const struct tw_trace_writer *w)
{
	return &w->written;
}

static const struct tw_trace_out_ops ops = {
        .chunk = out_chunk,
        .tree = out_tree,
        .thread = out_thread,
        .method = out_method,
        .notes = out_notes,
        .document = out_document,
        .repair = out_repair,
        .info = out_info,
        .sums = out_sums,
        .all_sums = out_all_sums,
};

static enum tw_status create(struct tw_trace_writer *w, struct tw_err *err)
{
	/* two threads use it, one after the other */
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	char pragmas[256];

	if (tw_trace_vfs_open(&w->image, flags, &w->db) != SQLITE_OK)
		return tw_trace_sql_fail(w->db, "creating a trace file", err);
	(void)sqlite3_snprintf(sizeof pragmas, pragmas,
	        "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
	        "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-512;"
	        "PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN",
	        TW_TRACE_APPLICATION_ID, TW_TRACE_SCHEMA_VERSION);
	if (sqlite3_exec(w->db, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
	        sqlite3_exec(w->db, (const char *)tw_trace_schema[0].data, NULL, NULL, NULL) !=
	                SQLITE_OK)
		return tw_trace_sql_fail(w->db, "creating a trace file", err);
	for (int i = 0; i < INSERTS; i++)
		if (sqlite3_prepare_v2(w->db, inserts[i], -1, &w->stmts[i], NULL) != SQLITE_OK)
			return tw_trace_sql_fail(w->db, "creating a trace file", err);
	return TW_OK;
}

enum tw_status tw_trace_writer_prepare(struct tw_trace_writer **ret, struct tw_err *err)
{
	struct tw_trace_writer *w = tw_mem_zalloc(1, sizeof *w);
	enum tw_status st;

	if (!w)
		return tw_oom(err);
	w->out.ops = &ops;
	w->written.repairs = w->repairs;
	w->written.duration_ns = -1;
	tw_trace_image_begin(&w->image);
	tw_buf_init(&w->clean, SIZE_MAX / 2);
	tw_buf_init(&w->anr, SIZE_MAX / 2);
	tw_buf_init(&w->payload, SIZE_MAX / 2);
	tw_buf_init(&w->sums_frame, SIZE_MAX / 2);
	tw_buf_init(&w->notes_frame, SIZE_MAX / 2);
	st = create(w, err);
	if (st != TW_OK)
		tw_trace_writer_free(w);
	else
		*ret = w;
	return st;
}

enum tw_status tw_trace_writer_begin(
        struct tw_trace_writer *w, int fd, tw_summary_fn make_summary, struct tw_err *err)
{
	w->image.fd = fd;
	w->frames = tw_frames_new(ZSTD_LEVEL, insert_frame, w);
	w->summary = tw_summary_maker_new(make_summary);
	return w->frames && w->summary ? TW_OK : tw_oom(err);
}

enum tw_status tw_trace_writer_new(const char *path, tw_summary_fn make_summary,
        struct tw_trace_writer **ret, struct tw_err *err)
{
	char *own = tw_mem_alloc(strlen(path) + 1, 1);
	struct tw_trace_writer *w = NULL;
	int fd = own ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	enum tw_status st;

	if (!own)
		return tw_oom(err);
	if (fd < 0)
		st = tw_fail_errno(err, tw_disk_status(errno), "a trace file cannot be created");
	else
		st = tw_trace_writer_prepare(&w, err);
	if (st == TW_OK)
		st = tw_trace_writer_begin(w, fd, make_summary, err);
	if (st == TW_OK) {
		memcpy(own, path, strlen(path) + 1);
		w->path = own;
		*ret = w;
		return TW_OK;
	}
	tw_trace_writer_free(w);
	tw_mem_free(own);
	if (fd >= 0) {
		(void)close(fd);
		(void)unlink(path);
	}
	return st;
}

void tw_trace_writer_leave_unsynced(struct tw_trace_writer *w)
{
	w->unsynced = true;
}

struct tw_trace_out *tw_trace_writer_out(struct tw_trace_writer *w)
{
	return &w->out;
}

static enum tw_status sync_file(int fd, struct tw_err *err)
{
	if (fsync(fd) != 0)
		return tw_fail_errno(
		        err, tw_disk_status(errno), "a trace file cannot be made durable");
	return TW_OK;
}

static enum tw_status write_facts(
        struct tw_trace_writer *w, const struct tw_trace_facts *facts, struct tw_err *err)
{
	sqlite3_stmt *s = w->stmts[INSERT_META];
	enum tw_status st;

	(void)sqlite3_bind_text(s, 1, "format", -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(s, 2, facts->format, -1, SQLITE_TRANSIENT);
	st = run(w, INSERT_META, err);
	if (st == TW_OK)
		st = meta(w, "input_bytes", (int64_t)facts->input_bytes, err);
	if (st == TW_OK)
		st = meta(w, "decoded_bytes", (int64_t)facts->decoded_bytes, err);
	if (st == TW_OK)
		st = meta(w, "decoder_version", facts->decoder_version, err);
	return st;
}

enum tw_status tw_trace_writer_commit(
        struct tw_trace_writer *w, const struct tw_trace_facts *facts, struct tw_err *err)
{
	enum tw_status st = write_threads(w, err);

	if (st == TW_OK)
		st = tw_summary_maker_store(w->summary, w->frames, err);
	if (st == TW_OK)
		st = write_facts(w, facts, err);
	if (st != TW_OK)
		return st;
	if (sqlite3_exec(w->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return tw_trace_sql_fail(w->db, "finishing a trace file", err);
	w->written.anr = tw_buf_str(&w->anr);
	st = tw_trace_image_store(&w->image, tw_packer_zstd(tw_frames_packer(w->frames)),
	        &w->written.file_bytes, err);
	if (st == TW_OK && !w->unsynced)
		st = sync_file(w->image.fd, err);
	w->committed = st == TW_OK;
	return st;
}

struct tw_trace_writer *tw_trace_writer_free(struct tw_trace_writer *w)
{
	if (!w)
		return NULL;
	tw_frames_free(w->frames);
	tw_summary_maker_free(w->summary);
	for (int i = 0; i < INSERTS; i++) {
		(void)sqlite3_finalize(w->stmts[i]);
		w->stmts[i] = NULL;
	}
	(void)sqlite3_close(w->db);
	w->db = NULL;
	tw_trace_image_done(&w->image);
	if (w->path) {
		(void)close(w->image.fd);
		if (!w->committed)
			(void)unlink(w->path);
	}
	tw_mem_free(w->threads);
	tw_buf_done(&w->clean);
	tw_buf_done(&w->anr);
	tw_buf_done(&w->payload);
	tw_buf_done(&w->sums_frame);
	tw_buf_done(&w->notes_frame);
	tw_mem_free(w->path);
	tw_mem_free(w);
	return NULL;
}
