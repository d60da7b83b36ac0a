/*
 * project_archive.h - a project as one file, and back (`tracewell export --project`, `import`).
 *
 * A tar, compressed with zstd if its name ends in .zst.  In this order:
 *   tracewell-project.json   {"tracewell_project": 1, "name": ..., "catalogue_sha256": ...}
 *   catalogue.db             the rows copied by catalogue_move.h, as a separate catalogue
 *   blobs/<sha256>           uploads and mappings; shared ones may occur repeatedly
 *   decoded/<id>.db          of traces whose upload was deleted
 *   end                      empty: without it the archive is truncated
 * Thread: the caller's.
 */
#ifndef TW_PROJECT_ARCHIVE_H
#define TW_PROJECT_ARCHIVE_H

#include "decoder/base/err.h"
#include "server/catalogue/catalogue_move.h"
#include "server/storage/blob.h"

struct tw_catalogue;

/* Progress: numbers of files and of bytes of their contents so far.  step may be NULL. */
struct tw_project_watch {
	void (*step)(void *arg, uint64_t files, uint64_t bytes);
	void *arg;
};

/* Works with a running server.  `path` is replaced after everything was written; on failure it is
 * unchanged.  "-" is standard output, with zstd; after a failure its end is missing.  *ret_bytes:
 * size of the archive. */
enum tw_status tw_project_export(struct tw_catalogue *c, struct tw_blobs *b, const char *name,
        const char *path, const struct tw_project_watch *watch, struct tw_project_sums *ret,
        uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

/* `name` NULL: from the archive.  Files are stored first and all rows are added in one transaction,
 * so nothing is imported partially; a repeated import changes nothing.  TW_CORRUPT if the archive
 * is damaged, truncated or not of a project; the server decodes the traces again. */
enum tw_status tw_project_import(struct tw_catalogue *c, struct tw_blobs *b, const char *path,
        const char *name, const struct tw_project_watch *watch, struct tw_project_sums *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
