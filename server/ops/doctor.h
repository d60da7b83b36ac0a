/*
 * doctor.h - what is wrong with a set-up, in sentences, for `tracewell doctor`.
 *
 * Looks only: nothing is made, migrated or locked for longer than a look.  Each
 * file asks about one thing: the machine, a data folder, what its catalogue
 * says, a server seen from outside.
 * Thread: one.
 */
#ifndef TW_DOCTOR_H
#define TW_DOCTOR_H

#include <stdbool.h>

#include "decoder/base/err.h"

enum tw_doctor_level { TW_DOCTOR_GOOD, TW_DOCTOR_NOTE, TW_DOCTOR_WRONG };
const char *tw_doctor_word(enum tw_doctor_level l);

struct tw_oidc_config;
struct tw_smtp_settings;
struct tw_storage;

struct tw_doctor {
	const char *data;                    /* folder, NULL: not asked */
	const char *listen;                  /* address that a server shall get, NULL: not asked */
	const char *server, *key;            /* URL and key, NULL: not asked */
	const char *tls_cert, *tls_key;      /* files, NULL: not asked */
	const struct tw_oidc_config *oidc;   /* of the provider; its issuer "": not asked */
	const struct tw_storage *storage;    /* of uploads and traces; its blobs "": as data says */
	const char *repositories;            /* folder of clones, NULL: not asked */
	const struct tw_smtp_settings *smtp; /* its url "": not asked */
	const char *public_url;              /* NULL: not asked */
	unsigned min_free_percent;
	void (*tell)(void *arg, enum tw_doctor_level level, const char *what, const char *text);
	void *arg;
	unsigned wrong, notes; /* told so far */
};

/* `what` is a word for programs, the rest a sentence that says what to do. */
void tw_doctor_report(struct tw_doctor *d, enum tw_doctor_level level, const char *what,
        const char *fmt, ...) __attribute__((format(printf, 4, 5)));

void tw_doctor_machine(struct tw_doctor *d);      /* limits, kernel, clock, port */
void tw_doctor_tls(struct tw_doctor *d);          /* certificate and key */
void tw_doctor_data(struct tw_doctor *d);         /* folder: owner, room, files */
void tw_doctor_catalogue(struct tw_doctor *d);    /* what stands in it */
void tw_doctor_storage(struct tw_doctor *d);      /* elsewhere: reached, allowed */
void tw_doctor_provider(struct tw_doctor *d);     /* OpenID: reached, is who it is, has keys */
void tw_doctor_repositories(struct tw_doctor *d); /* clones: there, readable, fresh */
void tw_doctor_mail(struct tw_doctor *d);         /* mail server: reached, lets it in */
void tw_doctor_public(struct tw_doctor *d);       /* the URL of links leads to a tracewell */
void tw_doctor_server(struct tw_doctor *d);       /* reached, ready, key, clock */

#endif
