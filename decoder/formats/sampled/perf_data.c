/*
 * perf_data.c - perf.data as simpleperf and Linux perf write it, without conversion.
 *
 *   "PERFILE2", u64 header size, u64 size of an attr, then offset and size of attrs, data and event
 *   types, and 256 bits, one per feature.  Integers are little-endian.
 *   attr: perf_event_attr of the kernel, then offset and size of its event ids
 *   data: records: u32 type, u16 misc, u16 size, body; of type 32768 on: u32 type, u16 high and u16
 *   low half of the size.  Bodies are those of linux/perf_event.h.
 *   features follow the data, as offset and size in the order of their bits: 129 keys and values of
 *   the recording, each ended by NUL; 128 and 132 files with symbols, the second as protobuf
 *     1 path, 2 kind, 3 lowest address, 4 symbol {1 address, 2 length, 3 name},
 *     6 and 7 {1 offset of the lowest address}
 *   134 maps from before the recording, as records
 *   2 build ids, as records: i32 pid, 24 bytes: up to 20 of an id and their number, path
 *
 * Names are at the end and CPUs are not in the order of time, so the file is kept and read at its
 * end: files with symbols, then records by time.  Addresses of callers are those of the return;
 * simpleperf has already moved them to the call.  Frames of ART around code that it interprets are
 * left out.  Learned from platform/system/extras (simpleperf) and Linux (tools/perf,
 * linux/perf_event.h).
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/base/codec_memory.h"
#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/formats/format.h"
#include "decoder/formats/sampled/perf_maps.h"
#include "decoder/formats/sampled/samples.h"

enum {
	MAGIC_BYTES = 8,
	HEADER = 104,
	PIPE_HEADER = 16,
	FEATURES_AT = 72,
	SECTION = 16,
	MIN_ATTR = 48,
	MAX_ATTRS = 256,
	MAX_BYTES = 512 << 20,
	RECORD_HEAD = 8,
	MAX_FRAMES = 4096,
	MAX_THREADS = 1 << 14,
	FIRST_THREADS = 64,
	MAX_IDS = 1 << 20,
	OUT_BYTES = 128 << 10,
	MAX_RATIO_FREE = 1 << 20
};

enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_FILE = 128,
	FEATURE_META = 129,
	FEATURE_FILE2 = 132,
	FEATURE_MAPS = 134
};

enum {
	TYPE_MMAP = 1,
	TYPE_LOST = 2,
	TYPE_COMM = 3,
	TYPE_FORK = 7,
	TYPE_SAMPLE = 9,
	TYPE_MMAP2 = 10,
	TYPE_LOST_SAMPLES = 13,
	/* this type and larger ones are written by the tool, without the kernel's time */
	TYPE_USER = 64,
	TYPE_AUXTRACE = 71,
	TYPE_COMPRESSED = 81,
	TYPE_COMPRESSED2 = 83,
	TYPE_LAST = 96,
	TYPE_SIMPLEPERF = 32768,
	TYPE_EVENT_ID = 32774,
	TYPE_LAST_SIMPLEPERF = 32800
};

enum {
	HAS_IP = 1,
	HAS_TID = 2,
	HAS_TIME = 4,
	HAS_ADDR = 8,
	HAS_READ = 0x10,
	HAS_CALLCHAIN = 0x20,
	HAS_ID = 0x40,
	HAS_CPU = 0x80,
	HAS_PERIOD = 0x100,
	HAS_STREAM = 0x200,
	HAS_IDENTIFIER = 0x10000
};

enum {
	MISC_CPU_MODE = 7,
	MISC_KERNEL = 1,
	MISC_COMM_EXEC = 1 << 13,
	MISC_MAP_HAS_BUILD_ID = 1 << 14,
	MISC_BUILD_ID_HAS_SIZE = 1 << 15,
	PROT_JIT = 0x4000,
	BUILD_ID_BYTES = 20
};

#define MAGIC        "PERFILE2"
#define MAX_TIME_NS  ((uint64_t)1 << 61)
#define ID_ALL       (UINT64_C(1) << 18) /* of an attr's flags: every record has its time */
#define USES_CLOCK   (UINT64_C(1) << 25)
#define CONTEXT_MAX  ((uint64_t)-4095) /* from here on an address is a marker */
#define CONTEXT_KERN ((uint64_t)-128)
#define CONTEXT_USER ((uint64_t)-512)

struct attr {
	uint64_t sample_type, read_format, flags;
	uint32_t clock;
};

struct id {
	uint64_t id;
	uint32_t attr;
};

struct record {
	uint64_t time;
	const uint8_t *p;
	uint32_t n, order; /* position in the file breaks ties */
	uint64_t offset;
};

struct span { /* bytes of the input */
	const uint8_t *p;
	size_t n;
};

struct thread {
	uint32_t pid, tid;
	struct tw_str name; /* the last one */
	bool is_sampled;
};

