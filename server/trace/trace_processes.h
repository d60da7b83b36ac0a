/*
 * trace_processes.h - the processes that the threads of a trace belong to.
 *
 * Thread: as the trace file's.
 */
#ifndef TW_TRACE_PROCESSES_H
#define TW_TRACE_PROCESSES_H

#include "server/trace/trace_file.h"

struct tw_trace_process {
	uint32_t pid;       /* 0: as the trace numbers it, or unknown */
	uint32_t threads;   /* of the trace */
	struct tw_str name; /* by the trace's notes; "" unknown */
};

/* By rising pid, in the arena. */
enum tw_status tw_trace_processes(struct tw_trace_file *f, struct tw_arena *a,
        struct tw_trace_process **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
