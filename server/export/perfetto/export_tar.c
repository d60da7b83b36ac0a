/* export_tar.c - a plan as a tar: the device's trace, ours, and a manifest (export_plan.h). */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/base/file/tar_head.h"
#include "server/base/text/json_write.h"
#include "server/export/perfetto/export_plan.h"

enum { MANIFEST_BYTES = 64 << 10, COUNT_BYTES = 256 << 10 };

static const char system_name[] = "device.perfetto-trace";
static const char our_name[] = "tracewell.perfetto-trace";
static const char manifest_name[] = "perfetto_manifest.json";

enum stage { MANIFEST, SYSTEM, OURS, END, ENDED };

struct tar {
	struct tw_plan *plan;
	enum stage stage;
	struct tw_buf piece;
	size_t taken;
	uint64_t left; /* of the current member */
	uint64_t at;   /* offset in the device's trace */
	struct tw_pull ours;
	uint32_t pad; /* padding after the member */
};

/* --- headers --- */

static enum tw_status put_header(
        struct tar *t, const char *name, uint64_t bytes, struct tw_err *err)
{
	uint8_t h[TW_TAR_BLOCK];

	if (!tw_tar_head(h, name, 0644, bytes))
		return tw_fail(
		        err, TW_TOO_LARGE, "a tar member cannot exceed 8 GiB; use format=perfetto");
	if (tw_buf_add(&t->piece, h, sizeof h) != TW_OK)
		return tw_oom(err);
	t->left = bytes;
	t->pad = (uint32_t)tw_tar_pad(bytes);
	return TW_OK;
}

static enum tw_status put_zeros(struct tar *t, size_t n, struct tw_err *err)
{
	static const uint8_t zeros[TW_TAR_BLOCK * 2];

	return tw_buf_add(&t->piece, zeros, n) == TW_OK ? TW_OK : tw_oom(err);
}

/* --- manifest --- */

static void add_fact(void *arg, const char *key, const char *text, int64_t number)
{
	struct tw_json *j = arg;

	tw_json_key(j, key);
	if (text)
		tw_json_str(j, tw_str_of(text));
	else
		tw_json_int(j, number);
}

static void add_file(struct tw_json *j, const char *path)
{
	tw_json_open(j, '{');
	tw_json_key_text(j, "path", path);
	tw_json_close(j, '}');
}

/* The name of a clock in a manifest; NULL if manifests have none for it. */
static const char *clock_name(uint32_t id)
{
	static const char *const names[] = {NULL, "REALTIME", "REALTIME_COARSE", "MONOTONIC",
	        "MONOTONIC_COARSE", "MONOTONIC_RAW", "BOOTTIME"};

	return id < sizeof names / sizeof *names ? names[id] : NULL;
}

static void put_trace_time(struct tw_json *j, uint32_t clock)
{
	if (!clock_name(clock))
		return;
	tw_json_key_open(j, "trace_time", '{');
	tw_json_key_text(j, "clock", clock_name(clock));
	tw_json_close(j, '}');
}

/* Our times use a clock of the device's trace, which relates the two. */
static enum tw_status put_manifest(struct tar *t, struct tw_err *err)
{
	struct tw_buf text;
	struct tw_json j = tw_json_to(&text);
	enum tw_status st;

	tw_buf_init(&text, MANIFEST_BYTES);
	tw_json_open(&j, '{');
	tw_json_key_open(&j, "perfetto_manifest", '{');
	tw_json_key_int(&j, "version", 1);
	put_trace_time(&j, t->plan->ours[0].sync.clock);
	tw_json_key_open(&j, "files", '[');
	if (t->plan->system)
		add_file(&j, system_name);
	add_file(&j, our_name);
	tw_json_close(&j, ']');
	tw_json_key_open(&j, "attributes", '{');
	tw_plan_origin(t->plan, add_fact, &j);
	tw_plan_facts(t->plan, add_fact, &j);
	tw_json_close(&j, '}');
	tw_json_close(&j, '}');
	tw_json_close(&j, '}');
	st = tw_buf_status(&text) == TW_OK ? put_header(t, manifest_name, text.len, err)
	                                   : tw_oom(err);
	if (st == TW_OK)
		st = tw_buf_add(&t->piece, text.data, text.len);
	t->left = 0;
	tw_buf_done(&text);
	return st == TW_OK ? put_zeros(t, t->pad, err) : st;
}

