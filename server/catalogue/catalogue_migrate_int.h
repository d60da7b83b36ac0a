/*
 * catalogue_migrate_int.h - what catalogue_migrate.c and catalogue_migrate_mark.c share.
 */
#ifndef TW_CATALOGUE_MIGRATE_INT_H
#define TW_CATALOGUE_MIGRATE_INT_H

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_migrate.h"

/* A reader of each catalogue: of the source as it stands at one moment; of the target too when
 * `still`, else as it is while it is written. */
struct tw_cat_sides {
	struct tw_db *from, *to;
};
enum tw_status tw_cat_sides_open(struct tw_migrate_rows *m, bool still, struct tw_cat_sides *ret,
        struct tw_err *err) TW_MUST_USE;
void tw_cat_sides_close(struct tw_migrate_rows *m, struct tw_cat_sides *s);

/* The numbers that entries of the record and deliveries get, in a row: none is given twice, also
 * when the highest was deleted. */
enum tw_status tw_cat_bring_counters(
        struct tw_migrate_rows *m, const struct tw_cat_sides *s, struct tw_err *err) TW_MUST_USE;
/* TW_CORRUPT when the target would give one twice. */
enum tw_status tw_cat_compare_counters(
        struct tw_migrate_rows *m, const struct tw_cat_sides *s, struct tw_err *err) TW_MUST_USE;

#endif
