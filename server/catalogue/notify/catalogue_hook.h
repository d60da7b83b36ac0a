/*
 * catalogue_hook.h - webhooks of a project, and the outbox from which they are told.
 *
 * What is to be told is written in the transaction of what happened (tw_cat_tell), once for each
 * hook by the event's id; so a kill loses nothing and nothing is told that did not happen.  Rows
 * stay as the log of deliveries, some of each hook for some days (hook.h).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_HOOK_H
#define TW_CATALOGUE_HOOK_H

#include "server/catalogue/catalogue.h"
#include "server/catalogue/notify/hook.h"

struct tw_db; /* catalogue_db.h */

/* --- hooks (catalogue_hook.c) --- */

struct tw_webhook {
	const char *id, *name, *url, *author, *paused_why;
	const char *secret; /* sealed (seal.h) for the project */
	enum tw_hook_kind kind;
	unsigned events; /* a bit each */
	int64_t created_ms, delivered_ms, failing_ms, fails, paused_ms;
	int64_t waiting; /* events that were not told yet */
};
enum tw_status tw_catalogue_hooks(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_webhook **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_hook_get(struct tw_catalogue *c, const char *project_id, const char *id,
        struct tw_arena *a, struct tw_webhook *ret, struct tw_err *err) TW_MUST_USE;
/* TW_CONFLICT when there are TW_HOOKS_MAX. */
enum tw_status tw_catalogue_hook_add(struct tw_catalogue *c, const char *project_id,
        const struct tw_webhook *h, char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* All that people set; who pauses it not, or no longer, has it begin anew. */
enum tw_status tw_catalogue_hook_change(struct tw_catalogue *c, const char *project_id,
        const struct tw_webhook *h, struct tw_err *err) TW_MUST_USE;
/* With what is to be told to it, and the log. */
enum tw_status tw_catalogue_hook_delete(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_err *err) TW_MUST_USE;

struct tw_seal;
/* Seals what stands there as it is (catalogue_seal.c); *ret_lost: how many the key cannot read. */
enum tw_status tw_catalogue_hooks_sealed(
        struct tw_catalogue *c, bool *ret, struct tw_err *err) TW_MUST_USE; /* is any? */
enum tw_status tw_catalogue_hooks_seal(struct tw_catalogue *c, const struct tw_seal *by,
        struct tw_arena *a, uint64_t *ret_lost, struct tw_err *err) TW_MUST_USE;

/* --- the outbox (catalogue_outbox.c) --- */

struct tw_tell {
	enum tw_hook_event event;
	const char *id;    /* of the event, the same for whoever is told of it */
	const char *facts; /* JSON object */
};
/* For all hooks of the project that want it, within a transaction. */
enum tw_status tw_cat_tell(struct tw_db *db, const char *project_id, const struct tw_tell *what,
        struct tw_err *err) TW_MUST_USE;
/* The same to the addresses of the digest. */
enum tw_status tw_cat_tell_mail(struct tw_db *db, const char *project_id,
        const struct tw_tell *what, struct tw_err *err) TW_MUST_USE;
/* One event for one hook, tried once, also when it is paused.  TW_CONFLICT while another waits. */
enum tw_status tw_catalogue_hook_test(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, const char *facts, int64_t *ret_id, struct tw_err *err) TW_MUST_USE;

/* The first project behind `after` (its id) for which anything waits; "": there is none. */
enum tw_status tw_catalogue_outbox_next(struct tw_catalogue *c, const char *after,
        char ret_project[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
struct tw_due {
	int64_t id;
	const char *hook_id;
};
/* Of each hook of a project what may go first, if anything is due: its test, or what is due for the
 * longest time.  What is due for the longest time is first among them. */
enum tw_status tw_catalogue_outbox_due(struct tw_catalogue *c, const char *project_id,
        int64_t now_ms, struct tw_arena *a, struct tw_due **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

struct tw_delivery {
	int64_t id;
	const char *project_id, *project, *hook_id, *event_id, *facts;
	enum tw_hook_event event;
	int64_t created_ms, tries;
	/* of the hook; "" of mail */
	const char *url, *secret;
	enum tw_hook_kind kind;
	int64_t fails;
};
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_outbox_get(struct tw_catalogue *c, int64_t id, struct tw_arena *a,
        struct tw_delivery *ret, struct tw_err *err) TW_MUST_USE;

struct tw_tried {                     /* what came of a try */
	int64_t at_ms, took_ms, http; /* http 0: no answer */
	const char *error;            /* in words; "": it came through */
	const char *body;             /* what was sent */
	int64_t next_ms;              /* when it is tried again */
	bool holds_all; /* nothing goes to this hook before: it does not answer, or asks for time */
	bool gone;      /* it says that it will never answer again */
	bool in_vain;   /* another try would end as this one did */
};
enum tw_outbox_state { TW_OUTBOX_WAITS, TW_OUTBOX_DELIVERED, TW_OUTBOX_GIVEN_UP };
extern const char *const tw_outbox_words[]; /* ended by NULL */
enum tw_status tw_catalogue_outbox_tried(struct tw_catalogue *c, const struct tw_delivery *of,
        const struct tw_tried *t, enum tw_outbox_state *ret, struct tw_err *err) TW_MUST_USE;
/* Gives up what nobody could be told in time, and forgets the log's oldest. */
enum tw_status tw_catalogue_outbox_expire(
        struct tw_catalogue *c, int64_t now_ms, struct tw_err *err) TW_MUST_USE;

struct tw_outbox_sums {
	int64_t waiting, oldest_ms, paused; /* events, since when the first waits; hooks */
};
enum tw_status tw_catalogue_outbox_sums(
        struct tw_catalogue *c, struct tw_outbox_sums *ret, struct tw_err *err) TW_MUST_USE;

/* --- the log (catalogue_outbox_log.c) --- */

struct tw_try {
	int64_t delivery_id, n, at_ms, took_ms, http;
	const char *error;
};
struct tw_logged {
	int64_t id, created_ms, due_ms, tries;
	int64_t length;              /* of the whole body, in characters */
	const char *event_id, *body; /* its first TW_LOGGED_BODY characters, or all */
	enum tw_hook_event event;
	enum tw_outbox_state state;
	const struct tw_try *log; /* the last ones, oldest first */
	size_t n_log;
};
enum { TW_TRIES_TOLD = 20, TW_LOGGED_BODY = 2048 };
/* Newest first; `before` 0: from the newest on. */
enum tw_status tw_catalogue_deliveries(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t before, uint32_t limit, struct tw_arena *a,
        struct tw_logged **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* One, with its whole body.  TW_NOT_FOUND. */
enum tw_status tw_catalogue_logged(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t delivery_id, struct tw_arena *a, struct tw_logged *ret,
        struct tw_err *err) TW_MUST_USE;
/* Once more, now, under the same event id; a test once.  TW_NOT_FOUND; TW_CONFLICT when the hook is
 * paused, or a test of it waits. */
enum tw_status tw_catalogue_redeliver(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t delivery_id, struct tw_err *err) TW_MUST_USE;

#endif
