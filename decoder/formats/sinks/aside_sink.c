#include "decoder/formats/sinks/aside_sink.h"

#include <string.h>

#include "decoder/base/list.h"
#include "decoder/formats/sinks/null_sink.h"

/* Linear search from the end for each track: a dump has hundreds. */
enum { MAX_THREADS = 4096 };

struct thread { /* a track of the inner sink, requested when a note needs it */
	uint32_t pid;
	uint64_t tid;
	enum tw_tid_kind kind;
};

struct aside {
	struct tw_sink sink; /* first member */
	struct tw_sink_ops ops;
	struct tw_sink *inner;
	struct tw_arena *arena;
	struct thread *threads; /* by handle - 1 */
	uint32_t n, cap;
};

static struct aside *aside_of(struct tw_sink *s)
{
	return (struct aside *)(void *)s;
}

static uint32_t aside_track(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	struct aside *a = aside_of(s);

	for (uint32_t i = a->n; i-- > 0;)
		if (a->threads[i].tid == tid && a->threads[i].pid == pid &&
		        a->threads[i].kind == kind)
			return i + 1;
	if (a->n >= MAX_THREADS || !TW_GROW(a->arena, a->threads, a->n, a->cap))
		return 0;
	a->threads[a->n] = (struct thread){pid, tid, kind};
	return ++a->n;
}

static void aside_thread(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str name)
{
	struct tw_sink *inner = aside_of(s)->inner;

	inner->ops->thread_name(inner, pid, tid, name);
}

static enum tw_status aside_note(struct tw_sink *s, const struct tw_note *note, struct tw_err *err)
{
	struct aside *a = aside_of(s);
	struct tw_note inner = *note;

	if (note->track && note->track <= a->n) {
		const struct thread *t = &a->threads[note->track - 1];

		inner.track = a->inner->ops->track(a->inner, t->pid, t->tid, t->kind);
	}
	return a->inner->ops->note(a->inner, &inner, err);
}

static enum tw_status aside_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	struct tw_sink *inner = aside_of(s)->inner;

	return inner->ops->document(inner, kind, json, err);
}

static void aside_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct tw_sink *inner = aside_of(s)->inner;

	inner->ops->repair(inner, what, offset, n);
}

struct tw_sink *tw_aside_sink_new(struct tw_arena *a, struct tw_sink *inner)
{
	struct aside *s = tw_arena_zalloc(a, 1, sizeof *s);

	if (!s)
		return NULL;
	s->ops = *tw_null_sink().ops;
	s->ops.track = aside_track;
	s->ops.thread_name = aside_thread;
	s->ops.note = aside_note;
	s->ops.document = aside_document;
	s->ops.repair = aside_repair;
	s->sink.ops = &s->ops;
	s->inner = inner;
	s->arena = a;
	return &s->sink;
}
