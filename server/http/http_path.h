/*
 * http_path.h - request targets: decoding, path templates, query pairs.
 *
 * A target in absolute form (http://host/path) is accepted as RFC 9112 requires; its authority then
 * replaces the Host header.
 * The target is split at / before it is decoded, so that %2f stays inside its segment; NUL, broken
 * escapes and invalid UTF-8 are refused everywhere.
 */
#ifndef TW_HTTP_PATH_H
#define TW_HTTP_PATH_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

enum { TW_MAX_PIECES = 12, TW_MAX_PAIRS = 64 };

struct tw_pair {
	const char *name, *value;
};

struct tw_target {
	const char *path;      /* as sent, without authority and query */
	const char *authority; /* host and port of a target in absolute form, or NULL */
	const char *pieces[TW_MAX_PIECES];
	size_t n_pieces;
	struct tw_pair pairs[TW_MAX_PAIRS]; /* of the query */
	size_t n_pairs;
};

/* Texts are in the arena.  TW_BAD_REQUEST with a message. */
enum tw_status tw_target_parse(
        struct tw_arena *a, const char *raw, struct tw_target *ret, struct tw_err *err) TW_MUST_USE;
/* Whether the path matches "/api/v1/traces/{id}/flame"; {*} as the last segment matches the
 * rest. */
bool tw_target_matches(const struct tw_target *t, const char *template);
/* The segment for {name}; for "*" the rest, joined by / in the arena.  NULL: no such segment. */
const char *tw_target_piece(
        const struct tw_target *t, const char *template, const char *name, struct tw_arena *a);

/* The value of the first query pair of that name; NULL if there is none. */
const char *tw_target_query(const struct tw_target *t, const char *name);

#endif
