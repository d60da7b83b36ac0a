/*
 * app.h - the parts of a running server, handed to every route.
 */
#ifndef TW_APP_H
#define TW_APP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "config.h"

struct tw_app {
	const struct tw_config *config;
	struct tw_catalogue *catalogue; /* catalogue.h */
	struct tw_blobs *blobs;         /* blob.h */
	struct tw_jobs *jobs;           /* jobs.h */
	struct tw_names_job *names;     /* jobs_names.h */
	struct tw_symbols *symbols;     /* symbols.h: open mappings by build */
	struct tw_metrics *metrics;     /* metrics.h */
	/* Held for reading from a blob's commit until its row is written, for writing while blobs
	 * without a row are deleted: equal content has one file. */
	pthread_rwlock_t blob_use;
	uint8_t ticket_key[32]; /* ticket.h */
	_Atomic bool stopping;  /* readiness is red: the server is being stopped */
};

#endif
