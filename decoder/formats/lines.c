#include "decoder/formats/lines.h"

#include <string.h>

bool tw_lines_init(
        struct tw_lines *l, struct tw_arena *a, size_t max_bytes, tw_line_fn each, void *arg)
{
	*l = (struct tw_lines){.each = each, .arg = arg, .max_bytes = max_bytes};
	l->held = tw_arena_alloc(a, max_bytes + 1, 1);
	return l->held != NULL;
}

/* Only the end of a line shows whether a "\r" just past max_bytes belongs to it. */
static enum tw_status emit(
        struct tw_lines *l, struct tw_str text, enum tw_lines_end how, struct tw_err *err)
{
	bool ended = how == TW_LINES_WHOLE;
	struct tw_line line = {text, l->start, l->too_long, ended, how == TW_LINES_CUT};

	if (ended && !l->too_long && text.len && text.ptr[text.len - 1] == '\r')
		line.text.len--;
	if (line.text.len > l->max_bytes) {
		line.text.len = l->max_bytes;
		line.too_long = true;
	}
	l->n_held = 0;
	l->too_long = false;
	return l->each(l->arg, &line, err);
}

static void hold(struct tw_lines *l, const uint8_t *p, size_t n)
{
	size_t room = l->max_bytes + 1 - l->n_held;
	size_t take = n < room ? n : room;

	if (take)
		memcpy(l->held + l->n_held, p, take);
	l->n_held += take;
	l->too_long = l->too_long || take < n;
}

enum tw_status tw_lines_push(struct tw_lines *l, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && n) {
		const uint8_t *end = memchr(p, '\n', n);
		size_t len = end ? (size_t)(end - p) : n;
		struct tw_str text = {(const char *)p, len};

		if (l->n_held || l->too_long || !end) {
			hold(l, p, len);
			text = (struct tw_str){l->held, l->n_held};
		}
		if (!end) {
			l->offset += n;
			break;
		}
		st = emit(l, text, TW_LINES_WHOLE, err);
		l->offset += len + 1;
		l->start = l->offset;
		p += len + 1;
		n -= len + 1;
	}
	return st;
}

enum tw_status tw_lines_finish(struct tw_lines *l, enum tw_lines_end how, struct tw_err *err)
{
	if (!l->n_held && !l->too_long)
		return TW_OK;
	return emit(l, (struct tw_str){l->held, l->n_held}, how, err);
}

bool tw_line_is_cut(const struct tw_line *line, struct tw_sink *sink)
{
	if (!line->ended && !line->counted)
		sink->ops->repair(sink, TW_REPAIR_input_truncated, line->offset, 1);
	return !line->ended;
}
