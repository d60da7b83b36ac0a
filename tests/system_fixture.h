/*
 * system_fixture.h - a device's own Perfetto trace as recorders write it, made up, for tests.
 *
 * Clock snapshots, a process tree, switches of threads and marks in the kernel's bundles, track
 * events of an SDK with names by number and a clock of steps, what the recorder says of its
 * flushing.  The device may sleep in the middle.
 */
#ifndef TW_SYSTEM_FIXTURE_H
#define TW_SYSTEM_FIXTURE_H

#include "decoder/base/buf.h"

enum { SYSTEM_SEQ_MAX = 9, SYSTEM_WINDOWS = 6 };
enum { KERNEL_GLOBAL = 2, KERNEL_LOCAL = 3, KERNEL_MONO_RAW = 4 };

struct system_shape {
	int64_t boot_ns, mono_ns;      /* values of the clocks at its begin */
	int64_t length_ns;             /* of MONOTONIC */
	int64_t sleep_at_ns, sleep_ns; /* of MONOTONIC, since the begin; 0 never */
	uint32_t pid, threads; /* tids pid, pid + 1, ... run all the time, each on its own CPU */
	bool flushed;          /* written while it was recorded */
	int folded;            /* field of packets that hold packets: 50, 133; 0 none */
	bool no_clocks;
	bool sdk;
	/* What the kernel's events count in: values of FtraceClock, 0 BOOTTIME.  All but it stand
	 * still while the device sleeps and count from another zero; raw_pairs: bundles say how
	 * MONOTONIC_RAW stands to BOOTTIME, else only the snapshots do. */
	unsigned kernel_clock;
	bool raw_pairs;
	unsigned windows; /* how often each CPU's events are written; 0 the usual number */
};

/* out is initialised here. */
void system_make(struct tw_buf *out, const struct system_shape *s);

#endif
