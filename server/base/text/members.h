/*
 * members.h - members of a JSON object as data: what each may be, and where its value is stored.
 *
 * Errors are TW_BAD_REQUEST and name the member.
 * Thread: any.
 */
#ifndef TW_MEMBERS_H
#define TW_MEMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"

enum tw_member_kind {
	TW_MEMBER_TEXT,   /* const char *, as tw_member_text; valid as long as the object */
	TW_MEMBER_LINES,  /* of several lines */
	TW_MEMBER_FLAG,   /* bool */
	TW_MEMBER_NUMBER, /* int64_t, uint32_t */
	TW_MEMBER_REAL,   /* double */
	TW_MEMBER_ENUM,   /* an enum, by its index in `enum_names` */
	TW_MEMBER_TEXTS,  /* const json_t *: a list of texts */
	TW_MEMBER_OBJECT, /* const json_t * */
	TW_MEMBER_OTHER   /* known, but read by the caller */
};

struct tw_member {
	const char *name; /* NULL ends a table */
	enum tw_member_kind kind;
	bool required, or_null; /* or_null: null means absent */
	size_t offset, bytes;
	int64_t min, max; /* NUMBER, REAL; TEXT, LINES: bytes; TEXTS: items */
	const char *const *enum_names;
	bool (*fits)(const char *); /* NULL, or checks a TEXT that is not "", or each of TEXTS */
	const char *form; /* describes a valid value (of TEXTS: a valid item) in the message
	                     "NAME must be ..."; required with `fits`, with TEXTS, and with
	                     the min of a TEXT */
};

#define TW_MEMBER(kind_, T, member, ...)                                                           \
	{                                                                                          \
		.name = #member, .kind = (kind_), .offset = offsetof(T, member),                   \
		.bytes = sizeof((T *)NULL)->member, __VA_ARGS__                                    \
	}

/* Reads the members that the object has into the struct *io; other members of the struct are
 * unchanged.  io NULL: only checks the object's. */
enum tw_status tw_members_read(
        const json_t *o, const struct tw_member *of, void *io, struct tw_err *err) TW_MUST_USE;
/* Refuses members that are not in the table, and fewer than `least`; the message is `before`, the
 * names in the table, and `after`. */
enum tw_status tw_members_only(const json_t *o, const struct tw_member *of, size_t least,
        const char *before, const char *after, struct tw_err *err) TW_MUST_USE;
/* Refuses a value that is not an object, and members that are not in the table; the message names
 * the first. */
enum tw_status tw_members_known(
        const json_t *o, const struct tw_member *of, struct tw_err *err) TW_MUST_USE;

/* A text member that is shown to users: at most `max` bytes, no control characters except, if
 * `lines`, line ends and tabs. */
enum tw_status tw_member_text(const json_t *o, const char *name, size_t max, bool lines,
        const char **ret, struct tw_err *err) TW_MUST_USE;
/* Finds the text in `names` (NULL ends them); the message has the field's name and lists them. */
enum tw_status tw_enum_of_name(const char *name, const char *text, const char *const *names,
        unsigned *ret, struct tw_err *err) TW_MUST_USE;

/* Returns st.  If it is TW_BAD_REQUEST, first prefixes the message with the text and ": ", to name
 * the invalid part of a document. */
enum tw_status tw_fail_within(enum tw_status st, struct tw_err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

#endif