struct perf_data {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_limits limits;
	struct tw_samples *samples;
	struct tw_perf_maps *maps;
	struct tw_bytes input, unpacked;
	ZSTD_DStream *zstd;
	struct attr attrs[MAX_ATTRS];
	uint32_t n_attrs;
	struct tw_list ids;     /* struct id, by id once sorted */
	struct tw_list records; /* struct record, by time once sorted */
	struct thread *threads;
	uint32_t n_threads, cap_threads;
	uint32_t *slots;    /* index + 1 by hash of tid; twice cap_threads */
	uint32_t read_attr; /* the event that is read, + 1 */
	bool is_simpleperf, off_cpu, is_monotonic, is_truncated;
	int64_t first_ns;
	uint32_t pid;
	bool many_pids;
	uint32_t n_frames;
	struct tw_perf_frame frames[MAX_FRAMES]; /* innermost first */
};

static int probe(const uint8_t *head, size_t len)
{
	return len >= PIPE_HEADER && memcmp(head, MAGIC, MAGIC_BYTES) == 0 ? 100 : 0;
}

static void repair(struct perf_data *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	s->sink->ops->repair(s->sink, what, offset, n);
}

/* Counted once, however many sections show it. */
static void note_truncated(struct perf_data *s, uint64_t offset)
{
	if (!s->is_truncated)
		repair(s, TW_REPAIR_input_truncated, offset, 1);
	s->is_truncated = true;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct perf_data *s = state;

	s->sink = sink;
	s->arena = a;
	s->limits = *limits;
	s->first_ns = INT64_MAX;
	s->samples = tw_samples_new(a, limits, sink);
	s->maps = tw_perf_maps_new(a, limits->hash_salt, sink);
	return s->samples && s->maps ? TW_OK : tw_oom(err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct perf_data *s = state;

	if (n > MAX_BYTES - s->input.n)
		return tw_fail_at(err, TW_TOO_LARGE, MAX_BYTES, "a perf.data of more than %d MiB",
		        MAX_BYTES >> 20);
	return tw_bytes_add(&s->input, s->arena, p, n) ? TW_OK : tw_oom(err);
}

/* --- bytes --- */

/* The part of [offset, offset + size) that the input has. */
static struct span span_of(const struct perf_data *s, uint64_t offset, uint64_t size)
{
	const uint64_t n = s->input.n;
	const uint64_t rest = offset < n ? n - offset : 0;

	return (struct span){
	        rest ? s->input.data + offset : NULL, (size_t)(size < rest ? size : rest)};
}

static bool take_u32(struct span *b, uint32_t *ret)
{
	if (b->n < 4)
		return false;
	*ret = tw_u32le(b->p);
	b->p += 4;
	b->n -= 4;
	return true;
}

static bool take_u64(struct span *b, uint64_t *ret)
{
	if (b->n < 8)
		return false;
	*ret = tw_u64le(b->p);
	b->p += 8;
	b->n -= 8;
	return true;
}

static bool skip(struct span *b, uint64_t n)
{
	if (n > b->n)
		return false;
	b->p += n;
	b->n -= (size_t)n;
	return true;
}

/* Up to NUL, or to the end. */
static struct tw_str take_text(struct span *b)
{
	const uint8_t *end = b->n ? memchr(b->p, '\0', b->n) : NULL;
	struct tw_str text = {(const char *)b->p, end ? (size_t)(end - b->p) : b->n};

	(void)skip(b, text.len + (end ? 1 : 0));
	return text;
}

/* --- events and facts of the recording --- */

static bool add_id(struct perf_data *s, uint64_t id, uint32_t attr)
{
	struct id *added;

	if (s->ids.n == MAX_IDS)
		return true;
	added = tw_list_add(&s->ids, s->arena, sizeof *added);
	if (added)
		*added = (struct id){id, attr};
	return added != NULL;
}

TW_ORDER_BY(by_id, struct id, TW_RISING(id), TW_RISING(attr))

static uint32_t attr_of_id(const struct perf_data *s, uint64_t id)
{
	const struct id *ids = s->ids.items;
	uint32_t at;

	TW_BISECT(at, s->ids.n, ids[at].id < id);
	return at < s->ids.n && ids[at].id == id ? ids[at].attr : 0;
}

static enum tw_status read_attrs(struct perf_data *s, struct tw_err *err)
{
	const uint64_t size = tw_u64le(s->input.data + 16);
	struct span all = span_of(s, tw_u64le(s->input.data + 24), tw_u64le(s->input.data + 32));

	if (size < MIN_ATTR + SECTION || size > INT32_MAX)
		return tw_fail_at(err, TW_CORRUPT, 16, "no event in this perf.data can be read");
	for (; all.n >= size && s->n_attrs < MAX_ATTRS; (void)skip(&all, size)) {
		const uint8_t *p = all.p;
		const uint8_t *section = p + size - SECTION;
		struct span ids = span_of(s, tw_u64le(section), tw_u64le(section + 8));
		struct attr *a = &s->attrs[s->n_attrs];
		uint64_t id;

		*a = (struct attr){.sample_type = tw_u64le(p + 24),
		        .read_format = tw_u64le(p + 32),
		        .flags = tw_u64le(p + 40)};
		if (size >= 96 + SECTION)
			a->clock = tw_u32le(p + 92);
		while (s->ids.n < MAX_IDS && take_u64(&ids, &id))
			if (!add_id(s, id, s->n_attrs))
				return tw_oom(err);
		s->n_attrs++;
	}
	if (s->n_attrs == 0)
		return tw_fail_at(err, TW_CORRUPT, 24, "no event in this perf.data can be read");
	if (!(s->attrs[0].sample_type & HAS_TIME) || !(s->attrs[0].sample_type & HAS_TID))
		return tw_fail_at(err, TW_UNSUPPORTED, 24,
		        "a perf.data whose samples have no time or no thread");
	return TW_OK;
}

static struct span feature(const struct perf_data *s, uint32_t wanted)
{
	const uint8_t *bits = s->input.data + FEATURES_AT;
	uint64_t at = tw_u64le(s->input.data + 40) + tw_u64le(s->input.data + 48);
	struct span head;

	if (!(bits[wanted / 8] >> wanted % 8 & 1) || tw_u64le(s->input.data + 48) == 0)
		return (struct span){NULL, 0};
	for (uint32_t i = 0; i < wanted; i++)
		at += bits[i / 8] >> i % 8 & 1 ? SECTION : 0;
	head = span_of(s, at, SECTION);
	if (head.n < SECTION)
		return (struct span){NULL, 0};
	return span_of(s, tw_u64le(head.p), tw_u64le(head.p + 8));
}

static void read_meta(struct perf_data *s)
{
	struct span b = feature(s, FEATURE_META);

	s->is_simpleperf = b.n > 0;
	while (b.n) {
		struct tw_str key = take_text(&b);
		struct tw_str value = take_text(&b);

		if (tw_str_eq(key, TW_STR("trace_offcpu")))
			s->off_cpu = tw_str_eq(value, TW_STR("true"));
		else if (tw_str_eq(key, TW_STR("clockid")))
			s->is_monotonic = tw_str_eq(value, TW_STR("monotonic"));
	}
}

/* --- files with their symbols --- */

static uint64_t offset_in(const struct perf_data *s, const uint8_t *p)
{
	return (uint64_t)(p - s->input.data);
}

static void read_file2_symbol(struct perf_data *s, struct tw_pb m)
{
	struct tw_str name = {0};
	uint64_t vaddr = 0;
	uint64_t len = 0;
	struct tw_pb_field f;

	while (tw_pb_next(&m, &f))
		if (f.number == 1)
			vaddr = f.value;
		else if (f.number == 2)
			len = f.value;
		else if (f.number == 3)
			name = tw_pb_str(&f);
	tw_perf_symbol(s->maps, vaddr, len, name);
}

static bool read_file2(struct perf_data *s, struct span b)
{
	struct tw_pb m = tw_pb_of(b.p, b.n);
	struct tw_pb again = m;
	struct tw_perf_file file = {.kind = TW_PERF_FILE_KERNEL};
	struct tw_pb_field f;

	while (tw_pb_next(&m, &f)) {
		if (f.number == 1)
			file.path = tw_pb_str(&f);
		else if (f.number == 2)
			file.kind = f.value < TW_PERF_FILE_UNKNOWN ? (enum tw_perf_kind)f.value
			                                           : TW_PERF_FILE_UNKNOWN;
		else if (f.number == 3)
			file.min_vaddr = f.value;
		else if (f.number == 4 && f.type == TW_PB_BYTES)
			file.symbols++;
		else if ((f.number == 6 || f.number == 7) && f.type == TW_PB_BYTES) {
			file.min_offset = tw_pb_number_of(tw_pb_in(&f), 1);
			file.has_min_offset = file.min_offset != UINT64_MAX;
		}
	}
	if (!tw_perf_file_add(s->maps, &file))
		return false;
	while (tw_pb_next(&again, &f))
		if (f.number == 4 && f.type == TW_PB_BYTES)
			read_file2_symbol(s, tw_pb_in(&f));
	if (tw_pb_bad(&m))
		repair(s, TW_REPAIR_record_malformed, offset_in(s, b.p), 1);
	return true;
}

/* As simpleperf wrote files before Android 14. */
static bool read_file1(struct perf_data *s, struct span b)
{
	const uint64_t offset = offset_in(s, b.p);
	struct tw_perf_file file = {.path = take_text(&b)};
	struct span again;
	uint64_t vaddr;
	uint32_t kind = 0;
	uint32_t n = 0;
	uint32_t len;
	bool whole = take_u32(&b, &kind) && take_u64(&b, &file.min_vaddr) && take_u32(&b, &n);

	file.kind = kind < TW_PERF_FILE_UNKNOWN ? (enum tw_perf_kind)kind : TW_PERF_FILE_UNKNOWN;
	again = b;
	while (whole && file.symbols < n) {
		whole = take_u64(&b, &vaddr) && take_u32(&b, &len);
		(void)take_text(&b);
		file.symbols += whole;
	}
	file.has_min_offset = file.kind != TW_PERF_FILE_DEX && take_u64(&b, &file.min_offset) &&
	                      file.min_offset != UINT64_MAX;
	if (!tw_perf_file_add(s->maps, &file))
		return false;
	for (uint32_t i = 0; i < file.symbols && take_u64(&again, &vaddr) && take_u32(&again, &len);
	        i++)
		tw_perf_symbol(s->maps, vaddr, len, take_text(&again));
	if (!whole)
		repair(s, TW_REPAIR_record_malformed, offset, 1);
	return true;
}

static enum tw_status read_files(struct perf_data *s, uint32_t which, struct tw_err *err)
{
	struct span b = feature(s, which);
	uint32_t size;

	while (take_u32(&b, &size)) {
		struct span one = {b.p, size < b.n ? size : b.n};

		if (!(which == FEATURE_FILE2 ? read_file2(s, one) : read_file1(s, one)))
			return tw_oom(err);
		if (!skip(&b, size)) {
			note_truncated(s, offset_in(s, one.p));
			break;
		}
	}
	return TW_OK;
}

/* --- records --- */

static uint32_t size_of(const uint8_t *p)
{
	if (tw_u32le(p) < TYPE_SIMPLEPERF)
		return tw_u16le(p + 6);
	return (uint32_t)tw_u16le(p + 4) << 16 | tw_u16le(p + 6);
}

/* Whether a record may begin here. */
static bool is_record(struct span b)
{
	uint32_t type = b.n >= RECORD_HEAD ? tw_u32le(b.p) : 0;
	uint32_t size = type ? size_of(b.p) : 0;

	if (size < RECORD_HEAD || size > b.n)
		return false;
	return type < TYPE_LAST || (type > TYPE_SIMPLEPERF && type < TYPE_LAST_SIMPLEPERF);
}

/* Bytes of the id that the kernel adds to other records than samples. */
static uint32_t trailer_bytes(const struct attr *a)
{
	static const uint32_t parts[] = {
	        HAS_TID, HAS_TIME, HAS_ID, HAS_STREAM, HAS_CPU, HAS_IDENTIFIER};
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		n += a->flags & ID_ALL && a->sample_type & parts[i] ? 8 : 0;
	return n;
}

static uint64_t time_of(const struct perf_data *s, struct span b, uint32_t type)
{
	const uint64_t has = s->attrs[0].sample_type;
	uint64_t at;

	if (type == TYPE_SAMPLE)
		at = RECORD_HEAD + 8 * (uint64_t)(!!(has & HAS_IDENTIFIER) + !!(has & HAS_IP) + 1);
	else if (type >= TYPE_USER || trailer_bytes(&s->attrs[0]) + RECORD_HEAD > b.n)
		return 0;
	else
		at = b.n - trailer_bytes(&s->attrs[0]) + 8;
	return at + 8 <= b.n ? tw_u64le(b.p + at) : 0;
}

static bool keep(struct perf_data *s, struct span b, uint64_t offset)
{
	struct record *r = tw_list_add(&s->records, s->arena, sizeof *r);

	if (r)
		*r = (struct record){.time = time_of(s, b, tw_u32le(b.p)),
		        .p = b.p,
		        .n = (uint32_t)b.n,
		        .order = s->records.n,
		        .offset = offset};
	return r != NULL;
}

/* Appends the record's content to s->unpacked. TW_CORRUPT: it is damaged. */
static enum tw_status unpack(struct perf_data *s, struct span b, struct tw_err *err)
{
	uint8_t *out = tw_mem_alloc(OUT_BYTES, 1);
	ZSTD_inBuffer in = {b.p, b.n, 0};
	enum tw_status st = out ? TW_OK : tw_oom(err);
	bool more = true;

	while (st == TW_OK && more) {
		ZSTD_outBuffer to = {out, OUT_BYTES, 0};
		const size_t rc = ZSTD_decompressStream(s->zstd, &to, &in);

		if (ZSTD_isError(rc))
			st = TW_CORRUPT;
		else if (to.pos > MAX_BYTES - s->unpacked.n ||
		         (s->unpacked.n > MAX_RATIO_FREE &&
		                 s->unpacked.n / s->limits.max_ratio > s->input.n))
			st = tw_fail_at(err, TW_TOO_LARGE, offset_in(s, b.p),
			        "its records decompress to too much");
		else if (!tw_bytes_add(&s->unpacked, s->arena, out, to.pos))
			st = tw_oom(err);
		more = in.pos < in.size || to.pos == to.size;
	}
	tw_mem_free(out);
	return st;
}

static enum tw_status unpack_record(struct perf_data *s, struct span b, struct tw_err *err)
{
	const uint64_t offset = offset_in(s, b.p);
	const bool sized = tw_u32le(b.p) == TYPE_COMPRESSED2;
	uint64_t n = 0;
	enum tw_status st;

	(void)skip(&b, RECORD_HEAD);
	if (sized && take_u64(&b, &n) && n < b.n)
		b.n = (size_t)n;
	if (!s->zstd) {
		s->zstd = ZSTD_createDStream_advanced(tw_zstd_memory());
		if (!s->zstd)
			return tw_oom(err);
		(void)ZSTD_DCtx_setParameter(
		        s->zstd, ZSTD_d_windowLogMax, (int)s->limits.max_window_log);
	}
	st = unpack(s, b, err);
	if (st == TW_CORRUPT) {
		repair(s, TW_REPAIR_record_malformed, offset, 1);
		(void)ZSTD_DCtx_reset(s->zstd, ZSTD_reset_session_only); /* for the next frame */
		st = TW_OK;
	}
	return st;
}

static enum tw_status read_ids(struct perf_data *s, struct span b, struct tw_err *err)
{
	uint64_t n;
	uint64_t attr;
	uint64_t id;

	(void)skip(&b, RECORD_HEAD);
	if (take_u64(&b, &n))
		while (s->ids.n < MAX_IDS && n-- > 0 && take_u64(&b, &attr) && take_u64(&b, &id))
			if (attr < s->n_attrs && !add_id(s, id, (uint32_t)attr))
				return tw_oom(err);
	return TW_OK;
}

/* Skips to the next place that looks like a record followed by another one. */
static void search(struct span *b)
{
	while (b->n >= RECORD_HEAD) {
		struct span next = *b;

		if (is_record(*b) && skip(&next, size_of(b->p)) && (next.n == 0 || is_record(next)))
			return;
		(void)skip(b, RECORD_HEAD);
	}
	(void)skip(b, b->n);
}

/* Lists the records of a section.  is_packed: they were compressed, and their offset is not that of
 * the input. */
static enum tw_status list_records(
        struct perf_data *s, struct span b, bool is_packed, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && b.n) {
		const uint64_t offset = is_packed ? TW_NO_OFFSET : offset_in(s, b.p);
		struct span one = b;
		uint64_t more = 0;
		uint32_t type;

		if (!is_record(b)) {
			bool is_last = b.n < RECORD_HEAD || (tw_u32le(b.p) && size_of(b.p) > b.n);

			search(&b);
			if (b.n || !is_last)
				repair(s, TW_REPAIR_framing_lost, offset, 1);
			else
				note_truncated(s, offset);
			continue;
		}
		type = tw_u32le(b.p);
		one.n = size_of(b.p);
		(void)skip(&b, one.n);
		if (type == TYPE_AUXTRACE && one.n >= RECORD_HEAD + 8)
			more = tw_u64le(one.p + RECORD_HEAD);
		if (more && !skip(&b, more))
			(void)skip(&b, b.n);
		if ((type == TYPE_COMPRESSED || type == TYPE_COMPRESSED2) && !is_packed)
			st = unpack_record(s, one, err);
		else if (type == TYPE_EVENT_ID)
			st = read_ids(s, one, err);
		else if (type < TYPE_USER && !keep(s, one, offset))
			st = tw_oom(err);
	}
	return st;
}

