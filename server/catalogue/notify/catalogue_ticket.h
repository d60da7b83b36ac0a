/*
 * catalogue_ticket.h - issues that were created, or are to be created, in a project's issue
 * tracker.
 *
 * A row is written before the request to the tracker, and the text contains its identifier,
 * so a crash between the two does not create a second issue.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_TICKET_H
#define TW_CATALOGUE_TICKET_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/fleet/catalogue_regression.h"

struct tw_catalogue;

struct tw_db;

enum tw_ticket_kind { TW_TICKET_REGRESSION, TW_TICKET_ANR }; /* numbers are stored */
enum tw_ticket_state {       /* tw_ticket_state_names; numbers are stored */
	TW_TICKET_WAITING,   /* to be created */
	TW_TICKET_OPEN,      /* its state there is read from time to time */
	TW_TICKET_CLOSED,    /* there */
	TW_TICKET_REOPENING, /* to be reopened: its regression returned */
	TW_TICKET_FAILED,    /* refused by the tracker, or deleted there; POST retries */
	TW_TICKET_STATES
};
extern const char *const tw_ticket_state_names[TW_TICKET_STATES + 1]; /* ended by NULL */

enum { TW_TICKET_TAG_BYTES = 43, TW_TICKET_KEEP_DAYS = 400 };
/* "tracewell-" and 32 hexadecimal digits of a hash of project and subject. */
void tw_ticket_tag(const char *project_id, enum tw_ticket_kind kind, const char *subject_id,
        char ret[TW_TICKET_TAG_BYTES]);
/* Of a regression and all from which it returned. */
enum tw_status tw_catalogue_ticket_regression_tag(struct tw_catalogue *c, const char *project_id,
        const struct tw_regression *of, struct tw_arena *a, char ret[TW_TICKET_TAG_BYTES],
        struct tw_err *err) TW_MUST_USE;

struct tw_ticket {
	const char *project_id, *tag, *subject_id, *tracker, *title, *body, *assignee, *author;
	const char *key, *url, *error;
	enum tw_ticket_kind kind;
	enum tw_ticket_state state;
	int64_t attempts, due_ms, created_ms, changed_ms;
};
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_ticket_get(struct tw_catalogue *c, const char *project_id,
        const char *tag, struct tw_arena *a, struct tw_ticket *ret, struct tw_err *err) TW_MUST_USE;
/* Queues its creation, unless there is one that did not fail. */
enum tw_status tw_catalogue_ticket_add(
        struct tw_catalogue *c, const struct tw_ticket *t, struct tw_err *err) TW_MUST_USE;
enum { TW_TICKETS_DUE = 16 };
/* Tickets with a due request: those to be created or reopened first. */
enum tw_status tw_catalogue_tickets_due(struct tw_catalogue *c, int64_t now_ms, struct tw_arena *a,
        struct tw_ticket **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Stores tracker, assignee, key, url, error, state, attempts and due_ms, if the stored state is
 * still `from`. */
enum tw_status tw_catalogue_ticket_change(struct tw_catalogue *c, const struct tw_ticket *t,
        enum tw_ticket_state from, struct tw_err *err) TW_MUST_USE;
/* No request of the project before that time. */
enum tw_status tw_catalogue_tickets_hold(struct tw_catalogue *c, const char *project_id,
        int64_t until_ms, struct tw_err *err) TW_MUST_USE;
/* Deletes tickets that ended long ago. */
enum tw_status tw_catalogue_tickets_expire(
        struct tw_catalogue *c, int64_t now_ms, struct tw_err *err) TW_MUST_USE;

/* Call in the transaction that reopens a group of ANRs: schedules reopening its ticket.  by_report:
 * a report showed that it returned, so an open ticket may have been closed in the tracker. */
enum tw_status tw_cat_ticket_group_returned(struct tw_db *db, const char *project_id,
        const char *key, bool by_report, struct tw_err *err) TW_MUST_USE;
/* In the transaction that opens a regression again (r->status): its ticket is to be reopened. */
enum tw_status tw_cat_ticket_returned(struct tw_db *db, const char *project_id,
        const struct tw_regression *r, struct tw_err *err) TW_MUST_USE;

#endif
