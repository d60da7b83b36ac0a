/*
 * query_chunks.c - decodes the chunks of a thread in several threads, and passes them on in order.
 *
 * A file is used by one thread at a time, so the caller reads the stored bytes of the next chunks
 * into slots.  Helper threads decode them, and so does the caller while the chunk that it needs is
 * being decoded:
 *
 *      chunk   0 .. passed   .. taken    .. read     .. n
 *              passed on | decoded or | stored bytes | in the file
 *                          decoding
 *
 * A chunk that could not be decoded is read again when it is passed on, which reports the error.
 */
#include "server/query/query_slices.h"

#include <pthread.h>

#include "server/base/thread/parallel.h"

/* Starting a thread takes as long as decoding a small part of a chunk, but a query may end after
 * its first chunk. */
enum { WORTH_A_THREAD = 3, SLOTS = TW_PARALLEL_MAX + 1 };

struct slot {
	const struct tw_chunk_row *row;
	struct tw_buf frame;
	struct tw_chunk chunk;
	enum tw_status status;
	bool done; /* protected by the lock */
};

struct line {
	struct slot slots[SLOTS];
	uint32_t n_slots; /* one per thread, and one that is passed on */
	uint32_t passed;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	uint32_t taken, read;
	bool stop;
};

static struct slot *slot_of(struct line *l, uint32_t i)
{
	return &l->slots[i % l->n_slots];
}

/* Decodes the next chunk that was read.  Called with the lock, which it releases meanwhile. */
static void take_one(struct line *l, struct tw_unpacker *u)
{
	struct slot *s = slot_of(l, l->taken++);
	struct tw_err err;

	(void)pthread_mutex_unlock(&l->lock);
	if (s->status == TW_OK)
		s->status = tw_unpacker_chunk(u, tw_buf_str(&s->frame), s->row, &s->chunk, &err);
	(void)pthread_mutex_lock(&l->lock);
	s->done = true;
	(void)pthread_cond_broadcast(&l->changed);
}

static void help(void *arg)
{
	struct line *l = arg;
	struct tw_unpacker *u = tw_unpacker_new();

	(void)pthread_mutex_lock(&l->lock);
	while (u && !l->stop)
		if (l->taken < l->read)
			take_one(l, u);
		else
			(void)pthread_cond_wait(&l->changed, &l->lock);
	(void)pthread_mutex_unlock(&l->lock);
	tw_unpacker_free(u);
}

/* Reads the stored bytes of the next chunks into the free slots. */
static void read_on(
        struct line *l, struct tw_trace_file *f, const struct tw_chunk_row *rows, uint32_t n)
{
	struct tw_err err;

	while (l->read < n && l->read < l->passed + l->n_slots) { /* changed by this thread only */
		struct slot *s = slot_of(l, l->read);

		s->row = &rows[l->read];
		s->done = false;
		tw_buf_clear(&s->frame);
		s->status = tw_trace_file_chunk_raw(f, s->row->chunk_id, &s->frame, &err);
		(void)pthread_mutex_lock(&l->lock);
		l->read++;
		(void)pthread_cond_broadcast(&l->changed);
		(void)pthread_mutex_unlock(&l->lock);
	}
}

static struct slot *next_slot(struct line *l, struct tw_unpacker *u)
{
	struct slot *s = slot_of(l, l->passed);

	(void)pthread_mutex_lock(&l->lock);
	while (!s->done)
		if (l->taken < l->read)
			take_one(l, u);
		else
			(void)pthread_cond_wait(&l->changed, &l->lock);
	(void)pthread_mutex_unlock(&l->lock);
	return s;
}

static enum tw_status pass_in_order(struct line *l, struct tw_trace_file *f,
        const struct tw_chunk_row *rows, uint32_t n, tw_chunk_fn each, void *arg,
        struct tw_err *err)
{
	struct tw_unpacker *u = tw_unpacker_new();
	enum tw_status st = u ? TW_OK : tw_oom(err);
	bool go_on = true;

	for (; st == TW_OK && go_on && l->passed < n; l->passed++) {
		struct slot *s;

		read_on(l, f, rows, n);
		s = next_slot(l, u);
		if (s->status != TW_OK || tw_work_is_overdue())
			st = tw_trace_file_chunk(f, s->row, &s->chunk, err);
		if (st == TW_OK)
			go_on = each(arg, l->passed, &s->chunk);
	}
	tw_unpacker_free(u);
	return st;
}

static enum tw_status one_by_one(struct tw_trace_file *f, const struct tw_chunk_row *rows,
        uint32_t n, tw_chunk_fn each, void *arg, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool go_on = true;
	struct tw_chunk c;

	tw_chunk_init(&c);
	for (uint32_t i = 0; st == TW_OK && go_on && i < n; i++) {
		st = tw_trace_file_chunk(f, &rows[i], &c, err);
		if (st == TW_OK)
			go_on = each(arg, i, &c);
	}
	tw_chunk_done(&c);
	return st;
}

static void stop(struct line *l)
{
	(void)pthread_mutex_lock(&l->lock);
	l->stop = true;
	(void)pthread_cond_broadcast(&l->changed);
	(void)pthread_mutex_unlock(&l->lock);
}

enum tw_status tw_each_chunk(struct tw_trace_file *f, const struct tw_chunk_row *rows, uint32_t n,
        tw_chunk_fn each, void *arg, struct tw_err *err)
{
	struct tw_helper *helpers[TW_PARALLEL_MAX - 1];
	struct line l = {.passed = 0};
	unsigned n_helpers = 0;
	enum tw_status st;

	if (n < WORTH_A_THREAD)
		return one_by_one(f, rows, n, each, arg, err);
	(void)pthread_mutex_init(&l.lock, NULL);
	(void)pthread_cond_init(&l.changed, NULL);
	for (uint32_t i = 0; i < SLOTS; i++) {
		tw_buf_init(&l.slots[i].frame, SIZE_MAX / 2);
		tw_chunk_init(&l.slots[i].chunk);
	}
	while (n_helpers + 1 < tw_parallel_threads() && n_helpers + 1 < n &&
	        (helpers[n_helpers] = tw_parallel_start(help, &l)) != NULL)
		n_helpers++;
	l.n_slots = n_helpers + 2;
	if (n_helpers)
		st = pass_in_order(&l, f, rows, n, each, arg, err);
	else
		st = one_by_one(f, rows, n, each, arg, err);
	stop(&l);
	while (n_helpers)
		tw_parallel_join(helpers[--n_helpers]);
	for (uint32_t i = 0; i < SLOTS; i++) {
		tw_buf_done(&l.slots[i].frame);
		tw_chunk_done(&l.slots[i].chunk);
	}
	(void)pthread_cond_destroy(&l.changed);
	(void)pthread_mutex_destroy(&l.lock);
	return st;
}
