/*
 * storage.h - the settings of where uploads and trace files are kept; what each is says config.def.
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
	bool adopt;           /* a prefix that is another's */
	uint64_t cache_bytes; /* of what is kept elsewhere; 0: nothing is cached */
};

#endif
