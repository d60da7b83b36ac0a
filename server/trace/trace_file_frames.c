/* trace_file_frames.c - passes payloads to another thread, through a relay (base/relay.h). */
#include "server/trace/trace_file_internal.h"

#include "decoder/base/arena.h"
#include "decoder/base/relay.h"

enum { SLOTS = 4, WORTH_A_THREAD = 64 << 10 /* payload bytes */ };

struct slot {
	struct tw_frame_info info;
	struct tw_buf payload;
};

struct tw_frames {
	tw_frame_fn store;
	void *arg;
	struct tw_packer *packer;
	struct tw_buf frame;
	struct slot slots[SLOTS];
	struct tw_relay *relay;
	size_t until_thread; /* payload bytes until the thread is started; 0: no more */
};

static enum tw_status store(void *arg, uint32_t slot, struct tw_err *err)
{
	struct tw_frames *f = arg;
	const struct slot *s = &f->slots[slot];
	enum tw_status st = tw_packer_pack(f->packer, s->info.is_tree, &s->payload, &f->frame, err);

	return st == TW_OK ? f->store(f->arg, &s->info, &f->frame, err) : st;
}

struct tw_frames *tw_frames_new(int zstd_level, tw_frame_fn store_fn, void *arg)
{
	struct tw_frames *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->store = store_fn;
	f->arg = arg;
	tw_buf_init(&f->frame, SIZE_MAX / 2);
	for (int i = 0; i < SLOTS; i++)
		tw_buf_init(&f->slots[i].payload, SIZE_MAX / 2);
	f->relay = tw_relay_new(SLOTS, store, f);
	f->packer = tw_packer_new(zstd_level);
	if (!f->relay || !f->packer)
		return tw_frames_free(f);
	f->until_thread = WORTH_A_THREAD;
	return f;
}

struct tw_frames *tw_frames_free(struct tw_frames *f)
{
	if (!f)
		return NULL;
	tw_relay_free(f->relay);
	for (int i = 0; i < SLOTS; i++)
		tw_buf_done(&f->slots[i].payload);
	tw_buf_done(&f->frame);
	tw_packer_free(f->packer);
	tw_mem_free(f);
	return NULL;
}

enum tw_status tw_frames_take(struct tw_frames *f, const struct tw_frame_info *info,
        struct tw_buf *payload, struct tw_err *err)
{
	const size_t len = payload->len;
	uint32_t at;
	enum tw_status st = tw_relay_slot(f->relay, &at, err);
	struct tw_buf spare;

	if (st != TW_OK)
		return st;
	if (f->until_thread && len >= f->until_thread)
		tw_relay_start(f->relay);
	f->until_thread -= len < f->until_thread ? len : f->until_thread;
	spare = f->slots[at].payload;
	f->slots[at].payload = *payload;
	f->slots[at].info = *info;
	*payload = spare;
	return tw_relay_pass(f->relay, err);
}

enum tw_status tw_frames_finish(struct tw_frames *f, struct tw_err *err)
{
	f->until_thread = 0;
	return tw_relay_finish(f->relay, err);
}

struct tw_packer *tw_frames_packer(struct tw_frames *f)
{
	return f->packer;
}
