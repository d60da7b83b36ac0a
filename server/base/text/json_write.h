/*
 * json_write.h - writes JSON directly into a buffer, for responses with thousands of nodes.
 *
 * Commas are added automatically; strings are made valid UTF-8 and escaped.  The buffer's sticky
 * status reports at the end whether everything fitted.
 * Thread: one at a time.
 */
#ifndef TW_JSON_WRITE_H
#define TW_JSON_WRITE_H

#include "decoder/base/buf.h"

struct tw_json {
	struct tw_buf *out;
	bool comma; /* this object or array already has an element */
};

static inline struct tw_json tw_json_to(struct tw_buf *out)
{
	return (struct tw_json){out, false};
}

void tw_json_open(struct tw_json *j, char bracket);   /* '{' or '[' */
void tw_json_close(struct tw_json *j, char bracket);  /* '}' or ']' */
void tw_json_key(struct tw_json *j, const char *key); /* a constant that needs no escaping */
void tw_json_int(struct tw_json *j, int64_t v);
void tw_json_bool(struct tw_json *j, bool v);
void tw_json_null(struct tw_json *j);
void tw_json_str(struct tw_json *j, struct tw_str s);
void tw_json_str_key(struct tw_json *j, struct tw_str key); /* any text */
/* Text that is JSON already. */
void tw_json_raw(struct tw_json *j, struct tw_str json);
/* Six digits after the point; null if v is not finite. */
void tw_json_double(struct tw_json *j, double v);

static inline void tw_json_key_int(struct tw_json *j, const char *key, int64_t v)
{
	tw_json_key(j, key);
	tw_json_int(j, v);
}

static inline void tw_json_key_str(struct tw_json *j, const char *key, struct tw_str s)
{
	tw_json_key(j, key);
	tw_json_str(j, s);
}

/* null if text is NULL. */
static inline void tw_json_key_text(struct tw_json *j, const char *key, const char *text)
{
	tw_json_key(j, key);
	if (text)
		tw_json_str(j, tw_str_of(text));
	else
		tw_json_null(j);
}

/* Writes null if v is negative (unknown). */
static inline void tw_json_key_int_or_null(struct tw_json *j, const char *key, int64_t v)
{
	tw_json_key(j, key);
	if (v >= 0)
		tw_json_int(j, v);
	else
		tw_json_null(j);
}

static inline void tw_json_key_open(struct tw_json *j, const char *key, char bracket)
{
	tw_json_key(j, key);
	tw_json_open(j, bracket);
}

static inline void tw_json_key_bool(struct tw_json *j, const char *key, bool v)
{
	tw_json_key(j, key);
	tw_json_bool(j, v);
}

static inline void tw_json_key_uint(struct tw_json *j, const char *key, uint64_t v)
{
	tw_json_key_int(j, key, (int64_t)v);
}

/* Writes up to 8 members of *row, each under its C name: TW_JSON_MEMBERS(j, thread, tid, pid). */
#define TW_JSON_MEMBERS(j, row, ...)                                                               \
	TW_JSON_MEMBERS_N(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, )(j, row, __VA_ARGS__)
#define TW_JSON_MEMBERS_N(a, b, c, d, e, f, g, h, n, ...) TW_JSON_MEMBERS_##n
#define TW_JSON_MEMBERS_1(j, row, m)                                                               \
	_Generic((row)->m, bool                                                                    \
	         : tw_json_key_bool, struct tw_str                                                 \
	         : tw_json_key_str, char *                                                         \
	         : tw_json_key_text, const char *                                                  \
	         : tw_json_key_text, uint64_t                                                      \
	         : tw_json_key_uint, default                                                       \
	         : tw_json_key_int)(j, #m, (row)->m)
#define TW_JSON_MEMBERS_2(j, row, m, ...)                                                          \
	TW_JSON_MEMBERS_1(j, row, m), TW_JSON_MEMBERS_1(j, row, __VA_ARGS__)
#define TW_JSON_MEMBERS_3(j, row, m, ...)                                                          \
	TW_JSON_MEMBERS_1(j, row, m), TW_JSON_MEMBERS_2(j, row, __VA_ARGS__)
#define TW_JSON_MEMBERS_4(j, row, m, ...)                                                          \
	TW_JSON_MEMBERS_1(j, row, m), TW_JSON_MEMBERS_3(j, row, __VA_ARGS__)
#define TW_JSON_MEMBERS_5(j, row, m, ...)                                                          \
	TW_JSON_MEMBERS_1(j, row, m), TW_JSON_MEMBERS_4(j, row, __VA_ARGS__)
#define TW_JSON_MEMBERS_6(j, row, m, ...)                                                          \
	TW_JSON_MEMBERS_1(j, row, m), TW_JSON_MEMBERS_5(j, row, __VA_ARGS__)
#define TW_JSON_MEMBERS_7(j, row, m, ...)                                                          \
	TW_JSON_MEMBERS_1(j, row, m), TW_JSON_MEMBERS_6(j, row, __VA_ARGS__)
#define TW_JSON_MEMBERS_8(j, row, m, ...)                                                          \
	TW_JSON_MEMBERS_1(j, row, m), TW_JSON_MEMBERS_7(j, row, __VA_ARGS__)

#endif
