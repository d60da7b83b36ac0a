/*
 * cli_data.h - opens a server's data folder for a subcommand, with or without a running server.
 */
#ifndef TW_CLI_DATA_H
#define TW_CLI_DATA_H

#include "decoder/base/err.h"
#include "server/storage/blob.h"

struct tw_catalogue;

/* TW_NOT_FOUND, with the nearest data folder, if it has no catalogue; nothing is created.  The
 * caller closes both, also after a failure. */
enum tw_status tw_cli_data_open(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err) TW_MUST_USE;

/* Only the catalogue: its files may be in object storage for which no credentials are available. */
enum tw_status tw_cli_data_open_catalogue(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err) TW_MUST_USE;
/* The same, but creates a missing folder. */
enum tw_status tw_cli_data_make(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err) TW_MUST_USE;

/* Refuses a missing folder whose name is probably misspelt: one letter differs from a data folder
 * beside it.  Names of equal beginning, as data1 and data2, are not refused. */
enum tw_status tw_cli_data_check_new(const char *data, struct tw_err *err) TW_MUST_USE;

struct tw_cli_rebuild {
	const char *data;
	/* settings of serve; NULL: from the folder */
	const char *config, *catalog, *blobs, *endpoint, *region, *ca_file, *credentials_file;
	bool virtual_host;
};
struct tw_cli_rebuilt {
	struct tw_catalogue *catalogue; /* empty */
	struct tw_blobs *blobs;
	char made[1500],
	        path[1500]; /* temporary and final name of a new file; "" for another catalogue */
};
/* Opens a folder or store without a catalogue, or with an empty one.  The caller closes it with
 * tw_cli_rebuild_close, also on failure. */
enum tw_status tw_cli_rebuild_open(const struct tw_cli_rebuild *of, struct tw_cli_rebuilt *ret,
        struct tw_err *err) TW_MUST_USE;
/* Renames a new catalogue to its final name if st is TW_OK; returns st or the error. */
enum tw_status tw_cli_rebuild_close(
        struct tw_cli_rebuilt *r, enum tw_status st, struct tw_err *err) TW_MUST_USE;

/* Its uploads and trace files, in a folder or object storage.  The caller frees with
 * tw_blobs_close, also on failure. */
enum tw_status tw_cli_data_files(const char *data, unsigned min_free_percent, struct tw_blobs **ret,
        struct tw_err *err) TW_MUST_USE;

/* Whether both paths refer to the same existing folder. */
bool tw_cli_same_folder(const char *one, const char *other);

/* Checks that the store is reachable; TW_OK for a folder.  With an unreachable store all files
 * would seem to be missing. */
enum tw_status tw_cli_data_probe(struct tw_blobs *b, struct tw_err *err) TW_MUST_USE;

#endif
