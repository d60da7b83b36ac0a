/*
 * export_perfetto.h - traces as a file for Perfetto, pulled piece by piece.
 *
 * Contains one or several traces, with or without the device's own trace.  Each thread has a packet
 * sequence with its own incremental clock, interned names and a default track; calls are on a
 * separate track under the thread.  Packets of the device's trace are copied unchanged, before or
 * around ours; ours use none of its sequences, tracks, flows and clocks, which are collected first.
 * Memory does not grow with the size of either. Thread: one at a time.
 */
#ifndef TW_EXPORT_PERFETTO_H
#define TW_EXPORT_PERFETTO_H

#include "decoder/symbols/names.h"
#include "server/query/query.h"

struct tw_perfetto;

struct tw_perfetto_facts { /* shown on Perfetto's overview page; NULL or "" omitted; copied */
	const char *trace_id, *process, *app, *version_name, *build_id, *device, *scenario, *url;
	const char *session_id; /* traces of one device and session share a timeline */
};

struct tw_perfetto_source {
	struct tw_trace_file *file;
	const struct tw_names *names; /* may be NULL */
	struct tw_selection sel;
	struct tw_perfetto_facts facts;
	int system_fd;       /* the device's own trace as uploaded; -1 none */
	bool system_as_sent; /* it was decoded together with file, which stores its facts */
};

enum tw_perfetto_form {
	TW_PERFETTO_PLAIN, /* one .perfetto-trace */
	TW_PERFETTO_TAR /* the device's trace byte for byte, ours, and a manifest (requires Perfetto
	                   58) */
};
enum tw_perfetto_compression {
	TW_PERFETTO_AS_IS,
	TW_PERFETTO_GZIP,   /* the file; readable by all versions */
	TW_PERFETTO_ZSTD,   /* the file; requires Perfetto 58 */
	TW_PERFETTO_PACKETS /* our packets within the file, as recorders do */
};
enum tw_perfetto_align {
	TW_PERFETTO_BY_CLOCK_OR_START, /* by clock for traces of the same device and session */
	TW_PERFETTO_BY_CLOCK,
	TW_PERFETTO_BY_START,
	TW_PERFETTO_BY_SLICE /* the first call of a name */
};

struct tw_perfetto_options {
	enum tw_perfetto_form form;
	enum tw_perfetto_compression compression;
	enum tw_perfetto_align align;
	const char *slice; /* BY_SLICE: the displayed name */
};

enum { TW_PERFETTO_MAX_SOURCES = 16 };
/* Files, mappings and descriptors must outlive it.  Of several device traces the first suitable one
 * is included.  TW_NOT_FOUND: a thread, or the slice to align at, does not exist. */
enum tw_status tw_perfetto_open(const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *options, struct tw_perfetto **ret,
        struct tw_err *err) TW_MUST_USE;
/* Fills up to cap bytes (cap ≥ 1); *ret_n 0: end of the file. */
enum tw_status tw_perfetto_read(struct tw_perfetto *x, uint8_t *out, size_t cap, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
struct tw_perfetto *tw_perfetto_close(struct tw_perfetto *x);

/* The suffix of the file name: ".perfetto-trace", ".tar.gz". */
const char *tw_perfetto_suffix(const struct tw_perfetto_options *options);

/* Deeper calls are omitted: beyond, Perfetto's importer closes wrong slices. */
enum { TW_PERFETTO_MAX_DEPTH = 512 };

#endif
