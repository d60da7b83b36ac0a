/*
 * export_perfetto.c - see the header: combines a plan, a writer and a compressor.
 */
#include "server/export/perfetto/export_perfetto.h"

#include "server/export/perfetto/export_compress.h"
#include "server/export/perfetto/export_join.h"
#include "server/export/perfetto/export_plan.h"

struct tw_perfetto {
	struct tw_plan *plan;
	struct tw_pull pull;
};

enum tw_status tw_perfetto_open(const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *options, struct tw_perfetto **ret, struct tw_err *err)
{
	struct tw_perfetto *x = tw_mem_zalloc(1, sizeof *x);
	enum tw_status st;

	if (!x)
		return tw_oom(err);
	st = tw_plan_new(sources, n, options, &x->plan, err);
	if (st == TW_OK && options->form == TW_PERFETTO_TAR)
		st = tw_tar_open(x->plan, &x->pull, err);
	else if (st == TW_OK)
		st = tw_join_open(x->plan, true, &x->pull, err);
	if (st == TW_OK && (options->compression == TW_PERFETTO_GZIP ||
	                           options->compression == TW_PERFETTO_ZSTD)) {
		struct tw_pull inner = x->pull;

		x->pull = (struct tw_pull){0};
		st = tw_compress_open(inner, options->compression, &x->pull, err);
	}
	if (st == TW_OK)
		*ret = x;
	else
		tw_perfetto_close(x);
	return st;
}

enum tw_status tw_perfetto_read(
        struct tw_perfetto *x, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	return x->pull.read(x->pull.arg, out, cap, ret_n, err);
}

struct tw_perfetto *tw_perfetto_close(struct tw_perfetto *x)
{
	if (!x)
		return NULL;
	if (x->pull.free)
		x->pull.free(x->pull.arg);
	tw_plan_free(x->plan);
	tw_mem_free(x);
	return NULL;
}

const char *tw_perfetto_suffix(const struct tw_perfetto_options *o)
{
	static const char *const suffixes[][4] = {
	        [TW_PERFETTO_PLAIN] = {".perfetto-trace", ".perfetto-trace.gz",
	                ".perfetto-trace.zst", ".perfetto-trace"},
	        [TW_PERFETTO_TAR] = {".tar", ".tar.gz", ".tar.zst", ".tar"},
	};

	return suffixes[o->form][o->compression];
}
