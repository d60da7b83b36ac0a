/*
 * trace_processes.h - the processes of a trace's threads.
 *
 * Thread: like the trace file.
 */
#ifndef TW_TRACE_PROCESSES_H
#define TW_TRACE_PROCESSES_H

#include "server/trace/trace_file.h"

struct tw_trace_process {
	uint32_t pid;       /* 0: numbered 0 in the trace, or unknown */
	uint32_t threads;   /* number of its threads in the trace */
	struct tw_str name; /* from the trace's notes; "" unknown */
};

/* By rising pid, allocated in the arena. */
enum tw_status tw_trace_processes(struct tw_trace_file *f, struct tw_arena *a,
        struct tw_trace_process **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
