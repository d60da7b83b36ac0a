/*
 * catalogue_postgres_stmt.c - statements of PostgreSQL: parameters and rows, both in binary.
 *
 * A statement is sent at its first step, as the types of its parameters (int8, text or bytea) are
 * known only then.  All rows are received together, so that other statements can run before the
 * last row was read.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/db/catalogue_postgres_dialect.h"
#include "server/db/catalogue_postgres_int.h"

enum { SQL_BYTES = 1 << 16, VALUES_MAX = 96 };
/* Type OIDs, from PostgreSQL's catalogue. */
enum { BOOL = 16, BYTEA = 17, INT8 = 20, INT2 = 21, INT4 = 23, TEXT = 25, NUMERIC = 1700 };
enum { BYTEA_ARRAY = 1001, TEXT_ARRAY = 1009, INT8_ARRAY = 1016 };
enum { ARRAY_HEAD = 20, ARRAY_COUNT_AT = 12, ARRAY_MOST = 1 << 30 };

struct statement {
	struct tw_stmt stmt;
	char *sql;
	bool no_memory;
	PGresult *rows;
	int row, n;
	/* Of n parameters; copies are in `owned`. */
	Oid types[VALUES_MAX];
	Oid texts[VALUES_MAX]; /* types of those bound as text */
	const char *values[VALUES_MAX];
	char *owned[VALUES_MAX];
	int lengths[VALUES_MAX], formats[VALUES_MAX];
	int64_t ints[VALUES_MAX];
	size_t space[VALUES_MAX]; /* of an array in `owned` */
	char number[24];          /* a number read as text */
};

static struct statement *of(struct tw_stmt *s)
{
	return (struct statement *)s;
}

/*
 * A parameter that the statement casts to a list has the list's type.  As a text it would be parsed
 * again for each row that a plan compares with the list.
 */
static void find_lists(struct statement *s)
{
	static const char cast[] = "CAST($";

	for (size_t i = 0; i < VALUES_MAX; i++)
		s->texts[i] = TEXT;
	for (const char *p = s->sql; (p = strstr(p, cast));) {
		size_t at = 0;

		for (p += sizeof cast - 1; *p >= '0' && *p <= '9' && at <= VALUES_MAX; p++)
			at = at * 10 + (size_t)(*p - '0');
		if (at == 0 || at > VALUES_MAX)
			continue;
		if (strncmp(p, " AS BIGINT[])", 13) == 0)
			s->texts[at - 1] = INT8_ARRAY;
		else if (strncmp(p, " AS TEXT[])", 11) == 0)
			s->texts[at - 1] = TEXT_ARRAY;
	}
}

enum tw_status tw_postgres_prepare(
        struct tw_db *db, const char *sql, struct tw_stmt **ret, struct tw_err *err)
{
	struct statement *s = tw_mem_zalloc(1, sizeof *s);
	struct tw_buf text;
	enum tw_status st = s ? TW_OK : TW_NOMEM;

	tw_buf_init(&text, SQL_BYTES);
	if (st == TW_OK)
		st = tw_postgres_sql(sql, &text, &s->n);
	if (st == TW_OK)
		s->sql = tw_mem_alloc(text.len, 1);
	if (st == TW_OK && s->sql)
		memcpy(s->sql, text.data, text.len);
	tw_buf_done(&text);
	if (st != TW_OK || !s->sql || s->n > VALUES_MAX) {
		if (s)
			tw_mem_free(s->sql);
		tw_mem_free(s);
		return tw_fail(
		        err, st == TW_OK ? TW_NOMEM : st, "catalogue: no memory for a statement");
	}
	find_lists(s);
	s->stmt.db = db;
	*ret = &s->stmt;
	return TW_OK;
}

/* --- parameters --- */

static void forget(struct statement *s, int i)
{
	tw_mem_free(s->owned[i]);
	s->owned[i] = NULL;
	s->values[i] = NULL;
	s->types[i] = 0;
	s->lengths[i] = s->formats[i] = 0;
	s->space[i] = 0;
}

void tw_postgres_reset(struct tw_stmt *stmt)
{
	struct statement *s = of(stmt);

	PQclear(s->rows);
	s->rows = NULL;
	s->row = 0;
	s->no_memory = false;
	for (int i = 0; i < s->n; i++)
		forget(s, i);
}

void tw_postgres_drop(struct tw_stmt *stmt)
{
	tw_postgres_reset(stmt);
	tw_mem_free(of(stmt)->sql);
	tw_mem_free(stmt);
}

static bool is_utf8(const char *text, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = tw_utf8_len(text + i, len - i);
		if (n == 0)
			return false;
	}
	return true;
}

