/* perfetto_stats.h - memory statistics of processes in a Perfetto trace. */
#ifndef TW_PERFETTO_STATS_H
#define TW_PERFETTO_STATS_H

#include "decoder/base/pbread.h"
#include "decoder/formats/markers/marks.h"

/* A ProcessStats: emits the counters present for each of its processes. */
enum tw_status tw_perfetto_stats_emit(struct tw_marks *m, struct tw_pb message, int64_t ts_ns,
        uint64_t offset, struct tw_err *err) TW_MUST_USE;

#endif
