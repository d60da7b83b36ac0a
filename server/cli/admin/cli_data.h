/*
 * cli_data.h - a server's data folder, opened by a subcommand beside a running server or without.
 */
#ifndef TW_CLI_DATA_H
#define TW_CLI_DATA_H

#include "server/catalogue/catalogue.h"
#include "server/storage/blob.h"

/* TW_NOT_FOUND, with the nearest data folder, when there is no catalogue in it: nothing is made.
 * Both are the caller's to close, also after a failure. */
enum tw_status tw_cli_data_open(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err) TW_MUST_USE;

/* The catalogue alone: its files may be in a store whose key is not at hand. */
enum tw_status tw_cli_data_look(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err) TW_MUST_USE;
/* The same, of a folder that is made when it is not there. */
enum tw_status tw_cli_data_make(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err) TW_MUST_USE;

struct tw_cli_rebuild {
	const char *data;
	const char *config, *blobs, *catalog; /* settings of serve, NULL: as the folder says */
};
struct tw_cli_rebuilt {
	struct tw_catalogue *catalogue; /* empty */
	struct tw_blobs *blobs;
	char made[1500], place[1500]; /* a new file and its later name; "" of another catalogue */
};
/* A folder or store without a catalogue, or with an empty one; close is owed, also on failure. */
enum tw_status tw_cli_rebuild_open(const struct tw_cli_rebuild *of, struct tw_cli_rebuilt *ret,
        struct tw_err *err) TW_MUST_USE;
/* Puts a new catalogue in its place if st is TW_OK; gives st or the reason why not. */
enum tw_status tw_cli_rebuild_close(
        struct tw_cli_rebuilt *r, enum tw_status st, struct tw_err *err) TW_MUST_USE;

/* Its uploads and trace files, wherever they are kept.  Opened also when it fails: tw_blobs_close
 * is owed. */
enum tw_status tw_cli_data_files(const char *data, unsigned min_free_percent, struct tw_blobs **ret,
        struct tw_err *err) TW_MUST_USE;

/* TW_OK for a folder.  A store that is away would look as if all files were missing. */
enum tw_status tw_cli_data_ask(struct tw_blobs *b, struct tw_err *err) TW_MUST_USE;

#endif