/* PostgreSQL refuses invalid UTF-8, but device names and the like must not be refused. */
static void own_text(struct statement *s, int i, const char *text)
{
	const size_t len = strlen(text);
	const bool clean = is_utf8(text, len);
	const size_t cap = (clean ? len : 3 * len) + 1;
	char *copy = tw_mem_alloc(cap, 1);

	s->owned[i] = copy;
	if (!copy)
		s->no_memory = true;
	else if (clean)
		memcpy(copy, text, cap);
	else
		(void)tw_utf8_clean(copy, cap, (struct tw_str){text, len});
}

bool tw_postgres_oom(const struct tw_stmt *stmt)
{
	return ((const struct statement *)stmt)->no_memory;
}

static bool has_parameter(const struct statement *s, int at)
{
	return at >= 1 && at <= s->n;
}

void tw_postgres_bind_text(struct tw_stmt *stmt, int at, const char *text)
{
	struct statement *s = of(stmt);

	if (!has_parameter(s, at))
		return;
	forget(s, at - 1);
	own_text(s, at - 1, text);
	s->values[at - 1] = s->owned[at - 1];
	s->types[at - 1] = s->texts[at - 1];
}

void tw_postgres_bind_int(struct tw_stmt *stmt, int at, int64_t v)
{
	struct statement *s = of(stmt);

	if (!has_parameter(s, at))
		return;
	forget(s, at - 1);
	s->ints[at - 1] = (int64_t)htobe64((uint64_t)v);
	s->values[at - 1] = (const char *)&s->ints[at - 1];
	s->types[at - 1] = INT8;
	s->lengths[at - 1] = sizeof v;
	s->formats[at - 1] = 1;
}

void tw_postgres_bind_bytes(struct tw_stmt *stmt, int at, struct tw_str bytes, bool stays)
{
	struct statement *s = of(stmt);

	if (!has_parameter(s, at))
		return;
	forget(s, at - 1);
	if (!stays && bytes.len) {
		s->owned[at - 1] = tw_mem_alloc(bytes.len, 1);
		if (s->owned[at - 1])
			memcpy(s->owned[at - 1], bytes.ptr, bytes.len);
		else
			s->no_memory = true;
	}
	s->values[at - 1] = !bytes.len ? "" : stays ? bytes.ptr : s->owned[at - 1];
	s->types[at - 1] = BYTEA;
	s->lengths[at - 1] = (int)bytes.len;
	s->formats[at - 1] = 1;
}

/* --- arrays, in their binary form: dimensions, flags, type, count, lower bound, values --- */

static void put_u32(char *at, uint32_t v)
{
	v = htobe32(v);
	memcpy(at, &v, sizeof v);
}

/* Space for `bytes` more bytes at the end of the array; NULL: no memory. */
static char *reserve_bytes(struct statement *s, int i, size_t bytes)
{
	const size_t len = (size_t)s->lengths[i];

	if (bytes > ARRAY_MOST - len)
		return NULL;
	if (len + bytes > s->space[i]) {
		const size_t space = 2 * (len + bytes);
		char *more = tw_mem_alloc(space, 1);

		if (!more)
			return NULL;
		if (len)
			memcpy(more, s->owned[i], len);
		tw_mem_free(s->owned[i]);
		s->owned[i] = more;
		s->values[i] = more;
		s->space[i] = space;
	}
	s->lengths[i] = (int)(len + bytes);
	return s->owned[i] + len;
}

static bool begin_array(struct statement *s, int i, char type)
{
	char *head = reserve_bytes(s, i, ARRAY_HEAD);

	if (!head)
		return false;
	s->types[i] = type == 'i' ? INT8_ARRAY : type == 't' ? TEXT_ARRAY : BYTEA_ARRAY;
	s->formats[i] = 1;
	put_u32(head, 1);
	put_u32(head + 4, 0);
	put_u32(head + 8, type == 'i' ? INT8 : type == 't' ? TEXT : BYTEA);
	put_u32(head + ARRAY_COUNT_AT, 0);
	put_u32(head + 16, 1);
	return true;
}

static bool add_value(struct statement *s, int i, struct tw_str bytes)
{
	char *at = reserve_bytes(s, i, 4 + bytes.len);
	uint32_t n;

	if (!at)
		return false;
	put_u32(at, (uint32_t)bytes.len);
	if (bytes.len)
		memcpy(at + 4, bytes.ptr, bytes.len);
	memcpy(&n, s->owned[i] + ARRAY_COUNT_AT, sizeof n);
	put_u32(s->owned[i] + ARRAY_COUNT_AT, be32toh(n) + 1);
	return true;
}

