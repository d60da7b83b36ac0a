/*
 * art_internal.h - shared by the files of the ART format only.
 *
 * art.c         recognition, the push state machine, start and finish
 * art_text.c    header and summary text: keys, thread list, method list
 * art_table.c   tables of threads and methods; converts a record to an event
 * art_record.c  records and streaming items of versions 1, 2 and 3
 * art_packet.c  packets of versions 4 and 5 and of dumps; blocks of records
 * art_early.c   versions 4 and 5 as written by development builds of 2024
 */
#ifndef TW_ART_INTERNAL_H
#define TW_ART_INTERNAL_H

#include "decoder/base/list.h"
#include "decoder/formats/format.h"

enum {
	TW_ART_BATCH = 512,  /* at least TW_ART_GAPS */
	TW_ART_CACHE = 4096, /* of methods, power of two */
	TW_ART_GAPS = 500,   /* gaps examined to distinguish samples from calls */
	TW_ART_HEADER = 32,  /* of the binary part */
	TW_ART_KEYS = 64,    /* of the header text */
	TW_ART_BLOCK_MAX = 16 << 20
};

#define TW_ART_TIME_MAX ((uint64_t)1 << 60)

enum tw_art_state {
	TW_ART_TEXT,    /* lines up to *end */
	TW_ART_LEAD,    /* the 32 bytes that begin with SLOW */
	TW_ART_SKIP,    /* the rest of a longer header */
	TW_ART_RECORDS, /* version 1 to 3, a file */
	TW_ART_ITEMS,   /* version 1 to 3, streaming */
	TW_ART_PACKETS, /* version 4 and 5, dumps */
	TW_ART_CALLS,   /* records of a block without a stored size */
	TW_ART_EARLY,   /* records of a block of form A */
	TW_ART_DONE,    /* after the end */
	TW_ART_LOST     /* damaged: the rest cannot be read */
};

enum tw_art_clock {
	TW_ART_CLOCK_UNKNOWN,
	TW_ART_CLOCK_CPU,
	TW_ART_CLOCK_WALL, /* also "global" */
	TW_ART_CLOCK_DUAL
};

/* The encoding of a block's records; see art_packet.c. */
enum tw_art_form {
	TW_ART_FORM_UNKNOWN,
	TW_ART_FORM_A,
	TW_ART_FORM_B,
	TW_ART_FORM_C,
	TW_ART_FORM_LONG_RUNNING,
	TW_ART_FORM_COUNTS
};

enum { TW_ART_ENTER, TW_ART_EXIT, TW_ART_UNROLL, TW_ART_NO_ACTION };

struct tw_art_thread {
	uint32_t tid, track;         /* track 0: not requested yet */
	bool seen, had_gap;          /* has an event; has one later than the first */
	uint32_t first_enters;       /* at its first time, among the events examined */
	uint32_t raw_wall, raw_cpu;  /* the last 32-bit readings, microseconds */
	int64_t high_wall, high_cpu; /* added for wraparounds */
	int64_t last_ns, last_cpu_ns;
	uint64_t value, wall, cpu; /* form B: values at the end of the last block */
	uint32_t flushed;          /* its records since the last flush started */
	int64_t calls;             /* COUNTS: the time, in calls */
};

struct tw_art_method {
	struct tw_art_method *next; /* in order of first appearance */
	uint64_t id;
	uint64_t offset;    /* of its first use */
	uint32_t sym;       /* 0: unused so far */
	struct tw_str name; /* ptr NULL: no name yet */
};

struct tw_art_symbol {      /* of a method in use */
	uint64_t id_plus_1; /* 0: free */
	uint32_t sym;
};

struct tw_art_key {
	const char *key, *value;
};

/* A record in a common form for all layouts. */
struct tw_art_call {
	unsigned action;
	bool named;      /* an exit may lack its method */
	uint64_t method; /* id */
	int64_t ts_ns, cpu_ns;
	uint64_t offset;
};

