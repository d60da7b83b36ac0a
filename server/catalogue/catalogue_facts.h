/*
 * catalogue_facts.h - inspects a catalogue read-only: no migration, and no lock that affects a
 * server.
 */
#ifndef TW_CATALOGUE_FACTS_H
#define TW_CATALOGUE_FACTS_H

#include <stdint.h>

#include "decoder/base/err.h"

struct tw_catalogue_facts {
	int schema, known_schema; /* of the file; of this program.  The rest is 0 unless they are
	                           * equal */
	int64_t newest_ms;        /* of traces and keys, Unix ms */
	int64_t oldest_job_ms;    /* queued since, 0: none */
	uint64_t recent, recent_failed; /* traces of the last day that ended, and that failed */
	char recent_why[200];           /* the most frequent error */
	uint64_t unnamed_builds;        /* with traces but without any mapping */
	char unnamed_build[128];        /* one of them, with the most traces */
	uint64_t quarantined;
};
/* TW_CORRUPT if it is not a database. */
enum tw_status tw_catalogue_read_facts(const char *path, int64_t now_ms,
        struct tw_catalogue_facts *ret, struct tw_err *err) TW_MUST_USE;

#endif
