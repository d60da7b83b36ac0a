/*
 * anr_line.h - classifies one line of an ANR report by its shape.
 *
 * The order of a report's parts changed with every Android version, so lines are recognised by
 * shape, not by position.  anr.c interprets them in context.
 * Pure; the strings point into the line.  Thread: any.
 */
#ifndef TW_ANR_LINE_H
#define TW_ANR_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/str.h"
#include "decoder/formats/anr/anr_locks.h"

enum tw_anr_fact {
#define FACT(name, prefix, scope) TW_ANR_FACT_##name,
#include "decoder/formats/anr/anr_facts.def"
#undef FACT
	TW_ANR_FACTS
};

const char *tw_anr_fact_name(enum tw_anr_fact fact);
bool tw_anr_fact_of_file(enum tw_anr_fact fact); /* otherwise of one dump */

enum tw_anr_kind {
	TW_ANR_OTHER, /* ignored */
	TW_ANR_BLANK,
	TW_ANR_PROCESS,  /* ----- pid 12 at DATE -----: pid, at_ns */
	TW_ANR_CHANNELS, /* ----- Waiting Channels: pid 12 at DATE -----: pid, at_ns */
	TW_ANR_END,      /* ----- end 12 ----- */
	TW_ANR_DUMPING,  /* ----- dumping pid: 12 at 345 */
	TW_ANR_THREADS,  /* DALVIK THREADS (12): number; 0: absent */
	TW_ANR_FACT,     /* fact, text */
	TW_ANR_LOAD,     /* a process in the CPU usage list, or its TOTAL: text */
	TW_ANR_THREAD, /* "name" prio=5 tid=1 Blocked: name, text is the state, tid, sys_tid, ... */
	TW_ANR_IDS,    /*   | sysTid=12 nice=0 ...: sys_tid, nice */
	TW_ANR_TIMES,  /*   | state=S schedstat=( 1 2 3 ) utm=4 stm=5 ...: text is the letter */
	TW_ANR_ATTRIBUTE, /*   | any other line of this shape */
	TW_ANR_AT,        /*   at a.B.c(B.java:1): name, text is the part in parentheses */
	TW_ANR_BARE_AT,   /* a.B.c(B.java:1) */
	TW_ANR_NATIVE,    /*   native: #00 pc 12  /lib.so (f+4) (BuildId: ab): name, text is the
	                   * file's name, number the address, build_id as written */
	TW_ANR_KERNEL,    /*   kernel: f+0x1/0x2: name */
	TW_ANR_LOCK,      /*   - locked <0x12> (a T) ...: how, object, holder, text is the type */
	TW_ANR_NO_LOCK,   /*   - waiting to lock an unknown object */
	TW_ANR_REPEATED,  /*   ... repeated 3 times: number */
	TW_ANR_FAILED,    /* a stack, or the rest of it, could not be captured */
	TW_ANR_REMARK,    /* a line of a thread that is not about its stack */
	TW_ANR_CHANNEL,   /* sysTid=12   futex_wait: sys_tid, text */
	TW_ANR_EXCEPTION, /* a.b.FooError: message: name, text */
	TW_ANR_CAUSE,     /* Caused by: ...ANRError$$$_Thread: main (state = BLOCKED): name, text */
	TW_ANR_STACK_OF,  /* main thread stack trace:  name */
	TW_ANR_MOMENT,    /* 01-12 10:10:10.123 or stack = that: at_ns */
	TW_ANR_KINDS
};

struct tw_anr_line {
	enum tw_anr_kind kind;
	enum tw_anr_fact fact;
	enum tw_anr_how how;
	struct tw_str name, text, build_id;
	uint64_t pid, tid, sys_tid, number, object, holder;
	uint64_t run_ns, queue_ns, user_ticks, kernel_ticks; /* TIMES */
	int64_t at_ns; /* from its own timestamp or the log's, relative to a fixed past day; -1
	                * none */
	int32_t priority, nice;
	bool daemon, attached, starting;
};

/* Missing ids are 0.  `object` of "<@addr=0x..>" has its top bit set: a separate key space from
 * identity hashes. */
#define TW_ANR_ADDRESS (UINT64_C(1) << 63)

/* Parses a line, without the prefix of logcat if it has one. */
struct tw_anr_line tw_anr_line_parse(struct tw_str line);

#endif