TW_ORDER_BY(by_time, struct record, TW_RISING(time), TW_RISING(order))

/* --- build ids --- */

/* Older versions fill a shorter id with zeros. */
static size_t build_id_bytes(const uint8_t *id)
{
	static const uint8_t zeros[BUILD_ID_BYTES];

	for (size_t n = 8; n < BUILD_ID_BYTES; n += 8)
		if (memcmp(id + n, zeros, BUILD_ID_BYTES - n) == 0)
			return n;
	return BUILD_ID_BYTES;
}

static bool read_build_id(struct perf_data *s, struct span b)
{
	const bool has_size = tw_u16le(b.p + 4) & MISC_BUILD_ID_HAS_SIZE;
	const uint8_t *id = b.p + RECORD_HEAD + 4;
	size_t n;

	if (!skip(&b, RECORD_HEAD + 4 + BUILD_ID_BYTES + 4))
		return true; /* truncated */
	n = has_size ? id[BUILD_ID_BYTES] : build_id_bytes(id);
	return n > BUILD_ID_BYTES || tw_perf_build_id(s->maps, take_text(&b), id, n);
}

static enum tw_status read_build_ids(struct perf_data *s, struct tw_err *err)
{
	struct span b = feature(s, FEATURE_BUILD_ID);

	while (b.n >= RECORD_HEAD) {
		struct span one = {b.p, tw_u16le(b.p + 6)};

		if (one.n < RECORD_HEAD || !skip(&b, one.n))
			break;
		if (!read_build_id(s, one))
			return tw_oom(err);
	}
	return TW_OK;
}

