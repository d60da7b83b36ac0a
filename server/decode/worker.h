/*
 * worker.h - the child process that decodes one upload.
 *
 * `tracewell worker` is started by jobs.c (and by mapping uploads) with a task as JSON on
 * descriptor 3, its output on 4 and the inputs from 5 on.  It enters its sandbox (jail.h) before it
 * reads a byte of an input, decodes, writes its output and prints a result as JSON on descriptor 1:
 *   task   {"kind":"trace","parts":[{"part","format"}…],"limits":{…}}
 *          {"kind":"traces","jobs":[[{"part","format"}]…],"limits":{…}}: a part each; the outputs
 *          but the first follow the inputs; a result per line, and the rest not done after an error
 *          {"kind":"methods"|"retrace"|"symbols","build","limits":{…}}
 *          {"kind":"source",…}: worker_source.c; its input is the folder of a clone
 *   result {"ok":true,"summary":{…}} or {"ok":false,"error":{"status","message","offset"}}
 * A result that is missing or not JSON means that the child died; the parent reports the reason
 * from its exit status.
 * Thread: the process's only one, before it starts helpers.
 */
#ifndef TW_WORKER_H
#define TW_WORKER_H

#include <malloc.h>
#include <stddef.h>

/* Entry of the child; returns its exit code. */
int tw_worker_main(void);
/* With one heap the memory limit does not count a second heap's reserved addresses.  Large arrays
 * are mapped: they grow without being copied, and are in large pages.  By default malloc maps only
 * arrays larger than any that was freed, such as the window of a zstd frame whose head was
 * inspected. */
static inline void tw_worker_set_heap(void)
{
	enum { MAPPED_BYTES = 1 << 20 };

	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * MAPPED_BYTES);
}

/* Does the part of a decode that is the same for every trace, so that copies of the process need
 * not repeat it; for a copy that decodes at most `traces` traces.  A step that fails here is
 * repeated by the copy. */
void tw_worker_prepare(size_t traces);
/* Entry of a template (server/base/child_template.h), and of each of its copies. */
int tw_worker_template(size_t traces);

#endif
