/* commit_gate.h - per-thread options for the database connections that the thread uses. */
#ifndef TW_COMMIT_GATE_H
#define TW_COMMIT_GATE_H

#include <stdbool.h>

/* While set, this thread only makes lookups by key, which fail after a few seconds: others wait for
 * the thread. */
void tw_catalogue_shorten_timeout(bool shorten);

/* The VFS of every connection, registered on first use (catalogue_vfs.c). */
#define TW_CAT_VFS "tracewell"
void tw_cat_need_vfs(void);
/* While a thread has a gate, its commits become visible only after `durable` returned true.  It is
 * called when the log is synced, possibly more than once; false makes the commit fail. */
struct tw_cat_gate {
	bool (*durable)(void *arg);
	void *arg;
};
void tw_cat_set_gate(struct tw_cat_gate *g); /* NULL: none */
/* For engines without the VFS: call it before a commit. */
bool tw_cat_gate_passes(void);

#endif