/* How method packets of form A number methods, which its records number in multiples of four. */
enum tw_art_numbers { TW_ART_NUMBERS_UNKNOWN, TW_ART_NUMBERS_SHIFTED, TW_ART_NUMBERS_ALIKE };

struct tw_art_early { /* form A: position within its block */
	struct tw_art_thread *thread;
	uint32_t first, word; /* method | action: of the first record, of this one */
	uint64_t wall_us, cpu_us;
	uint64_t records, bytes; /* after the first record */
	uint16_t declared_records_low, declared_bytes_low;
	bool may_end;                /* as many as the block declared */
	enum tw_art_numbers numbers; /* in method packets */
};

struct tw_art {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_limits limits;
	enum tw_art_state state;
	bool started, no_memory;
	uint64_t offset;      /* of the next unprocessed byte */
	struct tw_bytes hold; /* the beginning of an incomplete item */
	size_t want;
	bool long_line; /* the rest of a line that is too long is passed over */
	uint64_t skip;  /* SKIP: bytes left */

	/* text */
	char section; /* of the current line: v, k, t, m; 0 any other */
	bool has_text, text_ended, trailer, overflow;
	enum tw_art_clock clock;
	uint64_t clock_offset;
	uint32_t pid, emitted_pid; /* of the process; 0 unknown */
	struct tw_art_key keys[TW_ART_KEYS];
	unsigned n_keys;

	/* binary */
	bool has_lead, streaming;
	unsigned version; /* 1 to 6 */
	size_t record_bytes;
	uint64_t start_ns; /* CLOCK_MONOTONIC; 0 unknown */
	int64_t unit_ns;
	enum tw_art_form form;
	uint64_t ticks_per_s;
	struct tw_art_thread *calls_thread; /* CALLS */
	uint32_t calls_left;
	uint64_t calls_value;
	struct tw_art_early early;

	/* tables */
	struct tw_art_thread **threads; /* by hash; NULL free */
	uint32_t n_threads, n_thread_slots;
	struct tw_art_thread *last_thread;
	struct tw_art_method **methods; /* by hash; NULL free */
	uint32_t n_methods, n_method_slots, n_named;
	struct tw_art_method *first_method, **last_method;
	struct tw_art_symbol symbols[TW_ART_CACHE]; /* by id; the last one of several */

	uint64_t events;
	uint64_t records;          /* complete records */
	uint64_t declared_records; /* num-method-calls of the header; 0: absent */
	uint32_t first_enters;     /* the largest of any thread */
	bool unrolled;             /* some exits are by exception, which sampling does not record */
	unsigned n_gaps, n_examined;
	int64_t gaps[TW_ART_GAPS];
	bool source_decided; /* interval_ns is decided: at the first flush */
	int64_t interval_ns; /* of samples; 0: every call was recorded */
	unsigned n_batch;
	struct tw_event batch[TW_ART_BATCH];
	/* of records that are passed on together (struct tw_edge_batch) */
	int64_t edge_ns[TW_ART_BATCH], edge_cpu_ns[TW_ART_BATCH];
	uint32_t edge_syms_2[TW_ART_BATCH];
};

/* art.c */
void tw_art_repair(struct tw_art *s, enum tw_repair what, uint64_t offset);
void tw_art_emit_clock(struct tw_art *s);
/* The rest of the input cannot be read. */
void tw_art_drop(struct tw_art *s, uint64_t offset);

/* A step consumes complete items at the front of p[0..n) and returns the number of bytes; 0: it
 * needs s->want bytes to continue.  p corresponds to s->offset. */
typedef enum tw_status (*tw_art_step)(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err);

/* art_text.c */
enum tw_status tw_art_text_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err);
/* A method line; tw_art_text_method takes it without its id: class, method, signature, file and
 * line, separated by tabs. */
enum tw_status tw_art_text_method_line(
        struct tw_art *s, struct tw_str line, uint64_t offset, struct tw_err *err);
