#include "server/base/thread/async_task.h"

#include <unistd.h>

static void run(struct tw_pool_task *task, bool stopping)
{
	struct tw_async_task *e = (struct tw_async_task *)(void *)task;
	int wake_fd = e->wake_fd;
	uint64_t one = 1;

	if (stopping)
		e->status = tw_fail(&e->err, TW_BUSY, "the server is being stopped");
	else
		e->status = e->run(e->arg, &e->err);
	atomic_store(&e->done, true); /* the task may be freed from here on */
	(void)!write(wake_fd, &one, sizeof one);
}

void tw_async_task_begin(struct tw_async_task *e, struct tw_pool *pool)
{
	e->err = (struct tw_err){.msg = ""};
	atomic_store(&e->done, false);
	e->task.run = run;
	if (!pool || !tw_pool_submit(pool, &e->task))
		run(&e->task, pool != NULL);
}
