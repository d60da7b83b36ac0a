/*
 * project_archive.h - a project as one file, and back (`tracewell export --project`, `import`).
 *
 * A tar, in zstd when its name ends in .zst.  In this order:
 *   tracewell-project.json   {"tracewell_project": 1, "name": ..., "catalogue_sha256": ...}
 *   catalogue.db             what catalogue_move.h moves, as a catalogue of its own
 *   blobs/<sha256>           uploads and mappings; what several share may stand there again
 *   decoded/<id>.db          of traces whose upload is not kept any more
 *   end                      empty: without it the archive was cut
 * Thread: the caller's.
 */
#ifndef TW_PROJECT_ARCHIVE_H
#define TW_PROJECT_ARCHIVE_H

#include "decoder/base/err.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_move.h"
#include "server/storage/blob.h"

/* Whoever watches: so many files and bytes of their contents until now.  step NULL: nobody. */
struct tw_project_watch {
	void (*step)(void *arg, uint64_t files, uint64_t bytes);
	void *arg;
};

/* Works beside a running server.  `path` is replaced when all of it is written; on failure it is
 * left as it was.  "-" is standard output, in zstd; what failed there lacks its end.  *ret_bytes:
 * of the archive. */
enum tw_status tw_project_export(struct tw_catalogue *c, struct tw_blobs *b, const char *name,
        const char *path, const struct tw_project_watch *watch, struct tw_project_sums *ret,
        uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

/* `name` NULL: as the archive says.  Files are stored first and rows come in one transaction, so
 * nothing is half there; a second time changes nothing.  TW_CORRUPT when the archive is damaged,
 * cut or no project's; traces are decoded again by the server. */
enum tw_status tw_project_import(struct tw_catalogue *c, struct tw_blobs *b, const char *path,
        const char *name, const struct tw_project_watch *watch, struct tw_project_sums *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
