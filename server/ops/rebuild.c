#include "server/ops/check.h"

#include <string.h>

#include "server/base/text/json.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_record.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/storage/blob_store.h"
#include "server/trace/trace_file.h"

struct rebuild {
	const struct tw_rebuild *of;
	struct tw_record_adder *adder;
	struct tw_rebuild_sums sums;
};

static int64_t number_of(const json_t *row, const char *column)
{
	return json_integer_value(json_object_get(row, column));
}

static void set_number(json_t *row, const char *column, int64_t v)
{
	(void)json_object_set_new(row, column, json_integer((json_int_t)v));
}

static void set_text(json_t *row, const char *column, const char *text)
{
	(void)json_object_set_new(row, column, json_string(text));
}

/* --- existing files of a trace --- */

struct files {
	bool upload;  /* all uploaded parts exist */
	bool decoded; /* the decoded file exists, with the size: */
	uint64_t decoded_bytes;
};

/* Removes missing parts from the record. */
static enum tw_status find_parts(
        struct tw_blobs *b, json_t *record, struct files *ret, struct tw_err *err)
{
	json_t *parts = json_object_get(record, "part");
	size_t sent = 0, n = 0;

	for (size_t i = json_array_size(parts); i-- > 0;) {
		const json_t *part = json_array_get(parts, i);
		const bool was_sent = number_of(part, "found") == 0 &&
		                      strcmp(tw_json_text(part, "part"), "system") != 0;
		uint64_t bytes = 0;
		enum tw_status st = tw_blob_stat(b, tw_json_text(part, "sha256"), &bytes, err);

		if (st != TW_OK && st != TW_NOT_FOUND)
			return st;
		n += was_sent;
		sent += was_sent && st == TW_OK;
		if (st == TW_NOT_FOUND)
			(void)json_array_remove(parts, i);
	}
	ret->upload = sent > 0 && sent == n;
	return TW_OK;
}

static enum tw_status find_files(
        struct tw_blobs *b, json_t *record, struct files *ret, struct tw_err *err)
{
	const char *id = tw_json_text(tw_record_row(record, "trace"), "trace_id");
	enum tw_status st = find_parts(b, record, ret, err);

	if (st != TW_OK)
		return st;
	st = tw_trace_stat(b, id, &ret->decoded_bytes, err);
	ret->decoded = st == TW_OK;
	return st == TW_NOT_FOUND ? TW_OK : st;
}

/* --- the state of a trace --- */

/* The record is older than the decoded file and the upload is missing: the columns are read from
 * the decoded file, except losses and repairs, which it does not have. */
static enum tw_status read_decoded(struct tw_blobs *b, json_t *trace, struct tw_err *err)
{
	struct tw_trace_file *f = NULL;
	int fd = -1;
	enum tw_status st = tw_trace_open(b, tw_json_text(trace, "trace_id"), &fd, err);

	if (st == TW_OK)
		st = tw_trace_file_open_fd(fd, NULL, &f, err);
	if (st == TW_OK) {
		const struct tw_trace_info *info = tw_trace_file_info(f);
		const struct tw_trace_facts *facts = tw_trace_file_facts(f);

		set_text(trace, "format", facts->format);
		set_number(trace, "decoder_version", facts->decoder_version);
		set_number(trace, "input_bytes", (int64_t)facts->input_bytes);
		set_number(trace, "decoded_bytes", (int64_t)facts->decoded_bytes);
		set_number(trace, "slices", (int64_t)info->slices);
		set_number(trace, "threads", info->threads);
		set_number(trace, "methods", info->methods);
		set_number(trace, "max_depth", info->max_depth);
		set_number(trace, "duration_ns", tw_trace_file_duration_ns(f));
		set_number(trace, "ready_ms", number_of(trace, "created_ms"));
	}
	tw_trace_file_close(f);
	return st;
}

static bool is_current(const json_t *trace, const struct files *f)
{
	return number_of(trace, "state") == TW_TRACE_READY &&
	       (uint64_t)number_of(trace, "file_bytes") == f->decoded_bytes;
}

/* An archived trace is decoded again too: its share in the fleet's sums is not in the record. */
static enum tw_status set_state(
        struct rebuild *r, json_t *record, bool *ret_queue, struct tw_err *err)
{
	json_t *trace = tw_record_row(record, "trace");
	struct files f = {.upload = false};
	enum tw_status st = find_files(r->of->blobs, record, &f, err);

	if (st != TW_OK)
		return st;
	*ret_queue = false;
	set_number(trace, "has_upload", f.upload);
	if (f.decoded && is_current(trace, &f)) {
		r->sums.ready++;
	} else if (f.upload && number_of(trace, "state") == TW_TRACE_FAILED) {
		r->sums.failed++;
	} else if (f.upload) {
		*ret_queue = true;
		set_number(trace, "state", TW_TRACE_QUEUED);
		set_number(trace, "file_bytes", 0);
		set_text(trace, "file_sha256", "");
		r->sums.queued++;
	} else if (f.decoded) { /* its SHA-256 is not known to be right: `check` reads it through */
		st = read_decoded(r->of->blobs, trace, err);
		set_number(trace, "state", TW_TRACE_READY);
		set_number(trace, "file_bytes", (int64_t)f.decoded_bytes);
		set_text(trace, "file_sha256", "");
		r->sums.ready += st == TW_OK;
	} else {
		st = tw_fail(err, TW_NOT_FOUND,
		        "the upload and the decoded file of the trace are both missing");
	}
	return st;
}

static enum tw_status add(struct rebuild *r, json_t *record, struct tw_err *err)
{
	bool queue = false;
	enum tw_status st = TW_OK;

	if (tw_record_row(record, "trace"))
		st = set_state(r, record, &queue, err);
	else
		r->sums.builds++;
	return st == TW_OK ? tw_record_add(r->adder, record, queue, err) : st;
}

/* Errors of one record; the other records are rebuilt. */
static bool concerns_record_only(enum tw_status st)
{
	return st == TW_NOT_FOUND || st == TW_CORRUPT || st == TW_CONFLICT || st == TW_UNSUPPORTED;
}

static enum tw_status rebuild_record(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct rebuild *r = arg;
	json_t *record = NULL;
	struct tw_err why = {.msg = ""};
	enum tw_status st = tw_record_read(r->of->blobs, f->key, &record, &why);

	r->sums.records++;
	if (st == TW_OK)
		st = add(r, record, &why);
	json_decref(record);
	if (r->of->step)
		r->of->step(r->of->arg, &r->sums);
	if (st == TW_OK)
		return TW_OK;
	if (!concerns_record_only(st)) {
		tw_err_copy(err, &why);
		return st;
	}
	r->sums.skipped++;
	r->of->skip(r->of->arg, f->key, why.msg);
	return TW_OK;
}

enum tw_status tw_rebuild_run(
        const struct tw_rebuild *of, struct tw_rebuild_sums *ret, struct tw_err *err)
{
	struct rebuild r = {.of = of};
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(of->blobs, &store);
	enum tw_status st = tw_record_adder_new(of->catalogue, &r.adder, err);

	if (st != TW_OK)
		return st;
	st = engine->list(store, "records", rebuild_record, &r, err);
	if (st == TW_OK && r.sums.records == 0)
		st = tw_fail(err, TW_NOT_FOUND,
		        "no records/ to rebuild a catalogue from: servers write them since "
		        "version 0.1.0");
	st = tw_record_adder_end(r.adder, st, err);
	*ret = r.sums;
	return st;
}
