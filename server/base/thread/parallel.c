#include "server/base/thread/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"

enum { STACK_BYTES = 1 << 20 };

static _Atomic unsigned pretended;
static _Atomic unsigned helping; /* running helpers of all calls */

struct helper {
	pthread_t thread;
	tw_parallel_fn work;
	void *arg;
	struct tw_mem_account *account; /* of the caller */
	struct tw_work_limit limit;     /* likewise */
};

static unsigned count_cores(void)
{
	unsigned p = atomic_load(&pretended);
	long n = p ? (long)p : sysconf(_SC_NPROCESSORS_ONLN);

	return n > 1 ? (unsigned)n : 1;
}

void tw_parallel_pretend(unsigned cores)
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
	const struct helper *h = arg;

	(void)tw_mem_count_for(h->account);
	tw_work_limit_set(h->limit);
	h->work(h->arg);
	return NULL;
}

static bool start_helper(struct helper *h)
{
	pthread_attr_t attr;
	int failed = pthread_attr_init(&attr);

	if (failed)
		return false;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	failed = pthread_create(&h->thread, &attr, help, h);
	(void)pthread_attr_destroy(&attr);
	return !failed;
}

void tw_parallel_for(unsigned hands, tw_parallel_fn work, void *arg)
{
	struct helper helpers[TW_PARALLEL_MAX - 1];
	unsigned n = 0;

	while (n < TW_PARALLEL_MAX - 1 && n + 1 < hands && take_helper_slot()) {
		helpers[n] = (struct helper){.work = work,
		        .arg = arg,
		        .account = tw_mem_counted_for(),
		        .limit = tw_work_limit()};
		if (!start_helper(&helpers[n])) {
			(void)atomic_fetch_sub(&helping, 1);
			break;
		}
		n++;
	}
	work(arg);
	for (unsigned i = 0; i < n; i++) {
		(void)pthread_join(helpers[i].thread, NULL);
		(void)atomic_fetch_sub(&helping, 1);
	}
}
