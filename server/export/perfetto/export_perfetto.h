/*
 * export_perfetto.h - traces as a file for Perfetto, pulled piece by piece.
 *
 * One trace, or several beside each other, with the device's own trace or without.  A sequence of
 * packets per thread with its own incremental clock, interned names and a default track; calls
 * stand on a track of their own under the thread.  Joined to the device's trace, that one goes
 * first or around ours, packet for packet as it is; ours keeps clear of its sequences, tracks,
 * flows and clocks, which are looked for first.  Memory does not grow with either.
 * Thread: one at a time.
 */
#ifndef TW_EXPORT_PERFETTO_H
#define TW_EXPORT_PERFETTO_H

#include "decoder/symbols/names.h"
#include "server/query/query.h"

struct tw_perfetto;

struct tw_perfetto_facts { /* shown on Perfetto's overview page; NULL or "" left out; copied */
	const char *trace_id, *process, *app, *version_name, *build_id, *device, *scenario, *url;
	const char *session_id; /* traces of one device and session share a timeline */
};

struct tw_perfetto_source {
	struct tw_trace_file *file;
	const struct tw_names *names; /* may be NULL */
	struct tw_selection sel;
	struct tw_perfetto_facts facts;
	int system_fd;       /* the device's own trace as it was sent; -1 none */
	bool system_as_sent; /* it is the one that was decoded with file, which knows it */
};

enum tw_perfetto_form {
	TW_PERFETTO_PLAIN, /* one .perfetto-trace */
	TW_PERFETTO_TAR /* the device's trace byte for byte, ours, and a manifest (Perfetto 58) */
};
enum tw_perfetto_squeeze {
	TW_PERFETTO_AS_IS,
	TW_PERFETTO_GZIP,   /* the file; all versions open it */
	TW_PERFETTO_ZSTD,   /* the file; Perfetto 58 */
	TW_PERFETTO_PACKETS /* our packets within it, as recorders do */
};
enum tw_perfetto_align {
	TW_PERFETTO_BY_CLOCK_OR_START, /* by clock where a device and session are shared */
	TW_PERFETTO_BY_CLOCK,
	TW_PERFETTO_BY_START,
	TW_PERFETTO_BY_SLICE /* the first call of a name */
};

struct tw_perfetto_options {
	enum tw_perfetto_form form;
	enum tw_perfetto_squeeze squeeze;
	enum tw_perfetto_align align;
	const char *slice; /* BY_SLICE: its name as it is shown */
};

enum { TW_PERFETTO_MAX_SOURCES = 16 };
/* Files, mappings and descriptors must outlive it.  Of several device's traces the first that can
 * be joined is.  TW_NOT_FOUND: a thread, or a slice to align at, is not there. */
enum tw_status tw_perfetto_open(const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *options, struct tw_perfetto **ret,
        struct tw_err *err) TW_MUST_USE;
/* Fills up to cap bytes (cap ≥ 1); *ret_n 0: that was all. */
enum tw_status tw_perfetto_read(struct tw_perfetto *x, uint8_t *out, size_t cap, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
struct tw_perfetto *tw_perfetto_close(struct tw_perfetto *x);

/* What the file is called behind its name: ".perfetto-trace", ".tar.gz". */
const char *tw_perfetto_suffix(const struct tw_perfetto_options *options);

/* Deeper calls are left out: Perfetto's importer closes wrong slices beyond. */
enum { TW_PERFETTO_MAX_DEPTH = 512 };

#endif
