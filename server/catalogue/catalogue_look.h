/*
 * catalogue_look.h - a catalogue looked at without changing it: no migration, no lock that a server
 * would feel.
 */
#ifndef TW_CATALOGUE_LOOK_H
#define TW_CATALOGUE_LOOK_H

#include <stdint.h>

#include "decoder/base/err.h"

struct tw_catalogue_facts {
	int schema, known_schema; /* of the file; of this program.  The rest is 0 unless equal */
	int64_t newest_ms;        /* of traces and keys, Unix ms */
	int64_t oldest_job_ms;    /* queued since, 0: nothing waits */
	uint64_t recent, recent_failed; /* traces of the last day that ended, and failed */
	char recent_why[200];           /* what most of those say */
	uint64_t unnamed_builds;        /* that traces name, without any mapping */
	char unnamed_build[128];        /* one of them, with most traces */
	uint64_t quarantined;
};
/* TW_CORRUPT when it is no database. */
enum tw_status tw_catalogue_look(const char *path, int64_t now_ms, struct tw_catalogue_facts *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
