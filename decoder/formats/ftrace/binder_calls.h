/*
 * binder_calls.h - pairs the kernel's events of binder calls.
 *
 * A call is sent (binder_transaction), received by a thread of the other process
 * (binder_transaction_received), answered by that thread (binder_transaction, reply=1), and the
 * answer is received by the caller.  These four become one note of the caller, from sending to
 * receiving, whose value is the answering thread.  A one-way call becomes a flow to the receiving
 * thread.  Only the latest transactions are stored; calls without an answer are not emitted.
 */
#ifndef TW_BINDER_CALLS_H
#define TW_BINDER_CALLS_H

#include "decoder/formats/markers/markers.h"

struct tw_binder_transaction;

struct tw_binder_calls {                    /* zeroed at first */
	struct tw_binder_transaction *list; /* NULL until the first event */
	uint64_t *serving;
};

struct tw_binder_event {
	uint64_t id; /* of the transaction, as the kernel counts them */
	int64_t ts_ns;
	uint64_t offset;
	struct tw_tid *by;   /* NULL: at the limit of threads */
	bool reply, one_way; /* of the event that sends */
};

enum tw_status tw_binder_sent(struct tw_binder_calls *b, struct tw_markers *m,
        const struct tw_binder_event *ev, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_binder_received(struct tw_binder_calls *b, struct tw_markers *m,
        const struct tw_binder_event *ev, struct tw_err *err) TW_MUST_USE;

#endif
