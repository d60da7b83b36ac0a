/* export_system_report.c - reports whether the device's own trace can be joined with one of ours.
 */
#include "server/export/perfetto/system/export_system.h"

#include "server/base/text/json_write.h"
#include "server/export/perfetto/export_clock_sync.h"

enum { ARENA_BYTES = 64 << 20 };

static void put_place(
        struct tw_json *j, const struct tw_trace_info *t, const struct tw_clock_sync *p)
{
	int64_t base = p->choice == TW_CLOCK_SYNC_MONOTONIC ? t->mono_base_ns : t->boot_base_ns;
	uint32_t at = 0;

	tw_json_key_str(j, "clock", tw_str_of(tw_clock_sync_name(p->choice)));
	if (p->choice != TW_CLOCK_SYNC_START && base >= 0)
		tw_json_key_int(j, "offset_ns",
		        tw_clock_sync_time(p, &at, t->start_ns) - t->start_ns - base);
	else if (p->choice == TW_CLOCK_SYNC_START)
		tw_json_key_int(
		        j, "offset_ns", tw_clock_sync_time(p, &at, t->start_ns) - t->start_ns);
	if (p->residual_ns != INT64_MIN)
		tw_json_key_int(j, "residual_ns", p->residual_ns);
	tw_json_key_int(j, "steps", p->n);
}

static void put_system(struct tw_json *j, const struct tw_system *s)
{
	tw_json_key_int(j, "packets", (int64_t)s->packets);
	tw_json_key_int(j, "damages", (int64_t)s->damages);
	tw_json_key_bool(j, "cut", s->cut);
	tw_json_key_bool(j, "written_while_recorded", s->flushed);
}

static enum tw_status put_report(const struct tw_system *s, const struct tw_trace_info *trace,
        struct tw_arena *a, struct tw_buf *out, struct tw_err *err)
{
	struct tw_json j = tw_json_to(out);
	struct tw_clock_sync place = {0};
	const char *why;

	if (s->fault == TW_SYSTEM_FINE) {
		enum tw_status st = tw_clock_sync_make(trace, s, a, &place, err);

		if (st != TW_OK)
			return st;
	}
	why = tw_clock_sync_why_not(s, &place);
	tw_json_open(&j, '{');
	tw_json_key_bool(&j, "joined", !why);
	tw_json_key(&j, "reason");
	if (why)
		tw_json_str(&j, tw_str_of(why));
	else
		tw_json_null(&j);
	if (!why && place.n)
		put_place(&j, trace, &place);
	put_system(&j, s);
	tw_json_close(&j, '}');
	return tw_buf_status(out);
}

enum tw_status tw_system_report(const struct tw_system *s, const struct tw_trace_info *trace,
        struct tw_buf *out, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	st = put_report(s, trace, a, out, err);
	tw_arena_free(a);
	return st;
}
