#include "server/ops/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file/sha256.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/local_trace.h"
#include "server/trace/trace_file.h"

enum { PATH_BYTES = 1500, TEXT_BYTES = 400 };

struct checker {
	const struct tw_check *c;
	struct tw_check_sums sums;
	bool is_unreachable; /* the store was unreachable, for the reason: */
	struct tw_err unreachable_err;
};

/* The result for one file. */
enum verdict { INTACT, MISSING, DAMAGED, UNREADABLE };
static const char *const verdict_names[] = {"whole", "missing", "damaged", "unreadable"};

static void report_finding(
        struct checker *k, const struct tw_stored_file *f, const char *text, bool repaired)
{
	const struct tw_finding finding = {f->project_id, f->id, f->what, text, repaired};

	k->sums.wrong++;
	k->sums.repaired += repaired;
	k->c->found(k->c->arg, &finding);
}

static void step(const struct checker *k)
{
	if (k->c->step)
		k->c->step(k->c->arg, &k->sums);
}

/* --- one file --- */

static enum verdict check_fd(struct checker *k, int fd, const struct tw_stored_file *f)
{
	char sha256[TW_SHA256_HEX];
	uint64_t bytes = 0;
	struct stat s;

	if (fstat(fd, &s) != 0)
		return UNREADABLE;
	if (f->bytes && (uint64_t)s.st_size != f->bytes)
		return DAMAGED;
	if (k->c->quick || !f->sha256[0])
		return INTACT;
	if (tw_sha256_fd(fd, sha256, &bytes, NULL) != TW_OK)
		return UNREADABLE;
	k->sums.bytes += bytes;
	return strcmp(sha256, f->sha256) == 0 ? INTACT : DAMAGED;
}

/* An unreachable store is not a finding about its files. */
static enum verdict verdict_of(struct checker *k, enum tw_status st, const struct tw_err *why)
{
	if (st == TW_BUSY && tw_blobs_remote(k->c->blobs)) {
		k->unreachable_err = *why;
		k->is_unreachable = true;
	}
	return st == TW_NOT_FOUND ? MISSING : st == TW_CORRUPT ? DAMAGED : UNREADABLE;
}

/* Compares existence and size, without downloading the file. */
static enum verdict check_size(struct checker *k, const struct tw_stored_file *f, bool decoded)
{
	uint64_t bytes = 0;
	struct tw_err why;
	enum tw_status st = decoded ? tw_trace_stat(k->c->blobs, f->id, &bytes, &why)
	                            : tw_blob_stat(k->c->blobs, f->sha256, &bytes, &why);

	if (st != TW_OK)
		return verdict_of(k, st, &why);
	return f->bytes && f->bytes != bytes ? DAMAGED : INTACT;
}

/* Reads every frame of a thread; each has a checksum. */
static enum tw_status read_thread(
        struct tw_trace_file *t, uint32_t thread_id, struct tw_chunk *chunk, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new((size_t)1 << 30);
	const struct tw_chunk_row *rows;
	struct tw_tree tree;
	uint32_t n = 0;
	enum tw_status st = a ? tw_trace_file_chunks(t, thread_id, &rows, &n, err) : tw_oom(err);

	for (uint32_t i = 0; st == TW_OK && i < n; i++)
		st = tw_trace_file_chunk(t, &rows[i], chunk, err);
	if (st == TW_OK)
		st = tw_trace_file_tree(t, thread_id, a, &tree, err);
	tw_arena_free(a);
	return st;
}

/* For decoded files that a rebuild found (rebuild.c): the catalogue has no SHA-256 of them. */
static enum verdict read_through(int fd)
{
	const struct tw_thread_info *threads = NULL;
	const struct tw_method_info *methods;
	struct tw_trace_file *t = NULL;
	struct tw_chunk chunk;
	uint32_t n_methods, n = 0;
	enum tw_status st = tw_trace_file_open_on(fd, &t, NULL);

	tw_chunk_init(&chunk);
	if (st == TW_OK)
		st = tw_trace_file_methods(t, &methods, &n_methods, NULL);
	if (st == TW_OK)
		threads = tw_trace_file_threads(t, &n);
	for (uint32_t i = 0; st == TW_OK && i < n; i++)
		st = read_thread(t, threads[i].thread_id, &chunk, NULL);
	tw_chunk_done(&chunk);
	tw_trace_file_close(t);
	return st == TW_OK ? INTACT : st == TW_IO || st == TW_NOMEM ? UNREADABLE : DAMAGED;
}