/* --- threads --- */

/* The slot with the thread, or the free one where it belongs. */
static uint32_t *slot_of(const struct perf_data *s, uint32_t tid)
{
	const uint32_t mask = 2 * s->cap_threads - 1;
	uint32_t at = (uint32_t)tw_hash_id(tid, s->limits.hash_salt) & mask;

	while (s->slots[at] && s->threads[s->slots[at] - 1].tid != tid)
		at = (at + 1) & mask;
	return &s->slots[at];
}

/* Ensures capacity for the two threads that a record may contain. */
static bool reserve_threads(struct perf_data *s)
{
	if (s->n_threads + 2 <= s->cap_threads || s->cap_threads == MAX_THREADS)
		return true;
	if (!TW_WIDEN_FROM(
	            FIRST_THREADS, s->arena, s->threads, s->n_threads, s->cap_threads, s->slots))
		return false;
	for (uint32_t i = 0; i < s->n_threads; i++)
		*slot_of(s, s->threads[i].tid) = i + 1;
	return true;
}

/* NULL: too many. */
static struct thread *thread_of(struct perf_data *s, uint32_t pid, uint32_t tid)
{
	uint32_t *slot = slot_of(s, tid);

	if (*slot)
		return &s->threads[*slot - 1];
	if (s->n_threads == MAX_THREADS)
		return NULL;
	s->threads[s->n_threads] = (struct thread){.pid = pid, .tid = tid};
	*slot = ++s->n_threads;
	return &s->threads[s->n_threads - 1];
}

