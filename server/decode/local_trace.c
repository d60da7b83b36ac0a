#include "server/decode/local_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/bundle.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/base/file/io.h"
#include "server/decode/compile_mapping.h"
#include "server/query/query.h"

enum { READ_BYTES = 256 << 10, PATH_BYTES = 512, BUNDLE_HEAD = TW_DECODER_HEAD_BYTES };

static enum tw_status fail_errno(const char *path, struct tw_err *err)
{
	char text[96];
	int why = errno;

	return tw_fail(err, why == ENOENT ? TW_NOT_FOUND : TW_IO, "%.120s: %s", path,
	        strerror_r(why, text, sizeof text));
}

enum tw_status tw_local_read(const char *path,
        enum tw_status (*push)(void *arg, const uint8_t *p, size_t n, struct tw_err *err),
        void *arg, uint64_t *ret_bytes, struct tw_err *err)
{
	int fd = strcmp(path, "-") == 0 ? dup(0) : open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *piece = tw_mem_alloc(READ_BYTES, 1);
	enum tw_status st = TW_OK;
	ssize_t n = 1;

	*ret_bytes = 0;
	if (fd < 0 || !piece)
		st = fd < 0 ? fail_errno(path, err) : tw_oom(err);
	while (st == TW_OK && n > 0) {
		n = tw_read_some(fd, piece, READ_BYTES);
		if (n < 0)
			st = fail_errno(path, err);
		else if (n > 0)
			st = push(arg, piece, (size_t)n, err);
		*ret_bytes += n > 0 ? (uint64_t)n : 0;
	}
	if (fd >= 0)
		(void)close(fd);
	tw_mem_free(piece);
	return st;
}

static enum tw_status push_decoder(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_decoder_push(arg, p, n, err);
}

static enum tw_status decode_file(const char *path, const char *part, struct tw_arena *a,
        struct tw_sink *sink, struct tw_trace_facts *ret, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_decoder *d = tw_decoder_new(a, &limits, NULL, part, sink);
	uint64_t bytes = 0;
	enum tw_status st = d ? tw_local_read(path, push_decoder, d, &bytes, err) : tw_oom(err);

	if (st == TW_OK)
		st = tw_decoder_finish(d, err);
	if (st == TW_OK)
		*ret = (struct tw_trace_facts){.format = tw_decoder_format(d)->name,
		        .input_bytes = bytes,
		        .decoded_bytes = tw_decoder_bytes(d),
		        .decoder_version = TW_DECODER_VERSION};
	tw_decoder_free(d);
	return st;
}

struct input {
	const char *path;
	struct tw_builder *builder; /* NULL: none, or the caller has its own sink */
	uint64_t bytes;
};

static enum tw_status feed(void *arg, tw_bytes_fn push, void *to, struct tw_err *err)
{
	struct input *f = arg;

	return tw_local_read(f->path, push, to, &f->bytes, err);
}

static void side_of_bundle(void *arg, enum tw_bundle_side what)
{
	const struct input *f = arg;

	if (!f->builder)
		return;
	if (what == TW_BUNDLE_ANR)
		tw_builder_next_input_at_end(f->builder);
	else
		tw_builder_next_input(f->builder);
	if (what == TW_BUNDLE_SYSTEM)
		tw_builder_input_is_system(f->builder);
}

static enum tw_status decode_bundle(struct input *f, struct tw_arena *a, struct tw_sink *sink,
        struct tw_trace_facts *ret, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	const struct tw_bundle_task task = {.arena = a,
	        .limits = &limits,
	        .sink = sink,
	        .arg = f,
	        .feed = feed,
	        .side = side_of_bundle};
	const struct tw_format *format = NULL;
	uint64_t bytes = 0;
	enum tw_status st = tw_bundle_decode(&task, &format, &bytes, err);

	if (st == TW_OK)
		*ret = (struct tw_trace_facts){.format = format->name,
		        .input_bytes = f->bytes,
		        .decoded_bytes = bytes,
		        .decoder_version = TW_DECODER_VERSION};
	return st;
}

/* Standard input cannot be read twice: it is never a bundle. */
static bool is_bundle(const char *path)
{
	static uint8_t head[BUNDLE_HEAD];
	struct tw_limits limits = tw_limits_default();
	int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? tw_read_full(fd, head, sizeof head) : 0;

	if (fd >= 0)
		(void)close(fd);
	return n > 0 && tw_bundle_is(head, (size_t)n, &limits);
}

enum tw_status tw_local_decode(const char *path, const char *part, struct tw_sink *sink,
        struct tw_builder *builder, struct tw_trace_facts *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(tw_limits_default().max_memory_bytes);
	struct input f = {path, builder, 0};
	enum tw_status st;

	if (!a)
		st = tw_oom(err);
	else if ((!part || strcmp(part, "trace") == 0) && is_bundle(path))
		st = decode_bundle(&f, a, sink, ret, err);
	else
		st = decode_file(path, part, a, sink, ret, err);
	tw_arena_free(a);
	return st;
}