static bool add_cleaned(struct statement *s, int i, struct tw_str text)
{
	const size_t cap = 3 * text.len + 1;
	char *copy = tw_mem_alloc(cap, 1);
	bool added = copy != NULL;

	if (added)
		added = add_value(s, i, (struct tw_str){copy, tw_utf8_clean(copy, cap, text)});
	tw_mem_free(copy);
	return added;
}

void tw_postgres_append(struct tw_stmt *stmt, int at, const struct tw_db_value *v)
{
	struct statement *s = of(stmt);
	const uint64_t number = htobe64((uint64_t)v->number);
	const int i = at - 1;
	bool added;

	if (!has_parameter(s, at))
		return;
	added = s->lengths[i] || begin_array(s, i, v->type);
	if (added && v->type == 'i')
		added = add_value(s, i, (struct tw_str){(const char *)&number, sizeof number});
	else if (added && v->type == 't' && !is_utf8(v->bytes.ptr, v->bytes.len))
		added = add_cleaned(s, i, v->bytes);
	else if (added)
		added = add_value(s, i, v->bytes);
	if (!added)
		s->no_memory = true;
}

/* --- rows --- */

static bool send(struct statement *s)
{
	struct tw_postgres *p = (struct tw_postgres *)s->stmt.db;
	const struct tw_postgres_values v = {s->n, s->types, s->values, s->lengths, s->formats};

	s->rows = tw_postgres_run(p, s->sql, &v);
	s->row = -1;
	return s->rows != NULL;
}

enum tw_step tw_postgres_step(struct tw_stmt *stmt)
{
	struct statement *s = of(stmt);

	if (s->no_memory || (!s->rows && !send(s)))
		return TW_STEP_FAILED;
	if (s->row + 1 >= PQntuples(s->rows))
		return TW_STEP_END;
	s->row++;
	return TW_STEP_ROW;
}

static int64_t big_endian(const char *bytes, int n)
{
	uint64_t v = n && (signed char)bytes[0] < 0 ? UINT64_MAX : 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | (unsigned char)bytes[i];
	return (int64_t)v;
}

static unsigned digit(const char *bytes)
{
	return (unsigned)(unsigned char)bytes[0] << 8 | (unsigned char)bytes[1];
}

/* The type of a sum of int8: base-10000 digits, the first with the weight given by the second
 * number. Clamped; digits after the point are dropped. */
static int64_t numeric(const char *bytes, int len)
{
	const int n = len >= 8 ? (int)digit(bytes) : 0;
	const int weight = n ? (int16_t)digit(bytes + 2) : -1;
	const bool negative = n && digit(bytes + 4) == 0x4000;
	int64_t v = 0;

	for (int i = 0; i <= weight; i++) {
		const int64_t d = i < n && 8 + 2 * i + 1 < len ? digit(bytes + (8 + 2 * i)) : 0;

		if (v > (INT64_MAX - d) / 10000)
			return negative ? INT64_MIN : INT64_MAX;
		v = v * 10000 + d;
	}
	return negative ? -v : v;
}

static bool is_null(const struct statement *s, int col)
{
	return !s->rows || s->row < 0 || PQgetisnull(s->rows, s->row, col);
}

int64_t tw_postgres_int(struct tw_stmt *stmt, int col)
{
	const struct statement *s = of(stmt);
	const char *bytes;
	int64_t v = 0;

	if (is_null(s, col))
		return 0;
	bytes = PQgetvalue(s->rows, s->row, col);
	switch (PQftype(s->rows, col)) {
	case BOOL:
		return bytes[0] != 0;
	case INT2:
	case INT4:
	case INT8:
		return big_endian(bytes, PQgetlength(s->rows, s->row, col));
	case NUMERIC:
		return numeric(bytes, PQgetlength(s->rows, s->row, col));
	default:
		(void)tw_str_i64(tw_str_of(bytes), &v);
		return v;
	}
}

static bool is_number(Oid type)
{
	return type == BOOL || type == INT2 || type == INT4 || type == INT8 || type == NUMERIC;
}

const char *tw_postgres_text(struct tw_stmt *stmt, int col)
{
	struct statement *s = of(stmt);

	if (is_null(s, col))
		return NULL;
	if (!is_number(PQftype(s->rows, col)))
		return PQgetvalue(s->rows, s->row, col);
	(void)snprintf(s->number, sizeof s->number, "%lld", (long long)tw_postgres_int(stmt, col));
	return s->number;
}

struct tw_str tw_postgres_bytes(struct tw_stmt *stmt, int col)
{
	const struct statement *s = of(stmt);

	if (is_null(s, col))
		return (struct tw_str){"", 0};
	return (struct tw_str){
	        PQgetvalue(s->rows, s->row, col), (size_t)PQgetlength(s->rows, s->row, col)};
}
