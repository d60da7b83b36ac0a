/*
 * simpleperf.c - stack samples of simpleperf, in the form that `simpleperf report-sample
 * --protobuf` writes and Android Studio exports as the .trace of a callstack sample recording.
 *
 * "SIMPLEPERF", u16 version 1, then records up to one of size 0; integers little-endian:
 *    u32 size, a protobuf message of that size with one field, whose number is its kind
 *   1 sample: 1 time ns, 2 thread, 3 frames, innermost first (2 file, 3 symbol, -1 none), 6 reason
 *     of an unwinding failure
 *   2 lost: 2 samples that the kernel dropped   3 file: 1 id, 2 path, 3 symbols in their order
 *   4 thread: 1 id, 2 process, 3 name
 *   5 meta: 1 names of events, 6 threads are also sampled when they leave the CPU
 * Files and threads come after the samples, so a frame is a method whose id consists of file and
 * symbol, and which its file names later.  Learned from platform/system/extras, simpleperf.
 *
 * The size, the tag and the field's own length must agree, which does not happen by chance: after
 * damage the next place where they agree is searched for.  Times are CLOCK_MONOTONIC, simpleperf's
 * default; 0 is the earliest sample.  If a thread is sampled when it leaves the CPU, its stack
 * lasts until its next sample.
 */
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/base/list.h"
#include "decoder/base/pbread.h"
#include "decoder/formats/format.h"
#include "decoder/formats/sampled/perf_maps.h"
#include "decoder/formats/sampled/samples.h"

enum {
	MAGIC_BYTES = 10,
	HEADER = 12,
	VERSION = 1,
	SIZE = 4,
	MAX_RECORD = 16 << 20,
	MAX_HEAD = SIZE + 1 + 4, /* a size, a tag, and the length of the longest record */
	FIRST_RECORD = 4096,
	MAX_FRAMES = 4096,
	FILES = 4096 /* for which it is known whether they have frames without a symbol */
};

#define MAGIC       "SIMPLEPERF"
#define MAX_TIME_NS ((uint64_t)1 << 61)
#define NO_SYMBOL   UINT32_MAX

enum state { IN_HEADER, IN_HEAD, IN_RECORD, ENDED };

struct simpleperf {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_samples *samples;
	enum state state;
	bool searching;                 /* for a record, after damage */
	bool trailing;                  /* bytes after the end were reported */
	bool off_cpu;                   /* samples are taken there too */
	uint64_t offset, record_offset; /* of the input, and of the record's size in it */
	uint32_t pid;                   /* of the first thread emitted, 0: none yet */
	bool many_pids;
	int64_t first_ns; /* of all samples */
	unsigned field;   /* of the record */
	uint8_t head[HEADER];
	uint32_t n_head, want;
	uint8_t *record; /* capacity cap, n bytes used */
	uint32_t cap, n, size;
	bool nameless[FILES]; /* frames in the file have no symbol */
	uint32_t n_frames;
	uint32_t last_file, last_symbol; /* of the previous frame */
	uint32_t frames[MAX_FRAMES];     /* of the sample, innermost first */
};

static int probe(const uint8_t *head, size_t len)
{
	if (len < HEADER)
		return 0;
	return memcmp(head, MAGIC, MAGIC_BYTES) == 0 ? 100 : 0;
}

static void repair(struct simpleperf *s, enum tw_repair what, uint64_t n)
{
	s->sink->ops->repair(s->sink, what, s->record_offset, n);
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct simpleperf *s = state;

	s->sink = sink;
	s->arena = a;
	s->want = HEADER;
	s->first_ns = INT64_MAX;
	s->samples = tw_samples_new(a, limits, sink);
	return s->samples ? TW_OK : tw_oom(err);
}

/* --- names --- */

/* Ids with the highest bit do not occur in a build's method mapping. */
static uint64_t method_id(uint32_t file, uint32_t symbol)
{
	return UINT64_C(1) << 63 | (uint64_t)(file & INT32_MAX) << 32 | symbol;
}

