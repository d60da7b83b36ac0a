/*
 * bundle.c - recognises a zip or tar archive of a recording's files, so that its upload is
 * accepted; ../bundle.h reads it, because it has access to the other formats.
 */
#include "decoder/base/unpack.h"
#include "decoder/formats/format.h"

struct bundle {
	uint64_t bytes;
};

static int probe(const uint8_t *head, size_t len)
{
	return tw_unpack_knows(head, len) ? 95 : 0;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	(void)state, (void)a, (void)limits, (void)sink, (void)err;
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct bundle *s = state;

	(void)p, (void)err;
	s->bytes += n;
	return TW_OK;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	(void)state, (void)cut, (void)err;
	return TW_OK;
}

const struct tw_format tw_format_bundle = {
        .name = "bundle",
        .title = "zip or tar archive of a recording's files",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct bundle),
        .start = start,
        .push = push,
        .finish = finish,
};
