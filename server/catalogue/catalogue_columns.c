/*
 * catalogue_columns.c - checks that the tables of an existing catalogue are those of this program.
 *
 * Before the first release the initial schema changes without a new number, so the number alone
 * does not show whether this program's statements match the tables.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/hash.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_tables.h"

_Static_assert(TW_COLUMNS_MAX <= 64, "a bit per column");

static enum tw_status differs(
        const char *how, const char *column, const char *table, struct tw_err *err)
{
	return tw_fail(err, TW_UNSUPPORTED,
	        "the catalogue %s column %.40s in table %.40s: another development version wrote "
	        "it; use that version, or start with an empty data folder and catalogue",
	        how, column, table);
}

static unsigned table_named(const char *name)
{
	unsigned i = 0;

	while (i < tw_tables_all_n && strcmp(tw_tables[i].name, name) != 0)
		i++;
	return i;
}

static unsigned column_named(const struct tw_table *t, const char *name)
{
	unsigned i = 0;

	while (i < t->n && strcmp(t->columns[i].name, name) != 0)
		i++;
	return i;
}

/* Sets the bit of each column that exists.  Tables that are not the program's are ignored. */
static enum tw_status read_columns(struct tw_db *db, uint64_t *found, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err,
	        TW_EITHER("SELECT sqlite_master.name, pragma_table_info.name FROM sqlite_master,"
	                  " pragma_table_info(sqlite_master.name) WHERE sqlite_master.type='table'",
	                "SELECT relname, attname FROM pg_class JOIN pg_attribute ON"
	                " attrelid=pg_class.oid WHERE pg_table_is_visible(pg_class.oid) AND"
	                " relkind IN ('r','p') AND attnum>0 AND NOT attisdropped AND"
	                " attgenerated=''"),
	        "");

	while (st == TW_OK && tw_cat_row(&q)) {
		const char *table = tw_cat_str(&q, 0), *column = tw_cat_str(&q, 1);
		const unsigned i = table_named(table);
		const unsigned k = i < tw_tables_all_n ? column_named(&tw_tables[i], column) : 0;

		if (i == tw_tables_all_n)
			continue;
		if (k == tw_tables[i].n)
			st = differs("has an unknown", column, table, err);
		else
			found[i] |= UINT64_C(1) << k;
	}
	return tw_cat_close_after(&q, st, err);
}

void tw_cat_columns_sum(char ret[TW_COLUMNS_SUM_BYTES])
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < tw_tables_all_n; i++) {
		sum = tw_hash_str(tw_str_of(tw_tables[i].name), sum);
		for (unsigned k = 0; k < tw_tables[i].n; k++)
			sum = tw_hash_str(tw_str_of(tw_tables[i].columns[k].name), sum);
	}
	(void)snprintf(ret, TW_COLUMNS_SUM_BYTES, "%016" PRIx64, sum);
}

enum tw_status tw_cat_check_columns(struct tw_db *db, struct tw_err *err)
{
	uint64_t *found = tw_mem_zalloc(tw_tables_all_n, sizeof *found);
	enum tw_status st = found ? read_columns(db, found, err) : tw_oom(err);

	for (unsigned i = 0; st == TW_OK && i < tw_tables_all_n; i++)
		for (unsigned k = 0; st == TW_OK && k < tw_tables[i].n; k++)
			if (!(found[i] >> k & 1))
				st = differs("lacks", tw_tables[i].columns[k].name,
				        tw_tables[i].name, err);
	tw_mem_free(found);
	return st;
}
