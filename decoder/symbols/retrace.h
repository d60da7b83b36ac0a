/*
 * retrace.h - R8's and ProGuard's mapping.txt of a build: obfuscated to original names.
 *
 * tw_retrace_writer turns the text, pushed in any cuts, into one flat image that
 * is stored as a file and mapped by readers; look-ups in it neither copy nor
 * allocate.  The image is little-endian: a 64-byte header, class records sorted
 * by obfuscated name, member records grouped by class and sorted by obfuscated
 * name (those of one name in the order of the file), then the text itself, into
 * which all records point; the records are described in retrace_image.h.
 *
 * What is known of the grammar: class lines `orig -> obf:`, member lines
 * `[s:e:]type [class.]name(args)[:os[:oe]] -> obf`, comments, and of the JSON
 * comments the residual signature, the marks of synthesized members and of
 * outlines.  Learned from R8's retrace documentation and from real mappings.
 *
 * An obfuscated name may stand for several originals.  A descriptor or a line
 * tells most of them apart; where it does not, all are told and none is guessed.
 * Thread: a writer one at a time; a mapping any.
 */
#ifndef TW_RETRACE_H
#define TW_RETRACE_H

#include <stdbool.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"

struct tw_retrace_writer;

struct tw_retrace_stats {
	uint64_t classes, methods; /* methods: member lines with parentheses */
	uint64_t malformed;        /* lines that fit nothing */
	uint64_t first_malformed;  /* offset, TW_NO_OFFSET when none */
	char id[72];               /* pg_map_id, "" when the mapping names none */
};

/* max_bytes bounds the text. */
struct tw_retrace_writer *tw_retrace_writer_new(uint64_t max_bytes);
struct tw_retrace_writer *tw_retrace_writer_free(struct tw_retrace_writer *w);
enum tw_status tw_retrace_writer_push(
        struct tw_retrace_writer *w, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* Appends the image to *out.  TW_CORRUPT when no class line with a member was read. */
enum tw_status tw_retrace_writer_finish(struct tw_retrace_writer *w, struct tw_buf *out,
        struct tw_retrace_stats *ret, struct tw_err *err) TW_MUST_USE;

struct tw_retrace { /* a view on an image; the bytes stay the owner's */
	const uint8_t *data;
	size_t len;
	uint32_t classes, members;
	uint32_t sources; /* classes with a source file */
	const uint8_t *class_records, *member_records, *source_records;
	const char *text;
	size_t text_len;
};

/* Checks the image's header and bounds (not each record: look-ups do). */
enum tw_status tw_retrace_open(
        const void *data, size_t len, struct tw_retrace *ret, struct tw_err *err) TW_MUST_USE;

/* The original of a class; false when the mapping does not name it. */
bool tw_retrace_class(const struct tw_retrace *r, struct tw_str obf, struct tw_str *ret);

struct tw_retraced {
	struct tw_str class_name, method;
	struct tw_str args;   /* as in Java, with commas; "" none or unknown */
	struct tw_str source; /* source file of class_name, "" unknown */
	uint32_t line;        /* 0 unknown */
	uint32_t alternative; /* frames with the same number were inlined into each other */
	bool kotlin;          /* the class that contains the code has a Kotlin file */
	bool synthesized;     /* made by the compiler */
};

/* Originals of a method without a line: each different one, the method that is really there and
 * not what was inlined into it.  descriptor (JVM, obfuscated) "" is unknown.  Returns how many
 * were put in ret, at most cap; 0: the mapping does not name the method (or its class). */
size_t tw_retrace_method(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        struct tw_str descriptor, struct tw_retraced *ret, size_t cap);

/* Originals of a frame with a line (0 unknown): innermost first, inlined frames before the method
 * they were inlined into; several alternatives one after another. */
size_t tw_retrace_frame(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        uint32_t line, struct tw_retraced *ret, size_t cap);

struct tw_retrace_walk { /* down one stack; zero except for r and thrown */
	const struct tw_retrace *r;
	struct tw_str thrown; /* obfuscated class of the exception whose stack it is, "" none */
	struct tw_str outline_class, outline_method;
	uint32_t outline_line; /* not 0: the frame above was this outline's */
};

struct tw_retrace_at { /* a frame as the stack has it */
	struct tw_str class_name, method;
	uint32_t line; /* 0 unknown */
};

/* The originals of the next frame of a stack, topmost first, like tw_retrace_frame.  Frames made by
 * the compiler are omitted; an outline's line is carried to the frame that called it.  Where no
 * member fits, the class is original and method and line are those of the stack.  *ret_known: the
 * mapping has the class; 0 frames then mean that the frame is the compiler's alone. */
size_t tw_retrace_next(struct tw_retrace_walk *w, const struct tw_retrace_at *at,
        struct tw_retraced *ret, size_t cap, bool *ret_known);

/* Keeps one alternative when all name the same methods, without the lines in which they differ.
 * Returns how many frames remain; *ret_one: they are one alternative. */
size_t tw_retrace_settle(struct tw_retraced *f, size_t n, bool *ret_one);

/* The source file of a frame, in two pieces: from the mapping, otherwise inferred from the class;
 * `seen` is the file in the stack. */
struct tw_retrace_file {
	struct tw_str name, extension;
};
struct tw_retrace_file tw_retrace_file(const struct tw_retraced *f, struct tw_str seen);

/* "pkg.Class.method" as a flame graph shows it: alternatives as `A.foo | B.bar`.  Valid UTF-8, cut
 * to cap.  False when the mapping names neither class nor method: out is the name as it was. */
bool tw_retrace_display(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        struct tw_str descriptor, char *out, size_t cap);

#endif
