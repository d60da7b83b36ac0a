/*
 * perf_maps.h - resolves addresses of perf.data to the mapped file and its symbol.
 *
 * Memory maps are applied in time order; a map replaces what it overlaps. A forked process sees
 * its parent's maps below its own. Symbols are those that simpleperf stored in the recording.
 * Frames of a file without symbols are named by their address, if the file's build id is known
 * (native_frame.h), otherwise by the file: "[libc.so]". Thread: one decode job, one thread.
 */
#ifndef TW_PERF_MAPS_H
#define TW_PERF_MAPS_H

#include "decoder/base/arena.h"
#include "decoder/base/pbread.h"
#include "decoder/formats/sink.h"

struct tw_perf_maps;

#define TW_PERF_KERNEL UINT32_MAX /* the process of the kernel's maps */

/* simpleperf's kinds of files */
enum tw_perf_kind {
	TW_PERF_FILE_KERNEL,
	TW_PERF_FILE_MODULE,
	TW_PERF_FILE_ELF,
	TW_PERF_FILE_DEX,
	TW_PERF_FILE_SYMBOL_MAP,
	TW_PERF_FILE_UNKNOWN
};

struct tw_perf_file { /* of the recording's list of files; symbols follow by tw_perf_symbol */
	struct tw_str path;
	enum tw_perf_kind kind;
	uint64_t min_vaddr, min_offset;
	bool has_min_offset;
	uint32_t symbols; /* an upper bound of their number */
};

/* NULL: out of memory. */
struct tw_perf_maps *tw_perf_maps_new(struct tw_arena *a, uint64_t salt, struct tw_sink *sink);
/* False: out of memory. */
bool tw_perf_file_add(struct tw_perf_maps *m, const struct tw_perf_file *f);
/* A symbol of the file added last; no more than it announced. */
void tw_perf_symbol(struct tw_perf_maps *m, uint64_t vaddr, uint64_t len, struct tw_str name);

/* The build id of a file: its bytes.  False: out of memory. */
bool tw_perf_build_id(struct tw_perf_maps *m, struct tw_str path, const uint8_t *id, size_t n);

struct tw_perf_map {
	uint32_t pid;
	uint64_t start, len, offset;
	struct tw_str path;
	bool is_jit; /* addresses of its symbols are those of the process */
};

enum tw_perf_added { TW_PERF_ADDED, TW_PERF_FULL, TW_PERF_NO_MEMORY };
/* FULL: more maps than a process or a recording may have, or in an order that takes too long. */
enum tw_perf_added tw_perf_map_add(struct tw_perf_maps *m, const struct tw_perf_map *map);
bool tw_perf_fork(struct tw_perf_maps *m, uint32_t pid, uint32_t parent);
/* The process runs another program. */
void tw_perf_exec(struct tw_perf_maps *m, uint32_t pid);

enum { TW_PERF_FILE_FRAME_BYTES = 258 };
/* The name of a frame in a file without symbols; one in brackets, such as "[vdso]", stays.  A part
 * of the path, or `out`. */
struct tw_str tw_perf_file_frame(struct tw_str path, char out[TW_PERF_FILE_FRAME_BYTES]);

struct tw_perf_frame {
	uint32_t sym;    /* 0: the sink refused it */
	uint32_t file;   /* equal for frames of one file */
	bool is_named;   /* by a symbol or an address, not by its file */
	bool is_dex;     /* code that ART interprets */
	bool is_art;     /* of ART itself */
	bool is_dropped; /* for the caller */
};
/* in_kernel: as the recording states it. */
struct tw_perf_frame tw_perf_find(
        struct tw_perf_maps *m, uint32_t pid, uint64_t address, bool in_kernel);

#endif
