/*
 * perfetto_frames.c - see the header.
 *
 * Frames are stored in a ring in the order in which they begin, and found by cookie.  A frame still
 * open when its ring slot is reused, or when its cookie begins again, is emitted as open.
 */
#include "decoder/formats/perfetto/perfetto_parts.h"

#include <stdio.h>

#include "decoder/base/hash.h"
#include "decoder/formats/detail.h"

enum { RING = 4096, FIELDS = 12, FRAME_END = 5 }; /* RING: power of two */

struct tw_perfetto_frame {
	bool open;
	unsigned kind; /* index of KINDS */
	uint32_t next; /* index + 1 of another with its hash; 0: none */
	int64_t start_ns, cookie, token, display_token;
	uint64_t offset;
	uint32_t pid, layer; /* layer: a text's number */
	uint32_t presented, janks;
};

/* By the number of its field in the event: the positions of fields in its message. */
static const struct {
	const char *timeline, *of;
	unsigned display_token, pid, layer, presented, janks; /* 0: absent */
} KINDS[] = {
        {0},
        {"expected", "display", 0, 3, 0, 0, 0},
        {"actual", "display", 0, 3, 0, 4, 7},
        {"expected", "surface", 3, 4, 5, 0, 0},
        {"actual", "surface", 3, 4, 5, 6, 9},
};

static const char *const PRESENTED[] = {NULL, "on time", "late", "early", "dropped"};

/* By bit. */
static const char *const JANKS[] = {"none", "compositor scheduling", "prediction error",
        "display HAL", "compositor CPU deadline missed", "compositor GPU deadline missed",
        "app deadline missed", "buffer stuffing", "unknown", "compositor stuffing",
        "dropped frame"};

static void repair(struct tw_perfetto_frames *s, enum tw_repair what, uint64_t offset)
{
	s->markers->sink->ops->repair(s->markers->sink, what, offset, 1);
}

/* --- output --- */

static void add_janks(struct tw_detail *d, uint32_t bits)
{
	enum { KNOWN = sizeof JANKS / sizeof *JANKS };
	char causes[512];
	size_t len = 0;

	for (unsigned i = 0; i <= KNOWN; i++) {
		const char *word = i < KNOWN ? JANKS[i] : "other";

		if (i < KNOWN ? bits >> i & 1 : bits >> KNOWN)
			len += (size_t)snprintf(
			        causes + len, sizeof causes - len, "%s%s", len ? ", " : "", word);
	}
	tw_detail_str(d, "jank", (struct tw_str){causes, len});
}

static enum tw_status emit(struct tw_perfetto_frames *s, const struct tw_perfetto_frame *f,
        int64_t end_ns, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_frame,
	        .ts_ns = f->start_ns,
	        .dur_ns = end_ns > f->start_ns ? end_ns - f->start_ns : 0,
	        .value = f->token,
	        .offset = f->offset,
	        .text = tw_perfetto_intern_str(s->texts, f->layer)};
	struct tw_detail d;

	d.len = 0;
	tw_detail_int(&d, "pid", f->pid);
	tw_detail_str(&d, "timeline", tw_str_of(KINDS[f->kind].timeline));
	tw_detail_str(&d, "of", tw_str_of(KINDS[f->kind].of));
	if (f->display_token)
		tw_detail_int(&d, "display_frame", f->display_token);
	if (f->presented < sizeof PRESENTED / sizeof *PRESENTED && f->presented)
		tw_detail_str(&d, "presented", tw_str_of(PRESENTED[f->presented]));
	add_janks(&d, f->janks);
	note.detail = tw_detail_text(&d);
	return tw_markers_note(s->markers, &note, err);
}

/* --- open frames --- */

/* The link that leads to the open frame of a cookie, or the end of its chain. */
static uint32_t *link_of(const struct tw_perfetto_frames *s, int64_t cookie)
{
	uint64_t h = tw_hash_id((uint64_t)cookie, s->markers->salt);
	uint32_t *link = &s->chains[h & (RING - 1)];

	while (*link && s->ring[*link - 1].cookie != cookie)
		link = &s->ring[*link - 1].next;
	return link;
}

static struct tw_perfetto_frame *take_out(struct tw_perfetto_frames *s, uint32_t *link)
{
	struct tw_perfetto_frame *f = &s->ring[*link - 1];

	*link = f->next;
	f->open = false;
	return f;
}