static enum verdict check_file(struct checker *k, const struct tw_stored_file *f, bool decoded)
{
	struct tw_err why;
	enum verdict v;
	int fd = -1;
	enum tw_status st;

	if (k->c->quick && tw_blobs_remote(k->c->blobs))
		return check_size(k, f, decoded);
	st = decoded ? tw_trace_open(k->c->blobs, f->id, &fd, &why)
	             : tw_blob_open(k->c->blobs, f->sha256, &fd, &why);
	if (st != TW_OK)
		return verdict_of(k, st, &why);
	v = check_fd(k, fd, f);
	if (decoded && v == INTACT && !f->sha256[0] && !k->c->quick)
		v = read_through(fd);
	(void)close(fd);
	return v;
}

/* A running server may have deleted the trace or decoded it again since the page was read. */
static bool is_still_damaged(struct checker *k, struct tw_stored_file *f, struct tw_arena *a)
{
	struct tw_stored_file before = *f, *rows;
	const size_t last = strlen(f->id) - 1;
	size_t n = 0;

	/* an id that sorts before f->id and after every smaller one in use */
	before.id = tw_arena_printf(a, "%.*s%c~", (int)last, f->id, f->id[last] - 1);
	if (!before.id)
		return true;
	if (tw_catalogue_stored_traces(k->c->catalogue, &before, 1, a, &rows, &n, NULL) != TW_OK)
		return true;
	if (n == 0 || strcmp(rows->id, f->id) != 0)
		return false;
	*f = *rows;
	return check_file(k, f, true) != INTACT;
}

static bool upload_is_intact(struct checker *k, const struct tw_stored_file *f, struct tw_arena *a)
{
	struct tw_part *parts;
	bool intact = true;
	size_t n = 0;

	if (tw_catalogue_trace_parts(k->c->catalogue, f->project_id, f->id, a, &parts, &n, NULL) !=
	        TW_OK)
		return false;
	for (size_t i = 0; i < n && intact; i++) {
		const struct tw_stored_file part = {
		        f->project_id, f->id, parts[i].part, parts[i].sha256, parts[i].bytes};

		intact = check_file(k, &part, false) == INTACT;
	}
	return intact && n > 0;
}

static enum tw_status status_of_store(const struct checker *k, struct tw_err *err)
{
	if (k->is_unreachable)
		tw_err_copy(err, &k->unreachable_err);
	return k->is_unreachable ? TW_BUSY : TW_OK;
}

static enum tw_status check_decoded(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct checker *k = arg;
	enum verdict v = check_file(k, f, true);
	char text[TEXT_BYTES];
	bool intact, repaired;

	k->sums.decoded++;
	step(k);
	if (v == INTACT || k->is_unreachable || !is_still_damaged(k, f, a))
		return status_of_store(k, err);
	intact = upload_is_intact(k, f, a);
	if (k->is_unreachable)
		return status_of_store(k, err);
	repaired = intact && k->c->repair &&
	           tw_catalogue_trace_requeue(k->c->catalogue, f->project_id, f->id, NULL) == TW_OK;
	(void)snprintf(text, sizeof text, "the decoded file of trace %s is %s; %s", f->id,
	        verdict_names[v],
	        repaired ? "it is queued to be decoded again from its upload"
	        : intact ? "its upload is intact: --repair decodes it again"
	                 : "its upload is damaged too, so it cannot be decoded again");
	report_finding(k, f, text, repaired);
	return TW_OK;
}

/* --- uploads and mappings --- */

static bool is_referenced(struct checker *k, const char *sha256)
{
	bool referenced = true;

	return tw_catalogue_has_blob(k->c->catalogue, sha256, &referenced, NULL) != TW_OK ||
	       referenced;
}

static enum tw_status check_part(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct checker *k = arg;
	enum verdict v = check_file(k, f, false);
	char text[TEXT_BYTES];

	(void)a;
	k->sums.uploads++;
	step(k);
	if (v == INTACT || k->is_unreachable || !is_referenced(k, f->sha256))
		return status_of_store(k, err);
	(void)snprintf(text, sizeof text,
	        "the upload of trace %s (part %s) is %s: it cannot be decoded again", f->id,
	        f->what, verdict_names[v]);
	report_finding(k, f, text, false);
	return TW_OK;
}

