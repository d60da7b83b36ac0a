/*
 * retrace_read.h - reads records of a retrace image, for the lookup code.
 *
 * An image is not trusted: every offset is checked when it is used.
 * Thread: any.
 */
#ifndef TW_RETRACE_READ_H
#define TW_RETRACE_READ_H

#include "decoder/symbols/retrace.h"
#include "decoder/symbols/retrace_image.h"

/* At most this many members of one name are examined.  Compilers give one name to a few hundred
 * members at most; a mapping with more must not make every lookup slow. */
enum { RETRACE_EXAMINED_MAX = 1024 };

struct retrace_member {
	struct tw_str obf, name, class_name, args, type, residual;
	uint32_t s, e, os, oe;
	uint32_t flags;
};

struct retrace_class {
	struct tw_str obf, orig;
	struct tw_str source; /* its source file, "" unknown */
	uint32_t first, n;
};

struct retrace_range { /* members [first, end) */
	uint32_t first, end;
};

static inline struct tw_str retrace_piece(const struct tw_retrace *r, uint32_t at, uint32_t len)
{
	if (at > r->text_len || len > r->text_len - at)
		return TW_STR("");
	return (struct tw_str){r->text + at, len};
}

static inline struct tw_str retrace_piece_at(const struct tw_retrace *r, const uint8_t *p)
{
	return retrace_piece(r, tw_u32le(p), tw_u32le(p + 4));
}

static inline struct retrace_member retrace_member_at(const struct tw_retrace *r, uint32_t i)
{
	const uint8_t *p = r->member_records + (size_t)i * RETRACE_MEMBER;

	return (struct retrace_member){
	        .obf = retrace_piece_at(r, p),
	        .name = retrace_piece_at(r, p + 8),
	        .class_name = retrace_piece_at(r, p + 16),
	        .args = retrace_piece_at(r, p + 24),
	        .type = retrace_piece_at(r, p + 32),
	        .s = tw_u32le(p + 40),
	        .e = tw_u32le(p + 44),
	        .os = tw_u32le(p + 48),
	        .oe = tw_u32le(p + 52),
	        .residual = retrace_piece(r, tw_u32le(p + 56), tw_u32le(p + 60) & 0xFFFFFF),
	        .flags = tw_u32le(p + 60) >> 24,
	};
}

/* The end of the group of member i and the members after it that were inlined into each other. */
static inline uint32_t retrace_group_end(const struct tw_retrace *r, uint32_t i, uint32_t end)
{
	while (i + 1 < end && (retrace_member_at(r, i).flags & RETRACE_INLINED))
		i++;
	return i + 1;
}

bool tw_retrace_find_class(
        const struct tw_retrace *r, struct tw_str obf, struct retrace_class *ret);
/* All members of a class with this obfuscated name, without a limit. */
struct retrace_range tw_retrace_find_members(
        const struct tw_retrace *r, const struct retrace_class *c, struct tw_str obf);
/* The first RETRACE_EXAMINED_MAX of them. */
struct retrace_range tw_retrace_clip(struct retrace_range members);

struct tw_retraced tw_retrace_reported(
        const struct tw_retrace *r, const struct retrace_class *c, const struct retrace_member *m);
/* The method of member i; if the compiler generated it around another method, that other one. */
struct tw_retraced tw_retrace_method_of(const struct tw_retrace *r, const struct retrace_class *c,
        struct retrace_range range, uint32_t i);
/* Appends *one to the list of n unless it is already there or cap is reached.  Returns the new
 * n. */
size_t tw_retrace_add_different(
        struct tw_retraced *list, size_t n, size_t cap, const struct tw_retraced *one);

#endif
