/*
 * jobs_map.c - a mapping compiled by a limited child, and what every job tells its child.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blob.h"
#include "child.h"
#include "jobs.h"
#include "jobs_internal.h"

enum { PATH_BYTES = 1500 };

static _Atomic uint64_t serial; /* of outputs */

json_t *tw_jobs_limits(const struct tw_config *c)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "memory_bytes",
	        (json_int_t)c->worker_memory_bytes, "cpu_s", (json_int_t)c->worker_cpu_s,
	        "file_bytes", (json_int_t)8 << 30, "decoded_bytes",
	        (json_int_t)c->limits.max_decoded_bytes, "ratio", (json_int_t)c->limits.max_ratio,
	        "slices", (json_int_t)c->limits.max_slices, "depth",
	        (json_int_t)c->limits.max_depth, "threads", (json_int_t)c->limits.max_threads,
	        "name_bytes", (json_int_t)c->limits.max_name_bytes, "jail", c->worker_jail);
}

enum tw_status tw_jobs_open_output(const char *path, int *ret, struct tw_err *err)
{
	int fd;

	(void)unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		bool full = errno == ENOSPC || errno == EDQUOT;

		return tw_fail(err, full ? TW_FULL : TW_IO, TW_NO_OFFSET,
		        "%s: a place for what is decoded cannot be made (errno %d)",
		        full ? "the disk is full" : "the disk failed", errno);
	}
	*ret = fd;
	return TW_OK;
}

void tw_jobs_child_error(const json_t *answer, struct tw_err *ret)
{
	const json_t *e = json_object_get(answer, "error");
	const char *word = json_string_value(json_object_get(e, "status"));
	const char *message = json_string_value(json_object_get(e, "message"));
	json_int_t offset = json_integer_value(json_object_get(e, "offset"));

	(void)tw_fail(ret, word ? tw_status_of_word(word) : TW_BUG,
	        offset < 0 ? TW_NO_OFFSET : (uint64_t)offset, "%s", message ? message : "");
}

static enum tw_status store_image(
        struct tw_app *app, const char *path, char ret_sha256[65], struct tw_err *err)
{
	struct tw_blob_writer *w = NULL;
	enum tw_status st = tw_blob_begin(app->blobs, UINT64_MAX, &w, err);

	if (st == TW_OK)
		st = tw_jobs_copy_file(path, w, err);
	if (st == TW_OK)
		st = tw_blob_commit(w, ret_sha256, err);
	if (st != TW_OK)
		tw_blob_discard(w);
	return st;
}

static enum tw_status run_child(struct tw_jobs *j, const char *kind, int input, const char *out,
        json_t **ret, struct tw_err *err)
{
	const struct tw_config *c = tw_jobs_app(j)->config;
	json_t *limits = tw_jobs_limits(c);
	json_t *task;
	struct tw_child_task t = {NULL, -1, -1, &input, 1, c->worker_wall_s};
	struct tw_child child;
	struct tw_child_end end;
	enum tw_status st;

	if (limits)
		(void)json_object_set_new(
		        limits, "decoded_bytes", json_integer((json_int_t)c->max_mapping_bytes));
	t.task = task = json_pack("{s:s,s:o}", "kind", kind, "limits", limits);
	if (!task)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to read a mapping");
	st = tw_jobs_open_output(out, &t.output, err);
	if (st == TW_OK) {
		st = tw_child_start(&child, &t, err);
		(void)close(t.output);
	}
	json_decref(task);
	if (st != TW_OK)
		return st;
	tw_child_wait(&child);
	st = tw_child_collect(&child, ret, &end, err);
	if (st == TW_OK && !json_is_true(json_object_get(*ret, "ok"))) {
		struct tw_err why;

		tw_jobs_child_error(*ret, &why);
		json_decref(*ret);
		*ret = NULL;
		return tw_fail(err, why.code, why.offset, "%s", why.msg);
	}
	return st;
}

enum tw_status tw_jobs_run_map(struct tw_jobs *j, const char *kind, const char *source_sha256,
        char ret_image_sha256[65], json_t **ret_summary, struct tw_err *err)
{
	char name[96];
	char out[PATH_BYTES];
	json_t *answer = NULL;
	int input = -1;
	enum tw_status st = tw_blob_open(tw_jobs_app(j)->blobs, source_sha256, &input, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(name, sizeof name, "map-%d-%llu", (int)getpid(),
	        (unsigned long long)atomic_fetch_add(&serial, 1));
	tw_spool_path(tw_jobs_app(j)->blobs, name, out, sizeof out);
	st = run_child(j, kind, input, out, &answer, err);
	(void)close(input);
	if (st == TW_OK)
		st = store_image(tw_jobs_app(j), out, ret_image_sha256, err);
	if (st == TW_OK)
		*ret_summary = json_incref(json_object_get(answer, "summary"));
	(void)unlink(out);
	json_decref(answer);
	return st;
}