enum tw_status tw_local_compile(
        enum tw_mapping_kind kind, const char *path, struct tw_buf *image, struct tw_err *err)
{
	const struct tw_limits limits = tw_limits_default();
	union tw_mapping_stats stats;
	struct input f = {path, NULL, 0};

	return tw_compile_mapping(kind, &limits, feed, &f, image, &stats, err);
}

void tw_local_names_init(struct tw_local_names *n)
{
	*n = (struct tw_local_names){0};
	for (size_t i = 0; i < TW_LOCAL_SYMBOLS; i++)
		tw_buf_init(&n->symbols[i], SIZE_MAX / 2);
	n->natives.maps = n->maps;
	tw_buf_init(&n->images[0], SIZE_MAX / 2);
	tw_buf_init(&n->images[1], SIZE_MAX / 2);
}

void tw_local_names_done(struct tw_local_names *n)
{
	tw_buf_done(&n->images[0]);
	tw_buf_done(&n->images[1]);
	for (size_t i = 0; i < TW_LOCAL_SYMBOLS; i++)
		tw_buf_done(&n->symbols[i]);
}

enum tw_status tw_local_names_open(struct tw_local_names *n, struct tw_err *err)
{
	const struct tw_buf *map = &n->images[0];
	const struct tw_buf *retrace = &n->images[1];
	enum tw_status st = TW_OK;

	if (map->len)
		st = tw_map_open(map->data, map->len, &n->map, err);
	if (st == TW_OK && retrace->len)
		st = tw_retrace_open(retrace->data, retrace->len, &n->retrace, err);
	for (size_t i = 0; st == TW_OK && i < TW_LOCAL_SYMBOLS && n->symbols[i].len; i++) {
		st = tw_native_open(n->symbols[i].data, n->symbols[i].len, &n->maps[i], err);
		n->natives.n = i + 1;
	}
	n->names = (struct tw_names){map->len ? &n->map : NULL, retrace->len ? &n->retrace : NULL,
	        n->natives.n ? &n->natives : NULL};
	return st;
}

enum tw_status tw_local_names_read(
        struct tw_local_names *n, const struct tw_local_files *of, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (of->n_symbols > TW_LOCAL_SYMBOLS - n->natives.n)
		return tw_fail(err, TW_BAD_REQUEST, "at most %d files of symbols are read",
		        TW_LOCAL_SYMBOLS);
	if (of->mapping) {
		tw_buf_clear(&n->images[0]);
		st = tw_local_compile(TW_MAPPING_METHODS, of->mapping, &n->images[0], err);
	}
	if (st == TW_OK && of->retrace) {
		tw_buf_clear(&n->images[1]);
		st = tw_local_compile(TW_MAPPING_RETRACE, of->retrace, &n->images[1], err);
	}
	for (size_t i = 0; st == TW_OK && i < of->n_symbols; i++)
		st = tw_local_compile(
		        TW_MAPPING_SYMBOLS, of->symbols[i], &n->symbols[n->natives.n + i], err);
	return st == TW_OK ? tw_local_names_open(n, err) : st;
}

static enum tw_status write_trace(struct tw_builder *b, const char *path,
        const struct tw_trace_facts *facts, struct tw_err *err)
{
	struct tw_trace_writer *w = NULL;
	enum tw_status st = tw_trace_writer_new(path, tw_query_summary, &w, err);

	if (st == TW_OK)
		st = tw_builder_write(b, tw_trace_writer_out(w), err);
	if (st == TW_OK)
		st = tw_trace_writer_commit(w, facts, err);
	tw_trace_writer_free(w);
	return st;
}

static enum tw_status decode_to(
        const char *path, const char *threads, const char *out, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_trace_facts facts = {.format = ""};
	enum tw_status st = TW_OK;

	if (!b)
		return tw_oom(err);
	if (threads)
		st = tw_local_decode(threads, "threads", tw_builder_sink(b), b, &facts, err);
	if (st == TW_OK)
		st = tw_local_decode(path, "trace", tw_builder_sink(b), b, &facts, err);
	if (st == TW_OK)
		st = write_trace(b, out, &facts, err);
	tw_builder_free(b);
	return st;
}

static bool is_trace_file(const char *path)
{
	char head[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? tw_read_full(fd, head, sizeof head) : 0;

	if (fd >= 0)
		(void)close(fd);
	return n > 0 && tw_trace_file_is(head, (size_t)n);
}

enum tw_status tw_local_open(
        const char *path, const char *threads, struct tw_trace_file **ret, struct tw_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char dir[PATH_BYTES];
	char file[PATH_BYTES + 16];
	enum tw_status st;

	if (is_trace_file(path))
		return tw_trace_file_open(path, ret, err);
	(void)snprintf(dir, sizeof dir, "%.400s/tracewell-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return fail_errno(dir, err);
	(void)snprintf(file, sizeof file, "%s/trace.db", dir);
	st = decode_to(path, threads, file, err);
	if (st == TW_OK)
		st = tw_trace_file_open(file, ret, err);
	(void)unlink(file); /* remains readable until it is closed */
	(void)rmdir(dir);
	return st;
}