/* Frames without a symbol are named by their file. */
static void name_rest(struct simpleperf *s, uint32_t file, struct tw_str path)
{
	char text[TW_PERF_FILE_FRAME_BYTES];

	if (file >= FILES || s->nameless[file])
		s->sink->ops->method_name(
		        s->sink, method_id(file, NO_SYMBOL), tw_perf_file_frame(path, text));
}

static void read_file(struct simpleperf *s, struct tw_pb message)
{
	struct tw_pb again = message;
	struct tw_str path = {0};
	struct tw_pb_field f;
	uint32_t file = 0;
	uint32_t symbol = 0;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			file = (uint32_t)f.value;
		else if (f.number == 2)
			path = tw_pb_str(&f);
	name_rest(s, file, path);
	while (tw_pb_next(&again, &f))
		if (f.number == 3 && f.type == TW_PB_BYTES)
			s->sink->ops->method_name(
			        s->sink, method_id(file, symbol++), tw_pb_str(&f));
}

static void read_thread(struct simpleperf *s, struct tw_pb message)
{
	struct tw_pb_field f;
	struct tw_str name = {0};
	uint64_t tid = 0;
	uint64_t pid = 0;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			tid = f.value;
		else if (f.number == 2)
			pid = f.value;
		else if (f.number == 3)
			name = tw_pb_str(&f);
	if (tid > INT32_MAX || pid > INT32_MAX) {
		repair(s, TW_REPAIR_record_malformed, 1);
		return;
	}
	if (s->pid == 0)
		s->pid = (uint32_t)pid;
	s->many_pids |= pid && pid != s->pid;
	if (pid)
		s->sink->ops->thread_process(s->sink, tid, (uint32_t)pid);
	if (name.len)
		s->sink->ops->thread_name(s->sink, (uint32_t)pid, tid, name);
}

/* --- samples --- */

static void add_frame(struct simpleperf *s, uint32_t file, uint32_t symbol)
{
	bool again = s->n_frames && symbol == NO_SYMBOL && s->last_symbol == NO_SYMBOL &&
	             s->last_file == file;

	if (again) /* a dozen frames of the kernel have no more information than one */
		return;
	s->last_file = file;
	s->last_symbol = symbol;
	if (symbol == NO_SYMBOL && file < FILES)
		s->nameless[file] = true;
	if (s->n_frames < MAX_FRAMES)
		s->frames[s->n_frames] = s->sink->ops->method(s->sink, method_id(file, symbol));
	s->n_frames++;
}

/* False: damaged. */
static bool read_frame(struct simpleperf *s, struct tw_pb message)
{
	struct tw_pb_field f;
	uint32_t file = 0;
	uint32_t symbol = NO_SYMBOL;

	while (tw_pb_next(&message, &f))
		if (f.number == 2)
			file = (uint32_t)f.value;
		else if (f.number == 3)
			symbol = (uint32_t)f.value;
	add_frame(s, file, symbol);
	return !tw_pb_bad(&message);
}

struct sample {
	uint64_t time, tid;
	bool whole; /* unwound to its end */
	bool malformed;
};

static enum tw_status add_sample(struct simpleperf *s, const struct sample *x, struct tw_err *err)
{
	struct tw_sample_piece p = {.ts_ns = (int64_t)x->time,
	        .offset = s->record_offset,
	        .track = s->sink->ops->track(s->sink, 0, x->tid, TW_TID_FULL),
	        .first = tw_samples_frames(s->samples),
	        .continued = s->off_cpu};
	enum tw_status st = TW_OK;

	if (!p.track)
		return TW_OK;
	for (uint32_t i = s->n_frames; st == TW_OK && i-- > 0;)
		st = tw_samples_frame(s->samples, s->frames[i], s->record_offset, err);
	if (st == TW_OK)
		st = tw_samples_add_stack(s->samples, &p, s->n_frames, err);
	if (p.n == s->n_frames && p.ts_ns < s->first_ns)
		s->first_ns = p.ts_ns;
	return st;
}

