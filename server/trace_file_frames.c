/*
 * trace_file_frames.c - a ring of payloads between two threads.
 *
 * `made` and `stored` only grow; slot made % SLOTS is the next to fill.  The
 * first error stops the storing, and the rest is taken and dropped, so that the
 * caller never waits for a thread that has given up.
 */
#include "trace_file_frames.h"

#include <pthread.h>
#include <string.h>
#include <zstd.h>

#include "base/arena.h"

enum { SLOTS = 4 };

struct slot {
	struct tw_frame_info info;
	struct tw_buf payload;
};

struct tw_frames {
	tw_frame_fn store;
	void *arg;
	ZSTD_CCtx *zstd;
	struct tw_buf frame;
	struct slot slots[SLOTS];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool threaded, ended; /* ended: nothing more will be added */
	uint64_t made, stored;
	enum tw_status status; /* of storing, sticky */
	struct tw_err err;
};

static enum tw_status compress(struct tw_frames *f, const struct tw_buf *p, struct tw_err *err)
{
	size_t bound = ZSTD_compressBound(p->len);
	size_t n;

	tw_buf_clear(&f->frame);
	if (tw_buf_reserve(&f->frame, bound) != TW_OK)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to compress");
	n = ZSTD_compress2(f->zstd, f->frame.data, bound, p->data, p->len);
	if (ZSTD_isError(n))
		return tw_fail(err, TW_BUG, TW_NO_OFFSET, "zstd: %s", ZSTD_getErrorName(n));
	f->frame.len = n;
	return TW_OK;
}

static enum tw_status store(struct tw_frames *f, const struct slot *s, struct tw_err *err)
{
	enum tw_status st = compress(f, &s->payload, err);

	return st == TW_OK ? f->store(f->arg, &s->info, &s->payload, &f->frame, err) : st;
}

static void *work(void *arg)
{
	struct tw_frames *f = arg;
	enum tw_status st = TW_OK;
	struct tw_err err = {0};

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		while (f->stored == f->made && !f->ended)
			(void)pthread_cond_wait(&f->changed, &f->lock);
		if (f->stored == f->made)
			break;
		(void)pthread_mutex_unlock(&f->lock);
		if (st == TW_OK)
			st = store(f, &f->slots[f->stored % SLOTS], &err);
		(void)pthread_mutex_lock(&f->lock);
		f->stored++;
		f->status = st;
		f->err = err;
		(void)pthread_cond_signal(&f->changed);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return NULL;
}

struct tw_frames *tw_frames_new(int zstd_level, tw_frame_fn store_fn, void *arg)
{
	struct tw_frames *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->store = store_fn;
	f->arg = arg;
	f->zstd = ZSTD_createCCtx();
	if (!f->zstd) {
		tw_mem_free(f);
		return NULL;
	}
	(void)ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, zstd_level);
	(void)ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_checksumFlag, 1);
	tw_buf_init(&f->frame, SIZE_MAX / 2);
	for (int i = 0; i < SLOTS; i++)
		tw_buf_init(&f->slots[i].payload, SIZE_MAX / 2);
	(void)pthread_mutex_init(&f->lock, NULL);
	(void)pthread_cond_init(&f->changed, NULL);
	f->threaded = pthread_create(&f->thread, NULL, work, f) == 0;
	return f;
}

static void stop(struct tw_frames *f)
{
	if (!f->threaded)
		return;
	(void)pthread_mutex_lock(&f->lock);
	f->ended = true;
	(void)pthread_cond_signal(&f->changed);
	(void)pthread_mutex_unlock(&f->lock);
	(void)pthread_join(f->thread, NULL);
	f->threaded = false;
}

struct tw_frames *tw_frames_free(struct tw_frames *f)
{
	if (!f)
		return NULL;
	stop(f);
	(void)pthread_mutex_destroy(&f->lock);
	(void)pthread_cond_destroy(&f->changed);
	for (int i = 0; i < SLOTS; i++)
		tw_buf_done(&f->slots[i].payload);
	tw_buf_done(&f->frame);
	(void)ZSTD_freeCCtx(f->zstd);
	tw_mem_free(f);
	return NULL;
}

/* Under the lock, or without a second thread. */
static enum tw_status outcome(const struct tw_frames *f, struct tw_err *err)
{
	if (f->status != TW_OK && err)
		*err = f->err;
	return f->status;
}

static enum tw_status wait_for_room(struct tw_frames *f, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&f->lock);
	while (f->made - f->stored == SLOTS)
		(void)pthread_cond_wait(&f->changed, &f->lock);
	st = outcome(f, err);
	(void)pthread_mutex_unlock(&f->lock);
	return st;
}

static enum tw_status hand_over(struct tw_frames *f, struct tw_err *err)
{
	if (!f->threaded) {
		f->status = store(f, &f->slots[f->made % SLOTS], &f->err);
		f->made++;
		f->stored++;
		return outcome(f, err);
	}
	(void)pthread_mutex_lock(&f->lock);
	f->made++;
	(void)pthread_cond_signal(&f->changed);
	(void)pthread_mutex_unlock(&f->lock);
	return TW_OK;
}

enum tw_status tw_frames_add(struct tw_frames *f, const struct tw_frame_info *info,
        const uint8_t *payload, size_t len, struct tw_err *err)
{
	struct slot *s = &f->slots[f->made % SLOTS];
	enum tw_status st = wait_for_room(f, err);

	if (st != TW_OK)
		return st;
	s->info = *info;
	tw_buf_clear(&s->payload);
	(void)tw_buf_add(&s->payload, payload, len);
	if (tw_buf_status(&s->payload) != TW_OK)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to compress");
	return hand_over(f, err);
}

enum tw_status tw_frames_finish(struct tw_frames *f, struct tw_err *err)
{
	stop(f);
	return outcome(f, err);
}
