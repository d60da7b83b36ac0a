/*
 * clickhouse.h - one request to ClickHouse over HTTP: a query, or rows to insert.
 *
 * A request goes to the host that responded last, or to the next one if no connection can be made.
 * A request that was sent is not repeated here: whether its rows were stored is unknown, and the
 * caller decides (clickhouse_put.c). Texts in queries are escaped by tw_clickhouse_quote only.
 * Thread: any; each request uses its own handle from a pool.
 */
#ifndef TW_CLICKHOUSE_H
#define TW_CLICKHOUSE_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

struct tw_clickhouse_at { /* "" for defaults */
	const char *url;  /* clickhouse://HOST:8123,HOST/DATABASE; clickhouse+https:// with TLS */
	const char *user; /* "": default */
	const char *password_file, *ca_file;
};

struct tw_clickhouse;

/* TW_BAD_REQUEST with a message. Does not connect. */
enum tw_status tw_clickhouse_new(const struct tw_clickhouse_at *at, struct tw_clickhouse **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_clickhouse *tw_clickhouse_free(struct tw_clickhouse *c); /* NULL is fine; returns NULL */
const char *tw_clickhouse_database(const struct tw_clickhouse *c);

struct tw_clickhouse_query {
	struct tw_str sql;
	struct tw_str rows;    /* of an INSERT, in RowBinary; "" for a query */
	int64_t ms;            /* time limit */
	bool without_database; /* it need not exist yet */
};
/* out receives the result in RowBinary; a result beyond its limit is TW_TOO_LARGE. TW_BUSY: no host
 * responded. TW_DEADLINE, TW_TOO_LARGE: a limit of the query. TW_IO: refused, with the message of
 * ClickHouse. */
enum tw_status tw_clickhouse_request(struct tw_clickhouse *c, const struct tw_clickhouse_query *q,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* Requests so far, for metrics. */
struct tw_clickhouse_counts {
	uint64_t answered, refused, unanswered;
};
struct tw_clickhouse_counts tw_clickhouse_counts(const struct tw_clickhouse *c);

/* Appends a string literal. */
void tw_clickhouse_quote(struct tw_buf *out, const char *text);

/* --- rows in RowBinary --- */

struct tw_clickhouse_reader { /* of a result, which it owns */
	struct tw_buf result;
	const uint8_t *p, *end;
	bool damaged; /* a value did not fit; all further values are 0 or "" */
};
/* As tw_clickhouse_request, of a result of up to max_bytes.  End the reader also after a failure.
 */
enum tw_status tw_clickhouse_read(struct tw_clickhouse *c, const struct tw_clickhouse_query *q,
        size_t max_bytes, struct tw_clickhouse_reader *ret, struct tw_err *err) TW_MUST_USE;
/* Frees the result.  Returns st, or TW_IO if st is TW_OK and the result is damaged. */
enum tw_status tw_clickhouse_end(
        struct tw_clickhouse_reader *r, enum tw_status st, struct tw_err *err);
enum tw_status tw_clickhouse_damaged(struct tw_err *err);
bool tw_clickhouse_more(const struct tw_clickhouse_reader *r);
uint8_t tw_clickhouse_u8(struct tw_clickhouse_reader *r);
uint16_t tw_clickhouse_u16(struct tw_clickhouse_reader *r);
uint64_t tw_clickhouse_u64(struct tw_clickhouse_reader *r);
int64_t tw_clickhouse_i64(struct tw_clickhouse_reader *r); /* UInt64, limited to INT64_MAX */
double tw_clickhouse_double(struct tw_clickhouse_reader *r);
struct tw_str tw_clickhouse_text(struct tw_clickhouse_reader *r);
struct tw_str tw_clickhouse_fixed(struct tw_clickhouse_reader *r, size_t n);
uint64_t tw_clickhouse_n(struct tw_clickhouse_reader *r); /* length of the array that follows */

void tw_clickhouse_put_text(struct tw_buf *out, const char *text);

#endif