/* `image` is compiled from the source text in the row before it. */
static enum tw_status store_image(struct checker *k, const struct tw_stored_file *image,
        const struct tw_buf *bytes, struct tw_err *err)
{
	struct tw_blob_writer *w = NULL;
	char sha256[TW_SHA256_HEX] = "";
	enum tw_status st = tw_blob_delete(k->c->blobs, image->sha256, err);

	if (st == TW_OK)
		st = tw_blob_begin(k->c->blobs, bytes->len, &w, err);
	if (st == TW_OK)
		st = tw_blob_write(w, bytes->data, bytes->len, err);
	if (st == TW_OK)
		st = tw_blob_commit(w, sha256, err);
	if (st != TW_OK)
		(void)tw_blob_discard(w);
	else if (strcmp(sha256, image->sha256) != 0)
		st = tw_fail(err, TW_CONFLICT, "another version compiled it");
	return st;
}

static bool compile_again(
        struct checker *k, const struct tw_stored_file *source, const struct tw_stored_file *image)
{
	const enum tw_mapping_kind kind =
	        tw_str_starts(tw_str_of(image->id), TW_STR(TW_NATIVE_BUILD)) ? TW_MAPPING_SYMBOLS
	        : strcmp(source->what, "retrace") == 0                       ? TW_MAPPING_RETRACE
	                                                                     : TW_MAPPING_METHODS;
	struct tw_buf made;
	char path[64];
	int fd = -1;
	enum tw_status st = tw_blob_open(k->c->blobs, source->sha256, &fd, NULL);

	if (st != TW_OK)
		return false;
	(void)snprintf(path, sizeof path, "/dev/fd/%d", fd);
	tw_buf_init(&made, SIZE_MAX / 2);
	st = tw_local_compile(kind, path, &made, NULL);
	if (st == TW_OK)
		st = store_image(k, image, &made, NULL);
	tw_buf_done(&made);
	(void)close(fd);
	return st == TW_OK;
}

static enum tw_status check_mapping(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct checker *k = arg;
	enum verdict v = check_file(k, f, false);
	const struct tw_stored_file *source = f - 1;
	bool is_image = strstr(f->what, " image") != NULL;
	bool is_upload = strstr(f->what, " upload") != NULL; /* not compiled yet */
	bool repaired = false;
	char text[TEXT_BYTES];

	(void)a;
	k->sums.mappings++;
	step(k);
	if (v == INTACT || k->is_unreachable || !is_referenced(k, f->sha256))
		return status_of_store(k, err);
	if (is_image && k->c->repair && check_file(k, source, false) == INTACT)
		repaired = compile_again(k, source, f);
	(void)snprintf(text, sizeof text, "the %s of build %.200s is %s; %s", f->what, f->id,
	        verdict_names[v],
	        repaired    ? "it was compiled again"
	        : is_image  ? "--repair compiles it again, or send the mapping again"
	        : is_upload ? "send the mapping again"
	                    : "send it again to keep its text");
	report_finding(k, f, text, repaired);
	return TW_OK;
}

/* --- all of them --- */

static void report_catalogue(void *arg, const char *text)
{
	const struct tw_stored_file intact = {"", "", "catalogue", "", 0};

	report_finding(arg, &intact, text, false);
}

enum tw_status tw_check_run(
        const struct tw_check *check, struct tw_check_sums *ret, struct tw_err *err)
{
	struct checker k = {.c = check};
	enum tw_status st = tw_catalogue_verify(check->catalogue, report_catalogue, &k, err);

	if (st == TW_OK)
		st = tw_stored_each(
		        check->catalogue, tw_catalogue_stored_parts, check_part, &k, err);
	if (st == TW_OK)
		st = tw_stored_each(
		        check->catalogue, tw_catalogue_stored_mappings, check_mapping, &k, err);
	if (st == TW_OK)
		st = tw_stored_each(
		        check->catalogue, tw_catalogue_stored_traces, check_decoded, &k, err);
	if (st == TW_OK)
		*ret = k.sums;
	return st;
}
