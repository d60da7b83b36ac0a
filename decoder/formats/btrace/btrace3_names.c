/*
 * btrace3_names.c - the names of btrace 3.0's samples, the file `sampling-mapping`, version 1.
 *
 * All integers little-endian: u64 0, u32 version, u32 count; then count times
 *   u64 method pointer, u16 length, text `ret a.B.c(params)`, empty: it could not be named
 * then to the end thread names: u16 low 16 bits of the tid, u8 length, text with a line end.
 * The displayed name is `a.B.c`.  A file that was longer before has old bytes at its end: reading
 * stops at the first invalid thread name.  Learned from bytedance/btrace 3.0.
 */
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/formats/format.h"

enum { HEADER = 16, METHOD = 10, THREAD = 3, CARRY = METHOD + UINT16_MAX, VERSION = 1, HEX = 18 };

enum state { IN_HEADER, IN_METHOD, IN_METHOD_TEXT, IN_THREAD, IN_THREAD_TEXT, ENDED };

struct names {
	struct tw_sink *sink;
	enum state state;
	uint64_t offset, record_offset;
	uint32_t left; /* methods left */
	uint32_t n_carry, want;
	uint64_t emitted;
	uint8_t carry[CARRY];
};

static int probe(const uint8_t *head, size_t len)
{
	uint32_t version = len >= HEADER ? tw_u32le(head + 8) : 0;
	size_t text = HEADER + METHOD;

	if (version == 0 || version > 32 || tw_u64le(head) != 0)
		return 0;
	if (version != VERSION || tw_u32le(head + 12) == 0)
		return 40;
	if (len < text || tw_u64le(head + HEADER) == 0)
		return 30;
	for (size_t i = text; i < len && i < text + head[HEADER + 8]; i++)
		if (head[i] < 0x20)
			return 0;
	return 85;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct names *s = state;

	(void)a, (void)limits, (void)err;
	s->sink = sink;
	s->want = HEADER;
	return TW_OK;
}

/* a.B.c of `ret a.B.c(params)`; other text unchanged. */
static struct tw_str short_name(struct tw_str text)
{
	struct tw_str rest = text;
	struct tw_str name = tw_str_trim(tw_str_split(&rest, '('));
	size_t at = name.len;

	while (at && name.ptr[at - 1] != ' ')
		at--;
	name = tw_str_from(name, at);
	return name.len ? name : text;
}

static void name_method(struct names *s)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t pointer = tw_u64le(s->carry);
	char hex[HEX] = "0x";
	size_t at = HEX;

	if (s->want > METHOD) {
		s->sink->ops->method_name(s->sink, pointer,
		        short_name((struct tw_str){
		                (const char *)s->carry + METHOD, s->want - METHOD}));
	} else {
		uint64_t rest = pointer;

		do
			hex[--at] = digits[rest & 15];
		while (rest >>= 4);
		memmove(hex + 2, hex + at, HEX - at);
		s->sink->ops->method_name(s->sink, pointer, (struct tw_str){hex, 2 + HEX - at});
	}
	s->emitted++;
}

/* False: not a valid id or name of a thread. */
static bool name_thread(struct names *s)
{
	uint32_t tid = s->carry[0] | (uint32_t)s->carry[1] << 8;
	struct tw_str name =
	        tw_str_trim((struct tw_str){(const char *)s->carry + THREAD, s->want - THREAD});

	if (tid == 0)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.ptr[i] < 0x20)
			return false;
	if (name.len)
		s->sink->ops->thread_name(s->sink, 0, tid, name);
	s->emitted++;
	return true;
}

static void expect(struct names *s)
{
	s->record_offset = s->offset;
	s->n_carry = 0;
	s->state = s->left ? IN_METHOD : IN_THREAD;
	s->want = s->left ? METHOD : THREAD;
}

static enum tw_status read_header(struct names *s, struct tw_err *err)
{
	uint32_t version = tw_u32le(s->carry + 8);

	if (version != VERSION)
		return tw_fail_at(err, TW_UNSUPPORTED, 8,
		        "btrace 3.0 names of version %u; this server reads version %d", version,
		        VERSION);
	s->left = tw_u32le(s->carry + 12);
	expect(s);
	return TW_OK;
}

static enum tw_status read_piece(struct names *s, struct tw_err *err)
{
	switch (s->state) {
	case IN_HEADER:
		return read_header(s, err);
	case IN_METHOD:
		s->want = METHOD + (s->carry[8] | (uint32_t)s->carry[9] << 8);
		s->state = IN_METHOD_TEXT;
		break;
	case IN_METHOD_TEXT:
		name_method(s);
		s->left--;
		expect(s);
		break;
	case IN_THREAD:
		s->want = THREAD + s->carry[2];
		s->state = IN_THREAD_TEXT;
		break;
	case IN_THREAD_TEXT:
		if (name_thread(s)) {
			expect(s);
		} else {
			s->sink->ops->repair(s->sink, TW_REPAIR_stale_tail, s->record_offset, 1);
			s->state = ENDED;
		}
		break;
	case ENDED:
		break;
	}
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct names *s = state;
	enum tw_status st = TW_OK;

	while (st == TW_OK && s->state != ENDED &&
	        tw_gather(s->carry, &s->n_carry, s->want, &s->offset, &p, &n))
		st = read_piece(s, err);
	return st;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct names *s = state;

	if (s->state != ENDED && !cut && (s->left || s->offset > s->record_offset))
		s->sink->ops->repair(s->sink, TW_REPAIR_input_truncated, s->record_offset, 1);
	if (s->emitted == 0)
		return tw_fail_at(err, TW_CORRUPT, s->record_offset,
		        "no name of a method or thread in this btrace 3.0 file of names");
	return TW_OK;
}

const struct tw_format tw_format_btrace3_names = {
        .name = "btrace3_names",
        .title = "names of btrace 3.0 samples (sampling-mapping)",
        .part = "names",
        .probe = probe,
        .state_size = sizeof(struct names),
        .start = start,
        .push = push,
        .finish = finish,
};