static void name_thread(struct perf_data *s, uint32_t pid, uint32_t tid, struct tw_str name)
{
	struct thread *t = thread_of(s, pid, tid);

	if (t && name.len) {
		t->pid = pid;
		t->name = name;
	}
}

static void emit_threads(struct perf_data *s)
{
	for (uint32_t i = 0; i < s->n_threads; i++) {
		const struct thread *t = &s->threads[i];

		if (!t->is_sampled)
			continue;
		if (t->pid)
			s->sink->ops->thread_process(s->sink, t->tid, t->pid);
		if (t->name.len)
			s->sink->ops->thread_name(s->sink, t->pid, t->tid, t->name);
	}
}

/* --- samples --- */

struct sample {
	uint64_t time, ip;
	uint32_t pid, tid, attr;
	struct span chain; /* of addresses */
	bool has_chain, in_kernel;
};

static bool skip_read(struct span *b, uint64_t format)
{
	const uint64_t times = (format & 1) + (format >> 1 & 1);
	const uint64_t each = 1 + (format >> 2 & 1) + (format >> 4 & 1);
	uint64_t n;

	if (!(format & 8))
		return skip(b, 8 * (each + times));
	return take_u64(b, &n) && n <= b->n / 8 && skip(b, 8 * times) && skip(b, 8 * each * n);
}

