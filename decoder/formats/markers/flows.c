#include "decoder/formats/markers/flows.h"

#include "decoder/base/hash.h"
#include "decoder/formats/detail.h"

enum { CHAINS = 1 << 14 };

struct tw_flow {
	uint64_t id;
	int64_t ts_ns;
	uint64_t offset;
	int64_t tid; /* -1: no thread */
	uint32_t pid;
	uint32_t track; /* of the sink; 0: no thread */
	uint32_t next;  /* in its chain or the free list; 0 ends it */
};

static bool prepare(struct tw_flows *f)
{
	if (f->list)
		return true;
	f->chains = tw_arena_zalloc(f->arena, CHAINS, sizeof *f->chains);
	if (f->chains)
		f->list = tw_arena_alloc(f->arena, TW_FLOWS_MAX, sizeof *f->list);
	return f->list != NULL;
}

/* The link that leads to the flow, or the end of its chain. */
static uint32_t *find(struct tw_flows *f, uint64_t id)
{
	uint32_t *link = &f->chains[tw_hash_id(id, f->markers->salt) & (CHAINS - 1)];

	while (*link && f->list[*link - 1].id != id)
		link = &f->list[*link - 1].next;
	return link;
}

static struct tw_flow point_of(struct tw_flows *f, const struct tw_flow_point *p)
{
	return (struct tw_flow){.id = p->id,
	        .ts_ns = p->ts_ns,
	        .offset = p->offset,
	        .tid = p->thread ? (int64_t)p->thread->tid : -1,
	        .pid = p->thread ? p->thread->pid : 0,
	        .track = p->thread ? tw_tids_track(&f->markers->tids, p->thread) : 0};
}

static enum tw_status emit(struct tw_flows *f, const struct tw_flow *from, const struct tw_flow *to,
        struct tw_str name, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_flow,
	        .track = from->track,
	        .ts_ns = from->ts_ns,
	        .dur_ns = to->ts_ns - from->ts_ns,
	        .value = to->tid,
	        .offset = from->offset,
	        .text = name};
	struct tw_detail d;

	if (note.dur_ns < 0) {
		f->markers->sink->ops->repair(f->markers->sink, TW_REPAIR_time_fell, to->offset, 1);
		note.dur_ns = 0;
	}
	d.len = 0;
	if (to->pid && to->pid != from->pid)
		tw_detail_int(&d, "to_pid", tw_pid_number(to->pid));
	note.detail = tw_detail_text(&d);
	return tw_markers_note(f->markers, &note, err);
}

static void release(struct tw_flows *f, uint32_t *link)
{
	uint32_t at = *link;

	*link = f->list[at - 1].next;
	f->list[at - 1].next = f->free_list;
	f->free_list = at;
}

/* The index of the flow at *link, or of a new one; 0: too many are open. */
static uint32_t reserve(struct tw_flows *f, uint32_t *link)
{
	uint32_t at = *link;

	if (at)
		return at;
	if (f->free_list) {
		at = f->free_list;
		f->free_list = f->list[at - 1].next;
	} else if (f->used < TW_FLOWS_MAX) {
		at = ++f->used;
	} else {
		return 0;
	}
	f->list[at - 1].next = 0;
	*link = at;
	return at;
}

static void open_at(struct tw_flows *f, uint32_t *link, const struct tw_flow *point)
{
	uint32_t at = reserve(f, link);
	uint32_t next;

	if (at == 0) {
		f->markers->sink->ops->repair(
		        f->markers->sink, TW_REPAIR_note_limit, point->offset, 1);
		return;
	}
	next = f->list[at - 1].next;
	f->list[at - 1] = *point;
	f->list[at - 1].next = next;
}

/* From the open point to this one, or in reverse if only their times determine the order. */
static enum tw_status join(struct tw_flows *f, uint32_t open, const struct tw_flow_point *p,
        const struct tw_flow *point, enum tw_flow_rule rule, struct tw_err *err)
{
	const struct tw_flow *other = &f->list[open - 1];

	if (rule == TW_FLOW_BY_TIME && point->ts_ns < other->ts_ns)
		return emit(f, point, other, TW_STR(""), err);
	return emit(f, other, point, p->name, err);
}

enum tw_status tw_flows_emit(struct tw_flows *f, const struct tw_flow_point *p,
        enum tw_flow_step step, enum tw_flow_rule rule, struct tw_err *err)
{
	struct tw_flow point;
	uint32_t *link;
	enum tw_status st = TW_OK;

	if (!prepare(f))
		return tw_oom(err);
	point = point_of(f, p);
	link = find(f, p->id);
	f->markers->emitted++;
	if (step != TW_FLOW_BEGIN && *link)
		st = join(f, *link, p, &point, rule, err);
	else if (step != TW_FLOW_BEGIN && rule == TW_FLOW_BY_STEP)
		f->markers->sink->ops->repair(
		        f->markers->sink, TW_REPAIR_exit_without_enter, p->offset, 1);
	if (step == TW_FLOW_END && *link)
		release(f, link);
	else if (step != TW_FLOW_END)
		open_at(f, link, &point);
	return st;
}
