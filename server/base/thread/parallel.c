#include "server/base/thread/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"

enum { STACK_BYTES = 1 << 20 };

static _Atomic unsigned pretended;
static _Atomic unsigned helping; /* running helpers of all calls */

struct tw_helper {
	pthread_t thread;
	tw_parallel_fn work;
	void *arg;
	struct tw_mem_account *account; /* of the caller */
	struct tw_work_limit limit;     /* likewise */
	_Atomic bool done;
};

static unsigned count_cores(void)
{
	unsigned p = atomic_load(&pretended);
	long n = p ? (long)p : sysconf(_SC_NPROCESSORS_ONLN);

	return n > 1 ? (unsigned)n : 1;
}

void tw_parallel_set_cores(unsigned cores)
{
	atomic_store(&pretended, cores);
}

unsigned tw_parallel_threads(void)
{
	unsigned n = count_cores();

	return n < TW_PARALLEL_MAX ? n : TW_PARALLEL_MAX;
}

static bool take_helper_slot(void)
{
	unsigned most = count_cores() - 1;
	unsigned n = atomic_load(&helping);

	while (n < most)
		if (atomic_compare_exchange_weak(&helping, &n, n + 1))
			return true;
	return false;
}

static void *help(void *arg)
{
	struct tw_helper *h = arg;

	(void)tw_mem_count_for(h->account);
	tw_work_limit_set(h->limit);
	h->work(h->arg);
	(void)atomic_fetch_sub(&helping, 1);
	atomic_store(&h->done, true);
	return NULL;
}

/* False: no helper is available. */
static bool start_helper(
        struct tw_helper *h, tw_parallel_fn work, void *arg, struct tw_work_limit limit)
{
	pthread_attr_t attr;
	int failed;

	if (!take_helper_slot())
		return false;
	*h = (struct tw_helper){
	        .work = work, .arg = arg, .account = tw_mem_counted_for(), .limit = limit};
	failed = pthread_attr_init(&attr);
	if (!failed) {
		(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
		failed = pthread_create(&h->thread, &attr, help, h);
		(void)pthread_attr_destroy(&attr);
	}
	if (failed)
		(void)atomic_fetch_sub(&helping, 1);
	return !failed;
}

void tw_parallel_for(unsigned threads, tw_parallel_fn work, void *arg)
{
	struct tw_helper helpers[TW_PARALLEL_MAX - 1];
	unsigned n = 0;

	while (n < TW_PARALLEL_MAX - 1 && n + 1 < threads &&
	        start_helper(&helpers[n], work, arg, tw_work_limit()))
		n++;
	work(arg);
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(helpers[i].thread, NULL);
}

struct tw_helper *tw_parallel_start(tw_parallel_fn work, void *arg)
{
	struct tw_helper *h = tw_mem_alloc(1, sizeof *h);

	if (h && !start_helper(h, work, arg, (struct tw_work_limit){0})) {
		tw_mem_free(h);
		return NULL;
	}
	return h;
}

bool tw_parallel_is_done(const struct tw_helper *h)
{
	return atomic_load(&h->done);
}

struct tw_helper *tw_parallel_join(struct tw_helper *h)
{
	if (h)
		(void)pthread_join(h->thread, NULL);
	tw_mem_free(h);
	return NULL;
}
