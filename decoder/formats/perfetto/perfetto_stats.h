/*
 * perfetto_stats.h - what a Perfetto trace says of the memory of processes.
 */
#ifndef TW_PERFETTO_STATS_H
#define TW_PERFETTO_STATS_H

#include "decoder/base/pbread.h"
#include "decoder/formats/marks.h"

/* A ProcessStats: counters of each process that it tells of, as far as they are there. */
enum tw_status tw_perfetto_stats_tell(struct tw_marks *m, struct tw_pb message, int64_t ts_ns,
        uint64_t offset, struct tw_err *err) TW_MUST_USE;

#endif
