/*
 * catalogue_hook.h - webhooks of a project, and the outbox of their deliveries.
 *
 * An event is written to the outbox in the transaction that causes it (tw_cat_notify), once per
 * hook by the event's id; so a kill loses nothing and no false event is sent.  Rows remain as the
 * delivery log, limited per hook and in days (hook.h).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_HOOK_H
#define TW_CATALOGUE_HOOK_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"
#include "server/catalogue/notify/hook.h"

struct tw_catalogue;

struct tw_db; /* catalogue_db.h */

/* --- hooks (catalogue_hook.c) --- */

struct tw_webhook {
	const char *id, *name, *url, *author, *paused_why;
	const char *secret; /* encrypted (secret.h) for the project */
	enum tw_hook_kind kind;
	unsigned events; /* a bit each */
	int64_t created_ms, delivered_ms, failing_ms, fails, paused_ms;
	int64_t waiting; /* events waiting for delivery */
};
extern const struct tw_fields tw_hook_fields; /* its JSON lacks the events */
enum tw_status tw_catalogue_hooks(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_webhook **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_hook_get(struct tw_catalogue *c, const char *project_id, const char *id,
        struct tw_arena *a, struct tw_webhook *ret, struct tw_err *err) TW_MUST_USE;
/* TW_CONFLICT if there are TW_HOOKS_MAX. */
enum tw_status tw_catalogue_hook_add(struct tw_catalogue *c, const char *project_id,
        const struct tw_webhook *h, char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* Updates all fields set by people; a hook that is not paused, or no longer, restarts its failure
 * count. */
enum tw_status tw_catalogue_hook_change(struct tw_catalogue *c, const char *project_id,
        const struct tw_webhook *h, struct tw_err *err) TW_MUST_USE;
/* Including its pending events and log. */
enum tw_status tw_catalogue_hook_delete(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_err *err) TW_MUST_USE;

struct tw_stored_secret {
	const char *project_id, *encrypted; /* secret.h */
};
/* All secrets that are stored encrypted: of webhooks, and the tokens of issue trackers. */
enum tw_status tw_catalogue_secrets(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_stored_secret **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* --- the outbox (catalogue_outbox.c) --- */

struct tw_notice {
	enum tw_hook_event event;
	const char *id;    /* of the event, the same for all recipients */
	const char *facts; /* JSON object */
};
/* Adds the event for all hooks of the project that subscribe to it, within a transaction. */
enum tw_status tw_cat_notify(struct tw_db *db, const char *project_id, const struct tw_notice *what,
        struct tw_err *err) TW_MUST_USE;
/* The same for the addresses of the digest. */
enum tw_status tw_cat_notify_mail(struct tw_db *db, const char *project_id,
        const struct tw_notice *what, struct tw_err *err) TW_MUST_USE;
/* One event for one hook, attempted once, also when it is paused.  TW_CONFLICT while another
 * waits. */
enum tw_status tw_catalogue_hook_test(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, const char *facts, int64_t *ret_id, struct tw_err *err) TW_MUST_USE;

/* The first project after `after` (its id) with waiting deliveries; "": none. */
enum tw_status tw_catalogue_outbox_next(struct tw_catalogue *c, const char *after,
        char ret_project[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
struct tw_due {
	int64_t id;
	const char *hook_id;
};
/* For each hook of a project with a due delivery, the one to send first: its test, or the one due
 * for the longest time.  Sorted by due time. */
enum tw_status tw_catalogue_outbox_due(struct tw_catalogue *c, const char *project_id,
        int64_t now_ms, struct tw_arena *a, struct tw_due **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

struct tw_delivery {
	int64_t id;
	const char *project_id, *project, *hook_id, *event_id, *facts;
	enum tw_hook_event event;
	int64_t created_ms, attempts;
	/* of the hook; "" for mail */
	const char *url, *secret;
	enum tw_hook_kind kind;
	int64_t fails;
};
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_outbox_get(struct tw_catalogue *c, int64_t id, struct tw_arena *a,
        struct tw_delivery *ret, struct tw_err *err) TW_MUST_USE;

struct tw_tried {                     /* result of an attempt */
	int64_t at_ms, took_ms, http; /* http 0: no response */
	const char *error;            /* message; "": delivered */
	const char *body;             /* the body sent */
	int64_t next_ms;              /* time of the next attempt */
	bool holds_all; /* postpones all of the hook's deliveries: no response, or Retry-After */
	bool gone;      /* the receiver responded 410 Gone */
	bool permanent; /* another attempt would fail the same way */
};
enum tw_outbox_state { TW_OUTBOX_WAITS, TW_OUTBOX_DELIVERED, TW_OUTBOX_GIVEN_UP };
extern const char *const tw_outbox_names[]; /* ended by NULL */
enum tw_status tw_catalogue_outbox_tried(struct tw_catalogue *c, const struct tw_delivery *of,
        const struct tw_tried *t, enum tw_outbox_state *ret, struct tw_err *err) TW_MUST_USE;
/* Gives up deliveries that are too old, and deletes the oldest log entries. */
enum tw_status tw_catalogue_outbox_expire(
        struct tw_catalogue *c, int64_t now_ms, struct tw_err *err) TW_MUST_USE;

struct tw_outbox_sums {
	int64_t waiting, oldest_ms, paused; /* events, creation time of the oldest waiting one;
	                                     * hooks */
};
enum tw_status tw_catalogue_outbox_sums(
        struct tw_catalogue *c, struct tw_outbox_sums *ret, struct tw_err *err) TW_MUST_USE;

/* --- the log (catalogue_outbox_log.c) --- */

struct tw_try {
	int64_t delivery_id, n, at_ms, took_ms, http;
	const char *error;
};
extern const struct tw_fields tw_try_fields; /* catalogue_row.h */
struct tw_logged {
	int64_t id, created_ms, due_ms, attempts;
	int64_t length;              /* of the complete body, in characters */
	const char *event_id, *body; /* up to its first TW_LOGGED_BODY characters */
	enum tw_hook_event event;
	enum tw_outbox_state state;
	const struct tw_try *log; /* the last attempts, oldest first */
	size_t n_log;
};
enum { TW_TRIES_REPORTED = 20, TW_LOGGED_BODY = 2048 };
/* Newest first; `before` 0: from the newest on. */
enum tw_status tw_catalogue_deliveries(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t before, uint32_t limit, struct tw_arena *a,
        struct tw_logged **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* One, with its complete body.  TW_NOT_FOUND. */
enum tw_status tw_catalogue_logged(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t delivery_id, struct tw_arena *a, struct tw_logged *ret,
        struct tw_err *err) TW_MUST_USE;
/* Sends it again now, under the same event id; a test once.  TW_NOT_FOUND; TW_CONFLICT if the hook
 * is paused, or a test of it waits. */
enum tw_status tw_catalogue_redeliver(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t delivery_id, struct tw_err *err) TW_MUST_USE;

#endif
