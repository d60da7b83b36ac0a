#include "decoder/formats/ftrace/binder_calls.h"

/* Transactions are numbered in order, so the latest ones have different slots. */
enum { TRANSACTIONS = 1 << 12 };

struct tw_binder_transaction {
	uint64_t id; /* 0: none */
	int64_t ts_ns;
	uint64_t offset;
	struct tw_tid *from, *to; /* to: NULL until it is received */
	uint64_t answers;         /* of a reply: the call */
	uint64_t outer;           /* the call that its receiver answers after this one */
	bool reply, one_way;
};

static bool prepare(struct tw_binder_calls *b, struct tw_markers *m)
{
	if (!b->list) {
		b->serving = tw_arena_zalloc(m->arena, TRANSACTIONS, sizeof *b->serving);
		b->list = b->serving ? tw_arena_zalloc(m->arena, TRANSACTIONS, sizeof *b->list)
		                     : NULL;
	}
	return b->list != NULL;
}

static struct tw_binder_transaction *slot_of(struct tw_binder_calls *b, uint64_t id)
{
	return &b->list[id & (TRANSACTIONS - 1)];
}

/* NULL: not stored, or no longer. */
static struct tw_binder_transaction *find(struct tw_binder_calls *b, uint64_t id)
{
	struct tw_binder_transaction *t = slot_of(b, id);

	return id && t->id == id ? t : NULL;
}

/* The call that a thread answers next; several threads may share the slot. */
static uint64_t *served_by(struct tw_binder_calls *b, const struct tw_tid *k)
{
	return &b->serving[k->tid & (TRANSACTIONS - 1)];
}

static enum tw_status emit(struct tw_markers *m, enum tw_note_kind kind,
        const struct tw_binder_transaction *call, int64_t end_ns, struct tw_err *err)
{
	struct tw_note note = {.kind = kind,
	        .track = tw_tids_track(&m->tids, call->from),
	        .ts_ns = call->ts_ns,
	        .dur_ns = end_ns > call->ts_ns ? end_ns - call->ts_ns : 0,
	        .value = (int64_t)call->to->tid,
	        .offset = call->offset};

	(void)tw_tids_track(&m->tids, call->to); /* the other end is a thread of the trace */
	return note.track ? tw_markers_note(m, &note, err) : TW_OK;
}

enum tw_status tw_binder_sent(struct tw_binder_calls *b, struct tw_markers *m,
        const struct tw_binder_event *ev, struct tw_err *err)
{
	struct tw_binder_transaction t = {.id = ev->id,
	        .ts_ns = ev->ts_ns,
	        .offset = ev->offset,
	        .from = ev->by,
	        .reply = ev->reply,
	        .one_way = ev->one_way};
	const struct tw_binder_transaction *call;

	if (!prepare(b, m))
		return tw_oom(err);
	if (!ev->by || !ev->id)
		return TW_OK;
	if (ev->reply) {
		call = find(b, *served_by(b, ev->by));
		if (!call || call->to != ev->by)
			return TW_OK;
		t.answers = call->id;
		*served_by(b, ev->by) = call->outer;
	}
	*slot_of(b, ev->id) = t;
	return TW_OK;
}

enum tw_status tw_binder_received(struct tw_binder_calls *b, struct tw_markers *m,
        const struct tw_binder_event *ev, struct tw_err *err)
{
	struct tw_binder_transaction *t;
	struct tw_binder_transaction *call;

	if (!prepare(b, m))
		return tw_oom(err);
	t = find(b, ev->id);
	if (!t || !ev->by || t->to)
		return TW_OK;
	t->to = ev->by;
	if (t->one_way && !t->reply)
		return emit(m, TW_NOTE_flow, t, ev->ts_ns, err);
	if (!t->reply) {
		t->outer = *served_by(b, ev->by);
		*served_by(b, ev->by) = t->id;
		return TW_OK;
	}
	call = find(b, t->answers);
	if (!call || !call->to || call->from != ev->by) /* also if damage repeats its number */
		return TW_OK;
	return emit(m, TW_NOTE_binder, call, ev->ts_ns, err);
}