/* False: damaged. */
static bool read_sample(const struct perf_data *s, const struct record *r, struct sample *ret)
{
	struct span b = {r->p, r->n};
	const uint16_t misc = tw_u16le(r->p + 4);
	uint64_t has = s->attrs[0].sample_type;
	uint64_t id = 0;
	uint64_t unused;
	bool whole = skip(&b, RECORD_HEAD);

	*ret = (struct sample){.in_kernel = (misc & MISC_CPU_MODE) == MISC_KERNEL};
	whole = whole && (!(has & HAS_IDENTIFIER) || take_u64(&b, &id));
	whole = whole && (!(has & HAS_IP) || take_u64(&b, &ret->ip));
	whole = whole && take_u32(&b, &ret->pid) && take_u32(&b, &ret->tid);
	whole = whole && take_u64(&b, &ret->time);
	whole = whole && (!(has & HAS_ADDR) || take_u64(&b, &unused));
	whole = whole && (!(has & HAS_ID) || take_u64(&b, &id));
	ret->attr = s->n_attrs > 1 ? attr_of_id(s, id) : 0;
	has = s->attrs[ret->attr].sample_type;
	whole = whole && (!(has & HAS_STREAM) || take_u64(&b, &unused));
	whole = whole && (!(has & HAS_CPU) || take_u64(&b, &unused));
	whole = whole && (!(has & HAS_PERIOD) || take_u64(&b, &unused));
	whole = whole && (!(has & HAS_READ) || skip_read(&b, s->attrs[ret->attr].read_format));
	if (whole && has & HAS_CALLCHAIN) {
		uint64_t n = 0;

		whole = take_u64(&b, &n) && n <= b.n / 8;
		ret->has_chain = whole && n > 0;
		ret->chain = (struct span){b.p, whole ? (size_t)n * 8 : 0};
	}
	return whole;
}

static void add_frame(struct perf_data *s, uint32_t pid, uint64_t address, bool in_kernel)
{
	const struct tw_perf_frame f = tw_perf_find(s->maps, pid, address, in_kernel);
	const struct tw_perf_frame *last =
	        s->n_frames && s->n_frames <= MAX_FRAMES ? &s->frames[s->n_frames - 1] : NULL;

	if (last && !f.is_named && !last->is_named && f.file == last->file)
		return; /* a dozen of them have no more information than one */
	if (s->n_frames < MAX_FRAMES)
		s->frames[s->n_frames] = f;
	s->n_frames++;
}

static void add_frames(struct perf_data *s, const struct sample *x)
{
	struct span chain = x->chain;
	bool in_kernel = x->in_kernel;
	bool is_first = true;
	uint64_t address;

	s->n_frames = 0;
	if (!x->has_chain)
		add_frame(s, x->pid, x->ip, in_kernel);
	while (take_u64(&chain, &address)) {
		if (address >= CONTEXT_MAX) {
			in_kernel = address == CONTEXT_KERN;
			is_first = is_first || address == CONTEXT_USER;
			continue;
		}
		/* a return address may be the begin of the next function */
		add_frame(s, x->pid, address - (!is_first && !s->is_simpleperf && address ? 1 : 0),
		        in_kernel);
		is_first = false;
	}
}

/* Drops frames of ART adjacent to interpreted code, which run the interpreter. Innermost frames of
 * ART are kept: the code called them. */
static void drop_art(struct perf_data *s)
{
	uint32_t innermost = 0;
	uint32_t kept = 0;
	bool near = false;

	while (innermost < s->n_frames && s->frames[innermost].is_art)
		innermost++;
	for (uint32_t i = innermost; i < s->n_frames; i++) {
		struct tw_perf_frame *f = &s->frames[i];

		near = f->is_dex || (near && f->is_art);
		f->is_dropped = near && f->is_art;
	}
	near = false;
	for (uint32_t i = s->n_frames; i-- > innermost;) {
		struct tw_perf_frame *f = &s->frames[i];

		near = f->is_dex || (near && f->is_art);
		f->is_dropped |= near && f->is_art;
	}
	for (uint32_t i = 0; i < s->n_frames; i++)
		if (!s->frames[i].is_dropped)
			s->frames[kept++] = s->frames[i];
	s->n_frames = kept;
}

