/*
 * perfetto_fixture.h - Perfetto traces made field by field, for tests of reading them.
 */
#ifndef TW_PERFETTO_FIXTURE_H
#define TW_PERFETTO_FIXTURE_H

#include "tests/fixtures/event_log.h"

#define BASE                                                                                       \
	((uint64_t)100000000000) /* ns, of the first event; the decoder's zero is 60 s before */

struct perfetto_writer {
	struct tw_buf out, packet, message, inner;
};

void perfetto_begin(struct perfetto_writer *w);
void perfetto_done(struct perfetto_writer *w);

void perfetto_num(struct tw_buf *b, uint32_t field, uint64_t v);
void perfetto_bytes(struct tw_buf *b, uint32_t field, const void *p, size_t n);
void perfetto_str(struct tw_buf *b, uint32_t field, const char *s);
/* Writes the content of m as a message and empties m. */
void perfetto_sub(struct tw_buf *b, uint32_t field, struct tw_buf *m);
/* Ends the packet that is being made. */
void perfetto_packet(struct perfetto_writer *w);

/* One clock of a snapshot, in w->message. */
void perfetto_clock(struct perfetto_writer *w, uint64_t id, uint64_t ns);
/* boot 0: without BOOTTIME */
void perfetto_snapshot(struct perfetto_writer *w, uint64_t boot, uint64_t mono);
/* A thread's track, called "t". */
void perfetto_thread(struct perfetto_writer *w, uint64_t uuid, uint64_t pid, uint64_t tid);
/* An event on track 7; clock 0 and name NULL: none */
void perfetto_event(
        struct perfetto_writer *w, uint64_t ns, uint64_t clock, uint64_t type, const char *name);

#endif