static enum tw_status emit_open(struct tw_perfetto_frames *s, int64_t cookie, struct tw_err *err)
{
	struct tw_perfetto_frame *f = take_out(s, link_of(s, cookie));

	repair(s, TW_REPAIR_enter_without_exit, f->offset);
	return emit(s, f, s->markers->last_ns, err);
}

static bool prepare(struct tw_perfetto_frames *s)
{
	if (!s->ring)
		s->ring = tw_arena_zalloc(s->arena, RING, sizeof *s->ring);
	if (!s->chains)
		s->chains = tw_arena_zalloc(s->arena, RING, sizeof *s->chains);
	return s->ring && s->chains;
}

static enum tw_status begin(
        struct tw_perfetto_frames *s, const struct tw_perfetto_frame *added, struct tw_err *err)
{
	uint32_t at = (uint32_t)(s->begun++ & (RING - 1));
	enum tw_status st = TW_OK;
	uint32_t *link;

	if (!prepare(s))
		return tw_oom(err);
	if (*link_of(s, added->cookie))
		st = emit_open(s, added->cookie, err);
	if (st == TW_OK && s->ring[at].open)
		st = emit_open(s, s->ring[at].cookie, err);
	if (st != TW_OK)
		return st;
	s->ring[at] = *added;
	link = link_of(s, added->cookie);
	*link = at + 1;
	return TW_OK;
}

static enum tw_status end(struct tw_perfetto_frames *s, int64_t cookie, int64_t ts_ns,
        uint64_t offset, struct tw_err *err)
{
	uint32_t *link = s->begun ? link_of(s, cookie) : NULL;

	if (link && *link)
		return emit(s, take_out(s, link), ts_ns, err);
	repair(s, TW_REPAIR_exit_without_enter, offset);
	return TW_OK;
}

/* --- the message --- */

struct fields { /* of one of the messages, by number */
	uint64_t value[FIELDS];
	struct tw_str text[FIELDS];
};

static void read_fields(struct tw_pb message, struct fields *ret)
{
	struct tw_pb_field f;

	*ret = (struct fields){0};
	while (tw_pb_next(&message, &f)) {
		if (f.number >= FIELDS)
			continue;
		ret->value[f.number] = f.value;
		ret->text[f.number] = tw_pb_str(&f);
	}
}

static enum tw_status take_start(struct tw_perfetto_frames *s, unsigned kind,
        const struct fields *f, int64_t ts_ns, uint64_t offset, struct tw_err *err)
{
	struct tw_perfetto_frame frame = {.open = true,
	        .kind = kind,
	        .start_ns = ts_ns,
	        .cookie = (int64_t)f->value[1],
	        .token = (int64_t)f->value[2],
	        .offset = offset};
	struct tw_str layer = TW_STR("display");

	frame.pid = (uint32_t)f->value[KINDS[kind].pid];
	if (KINDS[kind].display_token)
		frame.display_token = (int64_t)f->value[KINDS[kind].display_token];
	if (KINDS[kind].presented) {
		frame.presented = (uint32_t)f->value[KINDS[kind].presented];
		frame.janks = (uint32_t)f->value[KINDS[kind].janks];
	}
	if (KINDS[kind].layer)
		layer = f->text[KINDS[kind].layer];
	if (layer.len && !tw_perfetto_intern_text(s->texts, layer, offset, &frame.layer))
		return tw_oom(err);
	return begin(s, &frame, err);
}

enum tw_status tw_perfetto_frames_emit(struct tw_perfetto_frames *s, struct tw_pb message,
        int64_t ts_ns, uint64_t offset, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	struct tw_pb_field f;
	struct fields fields;

	if (ts_ns > s->markers->last_ns)
		s->markers->last_ns = ts_ns;
	while (st == TW_OK && tw_pb_next(&message, &f)) {
		if (f.type != TW_PB_BYTES || f.number == 0 || f.number > FRAME_END)
			continue;
		read_fields(tw_pb_in(&f), &fields);
		st = f.number == FRAME_END ? end(s, (int64_t)fields.value[1], ts_ns, offset, err)
		                           : take_start(s, f.number, &fields, ts_ns, offset, err);
	}
	return st;
}

enum tw_status tw_perfetto_frames_finish(struct tw_perfetto_frames *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (unsigned i = 0; s->begun && st == TW_OK && i < RING; i++) {
		const struct tw_perfetto_frame *f = &s->ring[(s->begun + i) & (RING - 1)];

		if (f->open)
			st = emit_open(s, f->cookie, err);
	}
	return st;
}