static enum tw_status add_sample(
        struct perf_data *s, const struct sample *x, uint64_t offset, struct tw_err *err)
{
	struct thread *t = thread_of(s, x->pid, x->tid);
	struct tw_sample_piece p = {.ts_ns = (int64_t)x->time,
	        .offset = offset,
	        .track = s->sink->ops->track(s->sink, 0, x->tid, TW_TID_FULL),
	        .first = tw_samples_frames(s->samples),
	        .continued = s->off_cpu};
	enum tw_status st = TW_OK;

	if (!p.track)
		return TW_OK;
	if (t) {
		t->is_sampled = true;
		t->pid = t->pid ? t->pid : x->pid;
	}
	s->pid = s->pid ? s->pid : x->pid;
	s->many_pids |= x->pid != s->pid;
	for (uint32_t i = s->n_frames; st == TW_OK && i-- > 0;)
		st = tw_samples_frame(s->samples, s->frames[i].sym, offset, err);
	if (st == TW_OK)
		st = tw_samples_add_stack(s->samples, &p, s->n_frames, err);
	if (p.n == s->n_frames && p.ts_ns < s->first_ns)
		s->first_ns = p.ts_ns;
	return st;
}

static enum tw_status take_sample(struct perf_data *s, const struct record *r, struct tw_err *err)
{
	struct sample x;

	if (!read_sample(s, r, &x) || x.tid > INT32_MAX || x.pid > INT32_MAX) {
		repair(s, TW_REPAIR_record_malformed, r->offset, 1);
		return TW_OK;
	}
	if (x.time > MAX_TIME_NS) {
		repair(s, TW_REPAIR_impossible_time, r->offset, 1);
		return TW_OK;
	}
	/* only one event is read, or each moment would be counted several times; with recorded
	 * switches, those too */
	s->read_attr = s->read_attr ? s->read_attr : x.attr + 1;
	if (x.attr + 1 != s->read_attr && !s->off_cpu) {
		repair(s, TW_REPAIR_event_unread, r->offset, 1);
		return TW_OK;
	}
	add_frames(s, &x);
	if (s->n_frames == 0 || s->n_frames > MAX_FRAMES) {
		repair(s, TW_REPAIR_sample_failed, r->offset, 1);
		return TW_OK;
	}
	drop_art(s);
	return add_sample(s, &x, r->offset, err);
}

/* --- other records --- */

static enum tw_status take_map(struct perf_data *s, const struct record *r, struct tw_err *err)
{
	const bool is_second = tw_u32le(r->p) == TYPE_MMAP2;
	const bool in_kernel = (tw_u16le(r->p + 4) & MISC_CPU_MODE) == MISC_KERNEL;
	const bool has_id = is_second && tw_u16le(r->p + 4) & MISC_MAP_HAS_BUILD_ID;
	struct tw_perf_map map = {0};
	struct span b = {r->p, r->n};
	const uint8_t *id; /* u8 bytes of it, three others, up to 20 bytes */
	uint32_t tid;
	uint32_t prot = 0;
	bool whole = skip(&b, RECORD_HEAD) && take_u32(&b, &map.pid) && take_u32(&b, &tid) &&
	             take_u64(&b, &map.start) && take_u64(&b, &map.len) &&
	             take_u64(&b, &map.offset);

	id = b.p;
	if (is_second)
		whole = whole && skip(&b, 24) && take_u32(&b, &prot) && skip(&b, 4);
	if (!whole) {
		repair(s, TW_REPAIR_record_malformed, r->offset, 1);
		return TW_OK;
	}
	map.path = take_text(&b);
	map.is_jit = (prot & PROT_JIT) != 0;
	if (in_kernel)
		map.pid = TW_PERF_KERNEL;
	else if (has_id && id[0] <= BUILD_ID_BYTES &&
	         !tw_perf_build_id(s->maps, map.path, id + 4, id[0]))
		return tw_oom(err);
	switch (tw_perf_map_add(s->maps, &map)) {
	case TW_PERF_FULL:
		repair(s, TW_REPAIR_state_lost, r->offset, 1);
		return TW_OK;
	case TW_PERF_NO_MEMORY:
		return tw_oom(err);
	case TW_PERF_ADDED:
	default:
		return TW_OK;
	}
}

static void take_comm(struct perf_data *s, const struct record *r)
{
	struct span b = {r->p, r->n};
	uint32_t pid;
	uint32_t tid;

	if (!skip(&b, RECORD_HEAD) || !take_u32(&b, &pid) || !take_u32(&b, &tid)) {
		repair(s, TW_REPAIR_record_malformed, r->offset, 1);
		return;
	}
	if (tw_u16le(r->p + 4) & MISC_COMM_EXEC)
		tw_perf_exec(s->maps, pid);
	name_thread(s, pid, tid, take_text(&b));
}

static enum tw_status take_fork(struct perf_data *s, const struct record *r, struct tw_err *err)
{
	struct span b = {r->p, r->n};
	const struct thread *from;
	uint32_t pid;
	uint32_t parent;
	uint32_t tid;
	uint32_t from_tid;

	if (!skip(&b, RECORD_HEAD) || !take_u32(&b, &pid) || !take_u32(&b, &parent) ||
	        !take_u32(&b, &tid) || !take_u32(&b, &from_tid)) {
		repair(s, TW_REPAIR_record_malformed, r->offset, 1);
		return TW_OK;
	}
	from = thread_of(s, parent, from_tid);
	if (from)
		name_thread(s, pid, tid, from->name); /* until its own name is recorded */
	return tw_perf_fork(s->maps, pid, parent) ? TW_OK : tw_oom(err);
}

