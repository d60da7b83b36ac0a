/*
 * export_perfetto.h - a trace as a .perfetto-trace file, pulled piece by piece.
 *
 * One packet sequence per thread with its own incremental clock, interned
 * names and a default track; method calls stand on a track "methods" of their
 * own under the thread, so that nothing of the system's can close them.  Threads
 * are merged in time order in runs of a few thousand events, as long as their
 * decoded chunks fit MERGE_MAX_BYTES together; what does not fit follows thread
 * after thread.  Memory does not grow with the trace.
 * Thread: one at a time.
 */
#ifndef TW_EXPORT_PERFETTO_H
#define TW_EXPORT_PERFETTO_H

#include "query.h"
#include "symbols/names.h"

struct tw_perfetto;

struct tw_perfetto_facts { /* shown on Perfetto's overview page; "" left out */
	const char *trace_id, *process, *app, *version_name, *build_id, *device, *scenario, *url;
};

/* file and map (may be NULL) must outlive it.  Strings of facts are copied. */
enum tw_status tw_perfetto_open(struct tw_trace_file *file, const struct tw_names *names,
        const struct tw_selection *threads, const struct tw_perfetto_facts *facts,
        struct tw_perfetto **ret, struct tw_err *err) TW_MUST_USE;
/* Fills up to cap bytes (cap ≥ 1); *ret_n 0: that was all. */
enum tw_status tw_perfetto_read(struct tw_perfetto *x, uint8_t *out, size_t cap, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
struct tw_perfetto *tw_perfetto_close(struct tw_perfetto *x);

/* Deeper calls are left out: Perfetto's importer closes wrong slices beyond. */
enum { TW_PERFETTO_MAX_DEPTH = 512 };

#endif
