/*
 * storage.h - settings for the storage of uploads and trace files; config.def describes the
 * fields.
 */
#ifndef TW_STORAGE_H
#define TW_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

struct tw_storage {
	const char *blobs; /* "": the data folder; "s3://bucket/prefix" */
	const char *endpoint, *region, *ca_file, *credentials_file;
	bool virtual_host;
	unsigned timeout_s;
	uint64_t part_bytes;
	unsigned sweep_s;     /* between sweeps, 0: none */
	uint64_t small_bytes; /* larger files are objects; 0: all are */
	bool adopt;           /* take over a prefix of another catalogue */
	uint64_t cache_bytes; /* local cache of files in the object store; 0: none */
};

#endif
