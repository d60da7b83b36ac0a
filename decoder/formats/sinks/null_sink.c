#include "decoder/formats/sinks/null_sink.h"

static uint32_t null_track(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	(void)s, (void)pid, (void)tid, (void)kind;
	return 1;
}

static uint32_t null_method(struct tw_sink *s, uint64_t id)
{
	(void)s, (void)id;
	return 1;
}

static uint32_t null_name(struct tw_sink *s, struct tw_str name)
{
	(void)s, (void)name;
	return 1;
}

static void null_method_name(struct tw_sink *s, uint64_t id, struct tw_str name)
{
	(void)s, (void)id, (void)name;
}

static enum tw_status null_events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	(void)s, (void)ev, (void)n, (void)err;
	return TW_OK;
}

static enum tw_status null_edges(
        struct tw_sink *s, const struct tw_edge_batch *edges, struct tw_err *err)
{
	(void)s, (void)edges, (void)err;
	return TW_OK;
}

static void null_thread(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str name)
{
	(void)s, (void)pid, (void)tid, (void)name;
}

static void null_process(struct tw_sink *s, uint64_t tid, uint32_t pid)
{
	(void)s, (void)tid, (void)pid;
}

static void null_transaction(
        struct tw_sink *s, struct tw_str interface, uint64_t code, struct tw_str name)
{
	(void)s, (void)interface, (void)code, (void)name;
}

static struct tw_str null_transaction_name(
        struct tw_sink *s, struct tw_str interface, uint64_t code)
{
	(void)s, (void)interface, (void)code;
	return TW_STR("");
}

static void null_clock(struct tw_sink *s, const struct tw_clock *clock)
{
	(void)s, (void)clock;
}

static void null_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	(void)s, (void)what, (void)offset, (void)n;
}

static void null_source(
        struct tw_sink *s, uint32_t track, enum tw_source source, int64_t interval_ns)
{
	(void)s, (void)track, (void)source, (void)interval_ns;
}

static enum tw_status null_note(struct tw_sink *s, const struct tw_note *note, struct tw_err *err)
{
	(void)s, (void)note, (void)err;
	return TW_OK;
}

static enum tw_status null_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	(void)s, (void)kind, (void)json, (void)err;
	return TW_OK;
}

static const struct tw_sink_ops null_ops = {
        .track = null_track,
        .method = null_method,
        .name = null_name,
        .method_name = null_method_name,
        .events = null_events,
        .edges = null_edges,
        .thread_name = null_thread,
        .thread_process = null_process,
        .transaction = null_transaction,
        .transaction_name = null_transaction_name,
        .clock = null_clock,
        .source = null_source,
        .note = null_note,
        .document = null_document,
        .repair = null_repair,
};

struct tw_sink tw_null_sink(void)
{
	return (struct tw_sink){&null_ops};
}
