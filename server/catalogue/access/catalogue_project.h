/*
 * catalogue_project.h - projects and their settings.  Thread: any.
 */
#ifndef TW_CATALOGUE_PROJECT_H
#define TW_CATALOGUE_PROJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_catalogue;

/* The project of that name, created if missing. */
enum tw_status tw_catalogue_project(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
struct tw_db;
/* Its id in a transaction; "": none has that name. */
enum tw_status tw_cat_project_named(
        struct tw_db *db, const char *name, char ret_id[TW_ID_BYTES], struct tw_err *err);
/* The project of that name; TW_NOT_FOUND. */
enum tw_status tw_catalogue_project_named(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
struct tw_project_row {
	const char *id, *name;
	int64_t created_ms;
};
extern const struct tw_fields tw_project_fields;
/* All of them. */
enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Those after that id in the order of ids, in which the person has a role; user_id "": any. */
enum tw_status tw_catalogue_projects_after(struct tw_catalogue *c, const char *user_id,
        const char *after, uint32_t limit, struct tw_arena *a, struct tw_project_row **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* One of them.  TW_NOT_FOUND. */
enum tw_status tw_catalogue_project_get(struct tw_catalogue *c, const char *user_id,
        const char *project_id, struct tw_arena *a, struct tw_project_row *ret,
        struct tw_err *err) TW_MUST_USE;
/* Whether the catalogue in that file, opened read-only, has projects and none of c's. */
enum tw_status tw_catalogue_shares_no_project(
        struct tw_catalogue *c, const char *path, bool *ret, struct tw_err *err) TW_MUST_USE;

/* --- the end of a project --- */

/* Deletes its keys with their sessions, roles and webhooks.  The functions above no longer find the
 * project, and its name may be used again; tw_delete_project_part deletes its data.  TW_NOT_FOUND.
 */
enum tw_status tw_catalogue_project_delete(
        struct tw_catalogue *c, const char *name, struct tw_err *err) TW_MUST_USE;
/* False also for a deleted project. */
enum tw_status tw_catalogue_project_exists(
        struct tw_catalogue *c, const char *project_id, bool *ret, struct tw_err *err) TW_MUST_USE;
/* The next deleted project after that id, in the order of ids; "": none. */
enum tw_status tw_catalogue_project_deleted(struct tw_catalogue *c, const char *after,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
enum tw_project_part { TW_PROJECT_TRACES, TW_PROJECT_BUILDS };
/* Ids of its first traces or builds. */
enum tw_status tw_catalogue_project_ids(struct tw_catalogue *c, const char *project_id,
        enum tw_project_part part, uint32_t limit, struct tw_arena *a, const char ***ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Deletes a page of each of its other tables, except the audit log, which expires by age. *ret_any:
 * there was a row. */
enum tw_status tw_catalogue_project_rows_delete(struct tw_catalogue *c, const char *project_id,
        bool *ret_any, struct tw_err *err) TW_MUST_USE;
/* Deletes the row of a deleted project, unless it has traces or builds. */
enum tw_status tw_catalogue_project_forget(
        struct tw_catalogue *c, const char *project_id, struct tw_err *err) TW_MUST_USE;

#endif
