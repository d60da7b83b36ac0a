/*
 * commit_gate.h - what a thread asks of the connections that it uses.
 */
#ifndef TW_COMMIT_GATE_H
#define TW_COMMIT_GATE_H

#include <stdbool.h>

/* What this thread asks until it is no more in a hurry is a row by its key, and is failed after few
 * seconds: others wait for the thread. */
void tw_catalogue_hurry(bool hurry);

/* The layer of files for every connection, made on first use (catalogue_vfs.c). */
#define TW_CAT_VFS "tracewell"
void tw_cat_need_vfs(void);
/* While a thread has one, no commit of its is seen before durable said yes: it is called when the
 * log is synced, perhaps more than once, and false makes the commit fail. */
struct tw_cat_gate {
	bool (*durable)(void *arg);
	void *arg;
};
void tw_cat_set_gate(struct tw_cat_gate *g); /* NULL: none */
/* Asked before a commit by an engine that is not below. */
bool tw_cat_gate_passes(void);

#endif
