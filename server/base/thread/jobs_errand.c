#include "server/base/thread/jobs_errand.h"

#include <unistd.h>

static void run(struct tw_pool_task *task, bool stopping)
{
	struct tw_errand *e = (struct tw_errand *)(void *)task;
	int wake_fd = e->wake_fd;
	uint64_t one = 1;

	if (stopping)
		e->status = tw_fail(&e->err, TW_BUSY, "the server is being stopped");
	else
		e->status = e->run(e->arg, &e->err);
	atomic_store(&e->done, true); /* the task may be freed from here on */
	(void)!write(wake_fd, &one, sizeof one);
}

void tw_errand_begin(struct tw_errand *e, struct tw_pool *pool)
{
	e->err = (struct tw_err){.msg = ""};
	atomic_store(&e->done, false);
	e->task.run = run;
	if (!pool || !tw_pool_submit(pool, &e->task))
		run(&e->task, pool != NULL);
}