enum tw_status tw_art_text_method(
        struct tw_art *s, uint64_t id, struct tw_str line, uint64_t offset, struct tw_err *err);
void tw_art_text_thread(struct tw_art *s, uint32_t tid, struct tw_str name, uint64_t offset);
/* Emits the text's keys and values as a document. */
enum tw_status tw_art_text_emit(struct tw_art *s, struct tw_err *err);

/* art_table.c */
bool tw_art_table_init(struct tw_art *s);
/* NULL: at the limit (reported as a repair), or out of memory (s->no_memory). */
struct tw_art_thread *tw_art_find_thread(struct tw_art *s, uint32_t tid, uint64_t offset);
/* NULL: it has no record so far. */
struct tw_art_thread *tw_art_known_thread(struct tw_art *s, uint32_t tid);
static inline struct tw_art_thread *tw_art_thread_of(
        struct tw_art *s, uint32_t tid, uint64_t offset)
{
	if (s->last_thread && s->last_thread->tid == tid)
		return s->last_thread;
	return tw_art_find_thread(s, tid, offset);
}
bool tw_art_knows(const struct tw_art *s, uint64_t method); /* whether it has a name */
/* The method if it has no name yet; otherwise, and at the limit (reported), NULL. */
struct tw_art_method *tw_art_unnamed(struct tw_art *s, uint64_t id, uint64_t offset);
static inline struct tw_art_symbol *tw_art_symbol_of(struct tw_art *s, uint64_t id)
{
	return &s->symbols[id >> 2 & (TW_ART_CACHE - 1)];
}
/* Does not copy the name: it must be in the arena. */
void tw_art_name_method(
        struct tw_art *s, struct tw_art_method *m, struct tw_str name, uint64_t offset);
/* Corrects times that fall in *call. */
enum tw_status tw_art_event(
        struct tw_art *s, struct tw_art_thread *t, struct tw_art_call *call, struct tw_err *err);
/* Passes on begins and ends after the events before them. */
enum tw_status tw_art_edges(struct tw_art *s, struct tw_edge_batch *edges, struct tw_err *err);
enum tw_status tw_art_table_finish(struct tw_art *s, struct tw_err *err);

/* art_record.c */
enum tw_status tw_art_record_header(struct tw_art *s, const uint8_t *p, struct tw_err *err);
enum tw_status tw_art_record_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err);
enum tw_status tw_art_item_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err);
/* A 32-bit reading in microseconds plus its wraparounds.  A reading that fell by more than half of
 * the range has wrapped. */
static inline uint64_t tw_art_unwrap(
        struct tw_art *s, uint32_t now, uint32_t *last, int64_t *high, uint64_t offset)
{
	if (now<*last && * last - now> UINT32_MAX / 2) {
		*high += (int64_t)1 << 32;
		tw_art_repair(s, TW_REPAIR_time_wrapped, offset);
	}
	*last = now;
	return (uint64_t)(*high + now);
}

/* art_packet.c */
enum tw_status tw_art_packet_header(struct tw_art *s, const uint8_t *p, struct tw_err *err);
enum tw_status tw_art_packet_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err);
enum tw_status tw_art_calls_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err);
/* The input ended inside the packet p: reads the records that are there. */
enum tw_status tw_art_packet_cut(struct tw_art *s, const uint8_t *p, size_t n, struct tw_err *err);
bool tw_art_packet_probe(const uint8_t *p, size_t n); /* a dump without a header */

/* art_early.c */
void tw_art_early_start(struct tw_art *s); /* the trace uses form A */
size_t tw_art_early_head(const struct tw_art *s);
/* The id used in records for the method that a packet gives this number. */
uint64_t tw_art_early_method(struct tw_art *s, uint32_t number);
/* The head p of a block, which is its first record; the others are read in state TW_ART_EARLY. */
enum tw_status tw_art_early_block(struct tw_art *s, const uint8_t *p, struct tw_err *err);
enum tw_status tw_art_early_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err);

#endif