/* --- members --- */

/* Reads the length determined when the export was planned; uploads do not change. */
static enum tw_status read_system(
        struct tar *t, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	const ssize_t n = tw_pread_full(
	        t->plan->system_fd, out, cap < t->left ? cap : (size_t)t->left, t->at);

	if (n <= 0)
		return tw_fail_errno(err, TW_IO, "the device's Perfetto trace cannot be read");
	t->at += (uint64_t)n;
	*ret_n = (size_t)n;
	return TW_OK;
}

static enum tw_status count_ours(struct tar *t, uint64_t *ret, struct tw_err *err)
{
	uint8_t *out = tw_mem_alloc(COUNT_BYTES, 1);
	struct tw_pull ours;
	enum tw_status st;
	size_t n = 1;

	*ret = 0;
	if (!out)
		return tw_oom(err);
	st = tw_join_open(t->plan, false, &ours, err);
	if (st != TW_OK) {
		tw_mem_free(out);
		return st;
	}
	while (st == TW_OK && n) {
		st = ours.read(ours.arg, out, COUNT_BYTES, &n, err);
		*ret += n;
	}
	ours.free(ours.arg);
	tw_mem_free(out);
	return st;
}

static enum tw_status begin_ours(struct tar *t, struct tw_err *err)
{
	uint64_t bytes;
	enum tw_status st = count_ours(t, &bytes, err);

	if (st == TW_OK)
		st = tw_join_open(t->plan, false, &t->ours, err);
	return st == TW_OK ? put_header(t, our_name, bytes, err) : st;
}

static enum tw_status read_ours(
        struct tar *t, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	size_t most = cap < t->left ? cap : (size_t)t->left;
	enum tw_status st = t->ours.read(t->ours.arg, out, most, ret_n, err);

	if (st == TW_OK && *ret_n == 0)
		return tw_fail(err, TW_BUG, "two passes of an export differed");
	return st;
}

/* --- reading --- */

/* The padding between members. */
static enum tw_status next_stage(struct tar *t, struct tw_err *err)
{
	switch (t->stage) {
	case MANIFEST:
		t->stage = t->plan->system ? SYSTEM : OURS;
		return put_manifest(t, err);
	case SYSTEM:
		if (t->at == 0 && t->plan->system_bytes)
			return put_header(t, system_name, t->plan->system_bytes, err);
		t->stage = OURS;
		return put_zeros(t, t->pad, err);
	case OURS:
		if (!t->ours.read)
			return begin_ours(t, err);
		t->stage = END;
		return put_zeros(t, t->pad, err);
	case END:
		t->stage = ENDED;
		return put_zeros(t, (size_t)TW_TAR_BLOCK * 2, err);
	case ENDED:
		break;
	}
	return TW_OK;
}

static enum tw_status read_tar(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct tar *t = arg;
	size_t n;

	while (t->taken == t->piece.len && t->left == 0 && t->stage != ENDED) {
		enum tw_status st;

		tw_buf_clear(&t->piece);
		t->taken = 0;
		st = next_stage(t, err);
		if (st != TW_OK)
			return st;
	}
	n = t->piece.len - t->taken;
	if (n == 0 && t->left) {
		enum tw_status st = t->stage == SYSTEM ? read_system(t, out, cap, ret_n, err)
		                                       : read_ours(t, out, cap, ret_n, err);

		t->left -= st == TW_OK ? *ret_n : 0;
		return st;
	}
	n = n < cap ? n : cap;
	if (n)
		memcpy(out, t->piece.data + t->taken, n);
	t->taken += n;
	*ret_n = n;
	return TW_OK;
}

static void free_tar(void *arg)
{
	struct tar *t = arg;

	if (t->ours.free)
		t->ours.free(t->ours.arg);
	tw_buf_done(&t->piece);
	tw_mem_free(t);
}

enum tw_status tw_tar_open(struct tw_plan *plan, struct tw_pull *ret, struct tw_err *err)
{
	struct tar *t = tw_mem_zalloc(1, sizeof *t);

	if (!t)
		return tw_oom(err);
	t->plan = plan;
	tw_buf_init(&t->piece, (size_t)MANIFEST_BYTES * 4);
	*ret = (struct tw_pull){read_tar, free_tar, t};
	return TW_OK;
}