static void take_lost(struct perf_data *s, const struct record *r)
{
	struct span b = {r->p, r->n};
	uint64_t n = 0;

	(void)skip(&b, RECORD_HEAD);
	if (tw_u32le(r->p) == TYPE_LOST)
		(void)skip(&b, 8);
	if (take_u64(&b, &n) && n)
		repair(s, TW_REPAIR_sample_failed, r->offset, n < UINT32_MAX ? n : UINT32_MAX);
}

static enum tw_status take_record(struct perf_data *s, const struct record *r, struct tw_err *err)
{
	switch (tw_u32le(r->p)) {
	case TYPE_SAMPLE:
		return take_sample(s, r, err);
	case TYPE_MMAP:
	case TYPE_MMAP2:
		return take_map(s, r, err);
	case TYPE_COMM:
		take_comm(s, r);
		return TW_OK;
	case TYPE_FORK:
		return take_fork(s, r, err);
	case TYPE_LOST:
	case TYPE_LOST_SAMPLES:
		take_lost(s, r);
		return TW_OK;
	default: /* exits, switches, throttling */
		return TW_OK;
	}
}

/* --- the file --- */

static enum tw_status read_header(struct perf_data *s, struct tw_err *err)
{
	if (s->input.n >= PIPE_HEADER && tw_u64le(s->input.data + 8) == PIPE_HEADER)
		return tw_fail_at(err, TW_UNSUPPORTED, 8,
		        "a perf.data written to a pipe; record to a file, or convert it by perf "
		        "inject");
	if (s->input.n < HEADER || memcmp(s->input.data, MAGIC, MAGIC_BYTES) != 0)
		return tw_fail_at(err, TW_CORRUPT, s->input.n, "no complete header of a perf.data");
	return read_attrs(s, err);
}

static enum tw_status list_all(struct perf_data *s, struct tw_err *err)
{
	const uint64_t at = tw_u64le(s->input.data + 40);
	const uint64_t size = tw_u64le(s->input.data + 48);
	struct span data;
	enum tw_status st;

	data = span_of(s, at, size ? size : UINT64_MAX);
	if (size == 0) /* the recorder ended before it wrote the size and the features */
		repair(s, TW_REPAIR_end_mark_missing, at, 1);
	else if (data.n < size)
		note_truncated(s, s->input.n);
	st = list_records(s, feature(s, FEATURE_MAPS), false, err);
	if (st == TW_OK)
		st = list_records(s, data, false, err);
	if (st == TW_OK && s->unpacked.n)
		st = list_records(s, (struct span){s->unpacked.data, s->unpacked.n}, true, err);
	return st;
}

static enum tw_status read_all(struct perf_data *s, struct tw_err *err)
{
	const struct record *records;
	enum tw_status st = read_header(s, err);

	if (st != TW_OK)
		return st;
	read_meta(s);
	st = read_files(s, FEATURE_FILE2, err);
	if (st == TW_OK)
		st = read_files(s, FEATURE_FILE, err);
	if (st == TW_OK)
		st = read_build_ids(s, err);
	if (st == TW_OK)
		st = list_all(s, err);
	if (st != TW_OK)
		return st;
	if (s->ids.n)
		qsort(s->ids.items, s->ids.n, sizeof(struct id), by_id);
	if (s->records.n)
		qsort(s->records.items, s->records.n, sizeof(struct record), by_time);
	records = s->records.items;
	for (uint32_t i = 0; st == TW_OK && i < s->records.n; i++)
		st = reserve_threads(s) ? take_record(s, &records[i], err) : tw_oom(err);
	return st;
}

/* The clock of the times, if the recording states it. */
static struct tw_clock clock_of(const struct perf_data *s)
{
	enum { MONOTONIC = 1, BOOTTIME = 7 };
	const struct attr *a = &s->attrs[0];
	const bool chosen = a->flags & USES_CLOCK;
	struct tw_clock c = {
	        .pid = s->many_pids ? 0 : s->pid, .mono_base_ns = -1, .boot_base_ns = -1};

	if (s->is_monotonic || (chosen && a->clock == MONOTONIC))
		c.mono_base_ns = s->first_ns;
	else if (chosen && a->clock == BOOTTIME)
		c.boot_base_ns = s->first_ns;
	return c;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct perf_data *s = state;
	struct tw_clock clock;
	enum tw_status st = read_all(s, err);

	(void)cut;
	(void)ZSTD_freeDStream(s->zstd);
	s->zstd = NULL;
	if (st != TW_OK)
		return st;
	if (tw_samples_count(s->samples) == 0)
		return tw_fail_at(err, TW_CORRUPT, HEADER, "no readable sample in this perf.data");
	emit_threads(s);
	clock = clock_of(s);
	s->sink->ops->clock(s->sink, &clock);
	tw_samples_move_zero(s->samples, s->first_ns);
	return tw_samples_emit(s->samples, 0, err);
}

const struct tw_format tw_format_perf_data = {
        .name = "perf_data",
        .title = "perf.data of simpleperf or perf",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct perf_data),
        .start = start,
        .push = push,
        .finish = finish,
};
