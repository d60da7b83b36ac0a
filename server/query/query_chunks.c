/*
 * query_chunks.c - passes the chunks of a thread to a callback in order, and decodes the next ones
 * in several threads.
 *
 * A file is used by one thread at a time, so only the caller reads stored bytes, into slots.
 * Helper threads decode them.  While the caller waits for a chunk, it decodes others:
 *
 *      chunk   0 .. passed         .. started      .. read         .. n
 *              passed on | decoding or | stored bytes | not yet read
 *                          decoded       in a slot
 *
 * A chunk that could not be decoded is read again in its turn, which reports the error.
 */
#include "server/query/query_slices.h"

#include <pthread.h>

#include "server/base/thread/parallel.h"

/* Starting a thread takes much less time than decoding a chunk.  But a query may end after its
 * first chunk, so helpers are not started for one or two. */
enum { CHUNKS_FOR_HELPERS = 3, SLOTS = TW_PARALLEL_MAX + 1 };

struct slot {
	const struct tw_chunk_row *row;
	struct tw_buf stored;
	struct tw_chunk chunk;
	enum tw_status status;
	bool done; /* protected by the lock */
};

struct queue {
	struct slot slots[SLOTS];
	uint32_t n_slots; /* one per thread, and one for the chunk that is passed on */
	uint32_t passed;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	uint32_t started, read;
	bool stop;
};

static struct slot *slot_of(struct queue *q, uint32_t i)
{
	return &q->slots[i % q->n_slots];
}

/* Decodes the next chunk that was read.  Called with the lock, which is released while decoding. */
static void decode_next(struct queue *q, struct tw_unpacker *u)
{
	struct slot *s = slot_of(q, q->started++);
	struct tw_err err;

	(void)pthread_mutex_unlock(&q->lock);
	if (s->status == TW_OK)
		s->status = tw_unpacker_chunk(u, tw_buf_str(&s->stored), s->row, &s->chunk, &err);
	(void)pthread_mutex_lock(&q->lock);
	s->done = true;
	(void)pthread_cond_broadcast(&q->changed);
}

static void run_helper(void *arg)
{
	struct queue *q = arg;
	struct tw_unpacker *u = tw_unpacker_new();

	(void)pthread_mutex_lock(&q->lock);
	while (u && !q->stop)
		if (q->started < q->read)
			decode_next(q, u);
		else
			(void)pthread_cond_wait(&q->changed, &q->lock);
	(void)pthread_mutex_unlock(&q->lock);
	tw_unpacker_free(u);
}

/* Reads the stored bytes of the next chunks into the free slots. */
static void read_ahead(
        struct queue *q, struct tw_trace_file *f, const struct tw_chunk_row *rows, uint32_t n)
{
	struct tw_err err;

	while (q->read < n && q->read < q->passed + q->n_slots) { /* changed by this thread only */
		struct slot *s = slot_of(q, q->read);

		s->row = &rows[q->read];
		s->done = false;
		tw_buf_clear(&s->stored);
		s->status = tw_trace_file_chunk_raw(f, s->row->chunk_id, &s->stored, &err);
		(void)pthread_mutex_lock(&q->lock);
		q->read++;
		(void)pthread_cond_broadcast(&q->changed);
		(void)pthread_mutex_unlock(&q->lock);
	}
}

/* Returns the next chunk to pass on, and decodes chunks until it is done. */
static struct slot *wait_for_next(struct queue *q, struct tw_unpacker *u)
{
	struct slot *s = slot_of(q, q->passed);

	(void)pthread_mutex_lock(&q->lock);
	while (!s->done)
		if (q->started < q->read)
			decode_next(q, u);
		else
			(void)pthread_cond_wait(&q->changed, &q->lock);
	(void)pthread_mutex_unlock(&q->lock);
	return s;
}

static enum tw_status pass_in_order(struct queue *q, struct tw_trace_file *f,
        const struct tw_chunk_row *rows, uint32_t n, tw_chunk_fn each, void *arg,
        struct tw_err *err)
{
	struct tw_unpacker *u = tw_unpacker_new();
	enum tw_status st = u ? TW_OK : tw_oom(err);
	bool go_on = true;

	for (; st == TW_OK && go_on && q->passed < n; q->passed++) {
		struct slot *s;

		read_ahead(q, f, rows, n);
		s = wait_for_next(q, u);
		if (s->status != TW_OK || tw_work_is_overdue())
			st = tw_trace_file_chunk(f, s->row, &s->chunk, err);
		if (st == TW_OK)
			go_on = each(arg, q->passed, &s->chunk);
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

static void stop(struct queue *q)
{
	(void)pthread_mutex_lock(&q->lock);
	q->stop = true;
	(void)pthread_cond_broadcast(&q->changed);
	(void)pthread_mutex_unlock(&q->lock);
}

enum tw_status tw_each_chunk(struct tw_trace_file *f, const struct tw_chunk_row *rows, uint32_t n,
        tw_chunk_fn each, void *arg, struct tw_err *err)
{
	struct tw_helper *helpers[TW_PARALLEL_MAX - 1];
	struct queue q = {.passed = 0};
	unsigned n_helpers = 0;
	enum tw_status st;

	if (n < CHUNKS_FOR_HELPERS)
		return one_by_one(f, rows, n, each, arg, err);
	(void)pthread_mutex_init(&q.lock, NULL);
	(void)pthread_cond_init(&q.changed, NULL);
	for (uint32_t i = 0; i < SLOTS; i++) {
		tw_buf_init(&q.slots[i].stored, SIZE_MAX / 2);
		tw_chunk_init(&q.slots[i].chunk);
	}
	while (n_helpers + 1 < tw_parallel_threads() && n_helpers + 1 < n &&
	        (helpers[n_helpers] = tw_parallel_start(run_helper, &q)) != NULL)
		n_helpers++;
	q.n_slots = n_helpers + 2;
	if (n_helpers)
		st = pass_in_order(&q, f, rows, n, each, arg, err);
	else
		st = one_by_one(f, rows, n, each, arg, err);
	stop(&q);
	while (n_helpers)
		tw_parallel_join(helpers[--n_helpers]);
	for (uint32_t i = 0; i < SLOTS; i++) {
		tw_buf_done(&q.slots[i].stored);
		tw_chunk_done(&q.slots[i].chunk);
	}
	(void)pthread_cond_destroy(&q.changed);
	(void)pthread_mutex_destroy(&q.lock);
	return st;
}
