/*
 * health.h - what /readyz reports: checks whose results are held in memory.
 *
 * One thread per resource (catalogue, data folder, store) probes it twice a second, with its
 * own time limit, so that a resource that hangs delays neither the others nor the response.  A
 * result expires after a few seconds, so a probe that does not return fails its check.  Write
 * transactions, storage requests and the decode queue also report their results, independent of
 * the probes.  Changes are logged (event=ready_check).
 * Thread: start and stop by the owner; checks by any, without waiting.
 */
#ifndef TW_HEALTH_H
#define TW_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/base/config.h"

struct tw_blobs;
struct tw_catalogue;
struct tw_health;
struct tw_jobs;
struct tw_metrics;

enum { TW_HEALTH_CHECKS = 7 };

struct tw_health_check {
	const char *name;
	bool ok;
	char message[200]; /* public: contains no host names; "" if ok */
	int64_t since_ms;  /* of its current state; the start of the server if it never changed */
};

struct tw_health_parts {
	const struct tw_config *config;
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_jobs *jobs;
	struct tw_metrics *metrics;
};

enum tw_status tw_health_start(const struct tw_health_parts *parts, struct tw_health **ret,
        struct tw_err *err) TW_MUST_USE;
/* /readyz returns 503 from now on: the server is about to stop. */
void tw_health_drain(struct tw_health *h);
struct tw_health *tw_health_stop(struct tw_health *h); /* accepts NULL; returns NULL */

/* Fills ret with all checks.  Returns whether uploads can be accepted, or with to_read, whether
 * read requests can be served. */
bool tw_health_checks(
        struct tw_health *h, bool to_read, struct tw_health_check ret[TW_HEALTH_CHECKS]);
/* The engine of a check ("sqlite", "s3", ...), or NULL. */
const char *tw_health_engine(const struct tw_health *h, const char *check);

#endif
