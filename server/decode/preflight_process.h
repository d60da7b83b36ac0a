/*
 * preflight_process.h - one judge: a process that is asked about one project's uploads, in turns.
 *
 * It is started by the first request.  A process that does not answer in time is killed; one that
 * died is logged and counted.  Its answer is untrusted: an invalid status, an unknown format or an
 * unterminated text is handled like its death.  Thread: one at a time.
 */
#ifndef TW_PREFLIGHT_PROCESS_H
#define TW_PREFLIGHT_PROCESS_H

#include "server/base/child.h"
#include "server/base/ulid.h"
#include "server/decode/preflight.h"

/* Seconds that one question may take. */
enum { TW_PREFLIGHT_PATIENCE_S = 5 };

struct tw_preflight {
	bool busy, there;
	bool silent; /* it did not answer the last request and was killed */
	unsigned asked;
	int64_t used; /* sequence number of the last selection */
	int line;
	char project_id[TW_ID_BYTES]; /* the project whose heads it has read */
	struct tw_child child;
};

/* For that project from here; one that has seen another's heads ends. */
void tw_preflight_assign(struct tw_preflight *j, const char *project_id);
/* As tw_look_end.  What a judge that had answered before could not answer is asked once more of a
 * fresh one: what it has used up, of time above all, is not that head's fault. */
enum tw_status tw_preflight_ask(struct tw_preflight *j, const struct tw_config *c,
        struct tw_metrics *metrics, const struct tw_head *head, const struct tw_format **ret,
        struct tw_err *err) TW_MUST_USE;
/* It has answered its share of questions. */
bool tw_preflight_is_worn(const struct tw_preflight *j);
/* Replaces the process.  Call after the answer is delivered: a new process takes longer to start
 * than an upload otherwise waits. */
void tw_preflight_renew(struct tw_preflight *j, const struct tw_config *c);
void tw_preflight_dismiss(struct tw_preflight *j);

#endif
