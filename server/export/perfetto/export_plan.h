/*
 * export_plan.h - all decisions that are made before the first byte of a Perfetto file.
 *
 * Decides which device's trace is joined, or why none is, the time offset of each of our traces,
 * and which ids are free.  Once finalized a plan does not change, so that a file can be produced
 * from it twice. Thread: one, until it is finalized; then any.
 */
#ifndef TW_EXPORT_PLAN_H
#define TW_EXPORT_PLAN_H

#include "decoder/base/buf.h"
#include "server/export/perfetto/export_trace.h"

struct tw_plan {
	struct tw_arena *arena;
	struct tw_perfetto_options options;
	struct tw_perfetto_source *sources;
	struct tw_system **facts; /* by source: facts about its device's trace, or NULL */
	struct tw_export_trace *ours;
	uint32_t n;
	bool finalized;           /* all fields below and the time offsets are decided */
	struct tw_system *system; /* NULL: none */
	int system_fd;
	uint64_t system_bytes; /* of the uploaded file */
	uint32_t system_of;    /* index in ours of its trace */
	const char *left_out;  /* reason for not joining a device's trace, or "" */
};

enum tw_status tw_plan_new(const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *options, struct tw_plan **ret,
        struct tw_err *err) TW_MUST_USE;
/* Call this unless the plan is already finalized.  tw_plan_new leaves that to the caller if it
 * takes long (a device's trace without stored facts, a search for a call) and cannot fail for
 * something that the request named, so that the response can begin before it. */
enum tw_status tw_plan_finalize(struct tw_plan *p, struct tw_err *err) TW_MUST_USE;
struct tw_plan *tw_plan_free(struct tw_plan *p);

/* Facts recorded in the file. Calls `each` with a key and a text, or a number if text is NULL. Use
 * every key only once: Perfetto shows all of them. */
typedef void (*tw_plan_fact_fn)(void *arg, const char *key, const char *text, int64_t number);
/* The origin of the traces: available before the plan is finalized. */
void tw_plan_origin(const struct tw_plan *p, tw_plan_fact_fn each, void *arg);
/* The decisions. */
void tw_plan_facts(const struct tw_plan *p, tw_plan_fact_fn each, void *arg);

/* --- the bytes of a plan: one .perfetto-trace, or a tar --- */

struct tw_pull { /* bytes that are produced on demand */
	/* Fills up to cap bytes (cap ≥ 1); *ret_n 0: end. */
	enum tw_status (*read)(
	        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err);
	void (*free)(void *arg);
	void *arg;
};

/* The packets (export_perfetto.c); plan must outlive them.  With with_system false the device's
 * trace is omitted, but ours keep the times that they have with it.  The caller frees with
 * ret->free. */
enum tw_status tw_join_open(struct tw_plan *plan, bool with_system, struct tw_pull *ret,
        struct tw_err *err) TW_MUST_USE;

/* A tar of the device's unchanged trace, ours, and a manifest (export_tar.c).  Perfetto 58 and
 * later opens it as one trace and keeps the members' ids apart.  A tar header contains the length
 * of its member, so ours is produced twice. */
enum tw_status tw_tar_open(
        struct tw_plan *plan, struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

/* --- their compression (export_compress.c) --- */

/* The most bytes of a group: Perfetto recommends compressed packets below 512 KB. */
enum { TW_BATCH_BYTES = 384 << 10 };
/* Removes complete packets from the front of *loose, in groups of the size that recorders use, and
 * appends one packet per group that contains them, compressed by zlib or zstd: as many groups as a
 * call can compress in parallel, until fewer than `least` bytes (at least 1) are left.  They are
 * moved to the front of *loose. */
enum tw_status tw_compress_packets(
        struct tw_buf *loose, size_t least, bool zstd, struct tw_buf *out);

/* The bytes of inner as one gzip member, compressed in parallel, or one zstd frame.  Takes
 * ownership of inner, also on failure. */
enum tw_status tw_compress_open(struct tw_pull inner, enum tw_perfetto_compression how,
        struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

#endif
