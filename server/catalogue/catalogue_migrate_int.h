/* catalogue_migrate_int.h - shared by catalogue_migrate.c and catalogue_migrate_mark.c. */
#ifndef TW_CATALOGUE_MIGRATE_INT_H
#define TW_CATALOGUE_MIGRATE_INT_H

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_migrate.h"

/* A reader of each catalogue: a snapshot of the source; of the target too with `still`, otherwise
 * its current state while it is written. */
struct tw_cat_sides {
	struct tw_db *from, *to;
};
enum tw_status tw_cat_sides_open(struct tw_migrate_rows *m, bool still, struct tw_cat_sides *ret,
        struct tw_err *err) TW_MUST_USE;
void tw_cat_sides_close(struct tw_migrate_rows *m, struct tw_cat_sides *s);

/* Copies the sequences of audit entries and deliveries: no number is used twice, even if the
 * highest was deleted. */
enum tw_status tw_cat_bring_counters(
        struct tw_migrate_rows *m, const struct tw_cat_sides *s, struct tw_err *err) TW_MUST_USE;
/* TW_CORRUPT if the target would use a number twice. */
enum tw_status tw_cat_compare_counters(
        struct tw_migrate_rows *m, const struct tw_cat_sides *s, struct tw_err *err) TW_MUST_USE;

#endif