static struct sample read_sample(struct simpleperf *s, struct tw_pb message)
{
	struct sample x = {.whole = true};
	struct tw_pb_field f;

	s->n_frames = 0;
	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			x.time = f.value;
		else if (f.number == 2)
			x.tid = f.value;
		else if (f.number == 3 && f.type == TW_PB_BYTES)
			x.malformed |= !read_frame(s, tw_pb_in(&f));
		else if (f.number == 6)
			x.whole = false;
	x.malformed |= tw_pb_bad(&message) || x.tid > INT32_MAX;
	return x;
}

static enum tw_status take_sample(struct simpleperf *s, struct tw_pb message, struct tw_err *err)
{
	const struct sample x = read_sample(s, message);
	bool usable = s->n_frames > 0 && s->n_frames <= MAX_FRAMES;

	if (x.malformed || x.time > MAX_TIME_NS) {
		repair(s, x.malformed ? TW_REPAIR_record_malformed : TW_REPAIR_impossible_time, 1);
		return TW_OK;
	}
	if (!x.whole || !usable)
		repair(s, TW_REPAIR_sample_failed, 1);
	return usable ? add_sample(s, &x, err) : TW_OK;
}

/* Whether samples are also taken when a thread leaves the CPU.  Older versions show it only by the
 * event. */
static bool is_off_cpu(struct tw_pb message)
{
	struct tw_pb_field f;
	bool off_cpu = false;

	while (tw_pb_next(&message, &f))
		off_cpu |= f.number == 1
		                   ? tw_str_starts(tw_pb_str(&f), TW_STR("sched:sched_switch"))
		                   : f.number == 6 && f.value;
	return off_cpu;
}

/* --- records --- */

static enum tw_status read_record(struct simpleperf *s, struct tw_err *err)
{
	struct tw_pb message = tw_pb_of(s->record, s->size);
	uint64_t lost;

	if (!tw_pb_is_complete(s->record, s->size)) {
		repair(s, TW_REPAIR_record_malformed, 1);
		return TW_OK;
	}
	switch (s->field) {
	case 1:
		return take_sample(s, message, err);
	case 2:
		lost = tw_pb_number_of(message, 2);
		if (lost)
			repair(s, TW_REPAIR_sample_failed, lost);
		break;
	case 3:
		read_file(s, message);
		break;
	case 4:
		read_thread(s, message);
		break;
	case 5:
		s->off_cpu = is_off_cpu(message);
		break;
	default: /* switches of threads, and kinds of newer versions */
		break;
	}
	return TW_OK;
}

static void expect_head(struct simpleperf *s, uint32_t have)
{
	s->state = IN_HEAD;
	s->n_head = have;
	s->want = have > SIZE ? have : SIZE;
	s->record_offset = s->offset - have;
}

/* Checks whether a record begins with the bytes in the head. Returns the number of further bytes
 * needed; 0: yes, and *ret_end is the end of its length; -1: no. */
static int check_head(struct simpleperf *s, uint32_t *ret_end)
{
	uint32_t size = tw_u32le(s->head);
	uint32_t at = SIZE + 1;
	uint32_t length = 0;

	if (size < 2 || size > MAX_RECORD)
		return -1;
	if (s->n_head < SIZE + 2)
		return (int)(SIZE + 2 - s->n_head);
	if ((s->head[SIZE] & 7) != TW_PB_BYTES || s->head[SIZE] >> 3 == 0 || s->head[SIZE] >> 7)
		return -1;
	for (unsigned shift = 0; at < s->n_head; shift += 7) {
		length |= (uint32_t)(s->head[at] & 0x7f) << shift;
		if (!(s->head[at++] >> 7)) {
			s->size = length;
			*ret_end = at;
			return size == 1 + (at - SIZE - 1) + length ? 0 : -1;
		}
	}
	return s->n_head < MAX_HEAD ? 1 : -1;
}

