/*
 * doctor.h - finds problems of an installation, for `tracewell doctor`.
 *
 * Read-only: nothing is created, migrated or locked for longer than a read.  Each file checks one
 * thing: the machine, a data folder, its catalogue, a server from outside. Thread: one.
 */
#ifndef TW_DOCTOR_H
#define TW_DOCTOR_H

#include <stdbool.h>

#include "decoder/base/err.h"

enum tw_doctor_level { TW_DOCTOR_GOOD, TW_DOCTOR_NOTE, TW_DOCTOR_WRONG };
const char *tw_doctor_name(enum tw_doctor_level l);

struct tw_oidc_config;
struct tw_smtp_settings;
struct tw_storage;

struct tw_doctor {
	const char *data;                  /* folder, NULL: not checked */
	const char *listen;                /* intended address of a server, NULL: not checked */
	const char *server, *key;          /* URL and key, NULL: not checked */
	const char *tls_cert, *tls_key;    /* files, NULL: not checked */
	const struct tw_oidc_config *oidc; /* of the provider; not checked if its issuer is "" */
	const struct tw_storage
	        *storage;         /* of uploads and traces; if its blobs is "", as in data */
	const char *repositories; /* folder of clones, NULL: not checked */
	const struct tw_smtp_settings *smtp; /* not checked if its url is "" */
	const char *public_url;              /* NULL: not checked */
	unsigned min_free_percent;
	void (*report)(void *arg, enum tw_doctor_level level, const char *what, const char *text);
	void *arg;
	unsigned wrong, notes; /* numbers so far */
};

/* `what` is a keyword for programs, the rest a message that says what to do. */
void tw_doctor_report(struct tw_doctor *d, enum tw_doctor_level level, const char *what,
        const char *fmt, ...) __attribute__((format(printf, 4, 5)));

void tw_doctor_machine(struct tw_doctor *d);      /* limits, kernel, clock, port */
void tw_doctor_tls(struct tw_doctor *d);          /* certificate and key */
void tw_doctor_data(struct tw_doctor *d);         /* folder: owner, space, files */
void tw_doctor_catalogue(struct tw_doctor *d);    /* its content */
void tw_doctor_storage(struct tw_doctor *d);      /* object storage: reachable, permitted */
void tw_doctor_provider(struct tw_doctor *d);     /* OpenID: reachable, correct issuer, has keys */
void tw_doctor_repositories(struct tw_doctor *d); /* clones: exist, readable, up to date */
void tw_doctor_mail(struct tw_doctor *d);         /* mail server: reachable, accepts the sign-in */
void tw_doctor_public(struct tw_doctor *d);       /* the URL of links leads to a tracewell server */
void tw_doctor_server(struct tw_doctor *d);       /* reachable, ready, key, clock */

#endif
