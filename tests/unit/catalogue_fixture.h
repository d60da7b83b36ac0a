/*
 * catalogue_fixture.h - where a test's catalogue is: in a file of its folder, or, when
 * TRACEWELL_TEST_POSTGRES names a server (postgres://...), in a separate schema.
 */
#ifndef CATALOGUE_FIXTURE_H
#define CATALOGUE_FIXTURE_H

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_build.h"

enum { CATALOGUE_ADDRESS = 500 };

bool catalogue_on_postgres(void);
/* The same for the same folder. */
void catalogue_address(const char *folder, char ret[CATALOGUE_ADDRESS]);
/* A new one. */
struct tw_catalogue *catalogue_in(const char *folder);
/* The build's mapping of that kind is in use, as after its upload and compilation. */
void catalogue_set_mapping(struct tw_catalogue *c, const char *project_id,
        enum tw_mapping_kind kind, const struct tw_build_row *row, struct tw_arena *a);
/* Opens another connection, for the test's own statements; end it with tw_db_close. */
struct tw_db *catalogue_connect(const char *folder);
void catalogue_run(struct tw_db *db, const char *sql);
/* The first column of the first row. */
int64_t catalogue_number(struct tw_db *db, const char *sql);
char *catalogue_text(struct tw_db *db, const char *sql); /* free with free() */

#endif