/* Continues one byte later, with the bytes already read. */
static void search(struct simpleperf *s)
{
	if (!s->searching)
		repair(s, TW_REPAIR_framing_lost, 1);
	s->searching = true;
	memmove(s->head, s->head + 1, s->n_head - 1);
	expect_head(s, s->n_head - 1);
}

/* After a search, the bytes in the head after its end belong to the record and the next one. */
static enum tw_status open_record(struct simpleperf *s, uint32_t end, struct tw_err *err)
{
	uint32_t rest = s->n_head - end;

	if (!TW_RESERVE_FROM(FIRST_RECORD, s->arena, s->record, 0, s->size, s->cap))
		return tw_oom(err);
	s->searching = false;
	s->state = IN_RECORD;
	s->field = s->head[SIZE] >> 3;
	s->n = rest < s->size ? rest : s->size;
	s->n_head = rest - s->n;
	memcpy(s->record, s->head + end, s->n);
	memmove(s->head, s->head + end + s->n, s->n_head);
	return TW_OK;
}

static enum tw_status read_head(struct simpleperf *s, struct tw_err *err)
{
	uint32_t end = 0;
	int more;

	if (!s->searching && tw_u32le(s->head) == 0) {
		s->state = ENDED;
		return TW_OK;
	}
	more = check_head(s, &end);
	if (more == 0)
		return open_record(s, end, err);
	if (more < 0)
		search(s);
	else
		s->want = s->n_head + (uint32_t)more;
	return TW_OK;
}

static enum tw_status read_header(struct simpleperf *s, struct tw_err *err)
{
	unsigned version = tw_u16le(s->head + MAGIC_BYTES);

	if (memcmp(s->head, MAGIC, MAGIC_BYTES) != 0)
		return tw_fail_at(err, TW_CORRUPT, 0, "no simpleperf samples");
	if (version != VERSION)
		return tw_fail_at(err, TW_UNSUPPORTED, MAGIC_BYTES,
		        "simpleperf samples of version %u; this server reads version %d", version,
		        VERSION);
	expect_head(s, 0);
	return TW_OK;
}

static void note_trailing(struct simpleperf *s, size_t n)
{
	if (n && !s->trailing) {
		s->record_offset = s->offset;
		repair(s, TW_REPAIR_trailing_data, 1);
	}
	s->trailing |= n > 0;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct simpleperf *s = state;
	enum tw_status st = TW_OK;

	while (st == TW_OK) {
		if (s->state == ENDED) {
			note_trailing(s, n);
			break;
		}
		if (s->state == IN_RECORD) {
			if (!tw_gather(s->record, &s->n, s->size, &s->offset, &p, &n))
				break;
			st = read_record(s, err);
			expect_head(s, s->n_head);
			continue;
		}
		if (!tw_gather(s->head, &s->n_head, s->want, &s->offset, &p, &n))
			break;
		st = s->state == IN_HEADER ? read_header(s, err) : read_head(s, err);
	}
	return st;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct simpleperf *s = state;

	if (s->state == IN_HEADER)
		return tw_fail_at(err, TW_CORRUPT, s->offset,
		        "the file ends within the header of simpleperf samples");
	if (s->state != ENDED && !s->searching && !cut)
		repair(s,
		        s->offset > s->record_offset ? TW_REPAIR_input_truncated
		                                     : TW_REPAIR_end_mark_missing,
		        1);
	if (tw_samples_count(s->samples) == 0)
		return tw_fail_at(err, TW_CORRUPT, HEADER, "no readable sample");
	s->sink->ops->clock(s->sink, &(struct tw_clock){.pid = s->many_pids ? 0 : s->pid,
	                                     .mono_base_ns = s->first_ns,
	                                     .boot_base_ns = -1});
	tw_samples_move_zero(s->samples, s->first_ns);
	return tw_samples_emit(s->samples, 0, err);
}

const struct tw_format tw_format_simpleperf = {
        .name = "simpleperf",
        .title = "simpleperf stack samples (report-sample --protobuf, Android Studio)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct simpleperf),
        .start = start,
        .push = push,
        .finish = finish,
};
