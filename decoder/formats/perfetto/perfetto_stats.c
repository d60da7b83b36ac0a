#include "decoder/formats/perfetto/perfetto_stats.h"

#include "decoder/formats/detail.h"

static const struct {
	uint32_t field; /* of ProcessStats.Process */
	const char *name;
} counters[] = {{3, "resident kB"}, {7, "swapped kB"}, {10, "oom score"}};
enum { COUNTERS = sizeof counters / sizeof *counters, MAX_FIELD = 10 };

static enum tw_status emit_process(struct tw_marks *m, struct tw_pb message, int64_t ts_ns,
        uint64_t offset, struct tw_err *err)
{
	int64_t value[MAX_FIELD + 1] = {0};
	bool has[MAX_FIELD + 1] = {false};
	enum tw_status st = TW_OK;
	struct tw_pb_field f;
	struct tw_detail d;

	while (tw_pb_next(&message, &f))
		if (f.number <= MAX_FIELD && f.type == TW_PB_VARINT) {
			value[f.number] = (int64_t)f.value;
			has[f.number] = true;
		}
	d.len = 0;
	tw_detail_int(&d, "pid", value[1]);
	for (unsigned i = 0; st == TW_OK && has[1] && i < COUNTERS; i++) {
		struct tw_note note = {.kind = TW_NOTE_counter,
		        .ts_ns = ts_ns,
		        .dur_ns = -1,
		        .value = value[counters[i].field],
		        .offset = offset,
		        .text = tw_str_of(counters[i].name),
		        .detail = tw_detail_text(&d)};

		if (has[counters[i].field])
			st = tw_marks_note(m, &note, err);
	}
	return st;
}

enum tw_status tw_perfetto_stats_emit(struct tw_marks *m, struct tw_pb message, int64_t ts_ns,
        uint64_t offset, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	struct tw_pb_field f;

	if (ts_ns > m->last_ns)
		m->last_ns = ts_ns;
	while (st == TW_OK && tw_pb_next(&message, &f))
		if (f.number == 1 && f.type == TW_PB_BYTES)
			st = emit_process(m, tw_pb_in(&f), ts_ns, offset, err);
	return st;
}
