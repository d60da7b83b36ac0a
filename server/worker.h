/*
 * worker.h - the child process that decodes one upload, and nothing else.
 *
 * `tracewell worker` is started by jobs.c (and by mapping uploads) with a task
 * as JSON on descriptor 3 and the inputs open from descriptor 4 on.  It limits
 * itself before it reads a byte (memory, CPU, file size, descriptors, no new
 * privileges, no core), decodes, writes its output and prints a result as JSON
 * on descriptor 1:
 *   task   {"kind":"trace","out":"/path.tmp","parts":[{"part","format"}…],"limits":{…}}
 *          {"kind":"map","out":"/path.tmp","limits":{…}}
 *   result {"ok":true,"summary":{…}} or {"ok":false,"error":{"status","message","offset"}}
 * A result that is missing or not JSON means the child died; the parent tells why from its
 * exit status.
 */
#ifndef TW_WORKER_H
#define TW_WORKER_H

/* Entry of the child; returns its exit code. */
int tw_worker_main(void);

#endif
