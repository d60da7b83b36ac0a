/*
 * response_memory.h - limits the memory of responses, in total and per holder.
 *
 * A response holds memory from the start of its query until its last byte is sent.  It counts for
 * up to three holders: the caller (key, person or ticket), the client's address and the project.
 * More is granted while
 *
 *   - all responses together stay below 7/8 of the limit, and
 *   - the caller holds no more than is still free, and the address and the project no more than
 *     three times as much.
 *
 * So a single caller gets at most half, n callers 1/(n+1) each, and the next one finds as much free
 * memory as any of them holds.  The last eighth has two uses: one half is for streams that have
 * begun, the other for the first MiB of a response that the shares refuse, so that small responses
 * succeed while large ones of the same project run.  A refused allocation fails like any other
 * (tw_mem_account); the request then ends with 503.
 * Thread: any.
 */
#ifndef TW_RESPONSE_MEMORY_H
#define TW_RESPONSE_MEMORY_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"

struct tw_response_memory;

/* `taken` of `max` bytes are permanently used for other purposes (the response cache).  NULL: out
 * of memory. */
struct tw_response_memory *tw_response_memory_new(uint64_t max, uint64_t taken);
struct tw_response_memory *tw_response_memory_free(struct tw_response_memory *m); /* returns NULL */

struct tw_holders { /* "": none of that kind */
	const char *caller, *address, *project;
};

/* Memory of one response. */
struct tw_reservation {
	struct tw_mem_account account; /* first member */
	struct tw_response_memory *of;
	struct tw_holder *holders[3];
	int64_t small; /* part of the grant outside the shares */
	unsigned owners;
	bool begun;    /* a stream that has output: not limited by the holders' shares */
	bool too_much; /* refused although no other response holds memory */
};

/* NULL: out of memory. */
struct tw_reservation *tw_reservation_open(
        struct tw_response_memory *m, const struct tw_holders *who);
/* A further owner of the same memory: a stream, whose helper threads may outlive the request.
 * Returns h; accepts NULL. */
struct tw_reservation *tw_reservation_share(struct tw_reservation *h);
/* Counts for other holders from now on. */
void tw_reservation_move(struct tw_reservation *h, const struct tw_holders *who);
/* Returns the unused part of the grant. */
void tw_reservation_trim(struct tw_reservation *h);
/* The last owner returns the rest.  Accepts NULL; returns NULL. */
struct tw_reservation *tw_reservation_close(struct tw_reservation *h);

/* Whether a response was refused within the last two seconds. */
bool tw_response_memory_is_short(struct tw_response_memory *m);

void tw_response_memory_metrics(struct tw_response_memory *m, struct tw_buf *out);

#endif
