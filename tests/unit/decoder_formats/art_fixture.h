/*
 * art_fixture.h - ART traces made by hand, and their emitted events compared with the expected
 * ones.
 */
#ifndef TW_ART_FIXTURE_H
#define TW_ART_FIXTURE_H

#include "tests/fixtures/event_log.h"
#include "tests/fixtures/trace_model.h"

#define UNNAMED UINT64_MAX /* an exit without its method */

void art_text(struct tw_buf *b, const char *s);
void art_u16(struct tw_buf *b, unsigned v);
void art_u32(struct tw_buf *b, uint32_t v);
/* hex digits, blanks between them as one likes */
void art_bytes(struct tw_buf *b, const char *hex);
void art_lead(struct tw_buf *b, unsigned version, uint64_t start_us, unsigned size);
/* The text of version 1 to 3 with two threads and three methods, and the binary header. */
void art_header(struct tw_buf *b, int version, const char *keys);
void art_record2(struct tw_buf *b, unsigned tid, uint32_t word, uint32_t us);
void art_record3(struct tw_buf *b, unsigned tid, uint32_t word, uint32_t cpu, uint32_t wall);
/* Runs it whole, and in pieces, which must give the same. */
void art_run(struct event_log *log, const struct tw_buf *b);
void art_run_done(struct event_log *log, struct tw_buf *b);
/* Was this piece of a line emitted? */
bool art_reported(const struct event_log *log, const char *line);
/* The i-th event. */
void art_check(const struct event_log *log, size_t i, enum tw_ev_kind kind, uint64_t method,
        int64_t ts_ns, int64_t cpu_ns);
/* As the worker does it: decoder, builder, trace. */
enum tw_status art_build(const struct tw_buf *b, struct trace_log *log);
const struct tw_method_info *art_method_named(const struct trace_log *log, const char *name);
/* Fails every allocation once. */
void art_fail_each(const struct tw_buf *b);

#endif
