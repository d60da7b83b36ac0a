/*
 * preflight_process.h - a process that checks uploads of one project, one after the other.
 *
 * It is started by the first request.  A process that does not answer in time is killed; one that
 * died is logged and counted.  Its response is untrusted: an invalid status, an unknown format or
 * an unterminated text counts as the end of the process.  Thread: one at a time.
 */
#ifndef TW_PREFLIGHT_PROCESS_H
#define TW_PREFLIGHT_PROCESS_H

#include "server/base/child.h"
#include "server/base/ulid.h"
#include "server/decode/preflight.h"

/* Seconds that one check may take. */
enum { TW_PREFLIGHT_TIMEOUT_S = 5 };

struct tw_preflight_process {
	bool busy, is_running;
	bool timed_out; /* it did not answer the last request and was killed */
	unsigned requests;
	int64_t used; /* sequence number of the last selection */
	int socket;
	char project_id[TW_ID_BYTES]; /* whose uploads it has read */
	struct tw_child child;
};

/* From now on it checks uploads of this project.  A process that has read another project's uploads
 * is ended. */
void tw_preflight_process_assign(struct tw_preflight_process *p, const char *project_id);
/* As tw_preflight_end.  If a process that answered earlier requests fails, a new process checks the
 * upload again: the earlier requests may have used up its CPU time or memory. */
enum tw_status tw_preflight_process_check(struct tw_preflight_process *p, const struct tw_config *c,
        struct tw_metrics *metrics, const struct tw_head *head, const struct tw_format **ret,
        struct tw_err *err) TW_MUST_USE;
/* It has answered as many requests as one process may. */
bool tw_preflight_process_is_used_up(const struct tw_preflight_process *p);
/* Call after the answer is delivered: a new process takes longer to start than an upload otherwise
 * waits. */
void tw_preflight_process_replace(struct tw_preflight_process *p, const struct tw_config *c);
void tw_preflight_process_end(struct tw_preflight_process *p);

#endif
