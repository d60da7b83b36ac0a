#include "server/derive/jobs_hook.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/log.h"
#include "server/base/metric.h"
#include "server/base/secret.h"
#include "server/catalogue/catalogue.h"
#include "server/notify/text.h"

enum {
	FLIGHTS = 8,
	OF_A_PROJECT = 4,
	MAILS = 2, /* concurrent mails: one mail server sends all, and may be slow */
	CHECK_EVERY_S = 2,
	CHECK_MS = 1000,  /* longest interval between checks while deliveries are in progress; */
	CHECK_SHARE = 10, /* checks take at most a tenth of the time */
	EXPIRE_MS = 60 * 1000,
	LEASE_MS = 12 * 1000,
	DIGEST_AGAIN_MS = 300 * 1000, /* pause after a failed digest */
	WRITE_FIRST_MS = 2000,     /* pause before a failed write of results is retried, doubled */
	WRITE_MOST_MS = 60 * 1000, /* each time up to this */
	DUE_ARENA = 8 << 20,
	FLIGHT_ARENA = 4 << 20,
	BODY_BYTES = 1 << 20
};

struct flight { /* a delivery in progress */
	bool busy;
	bool ended; /* its result is not stored yet */
	struct tw_sent result;
	int64_t ended_ms;
	struct tw_arena *arena;
	struct tw_delivery of;
	struct tw_buf body;
};

struct tw_hook_runner {
	struct tw_hook_parts parts;
	struct tw_periodic *thread;
	struct tw_proxies allowed;
	char smtp_password[TW_SMTP_PASSWORD_BYTES];
	struct tw_smtp smtp;
	struct tw_sender *sender;
	struct flight flights[FLIGHTS];
	char turn[TW_ID_BYTES];                /* the project served last */
	int64_t expire_ms, check_ms, write_ms; /* times of the next action */
	int64_t lease_check_ms;                /* when to check the lease again */
	bool holds_lease;
	int64_t rest_ms;             /* no check for deliveries before */
	int64_t write_wait_ms;       /* 0: the last write succeeded */
	struct tw_periodic *digests; /* a separate thread, as making digests takes time */
	int64_t digest_ms;           /* time of the next; used by that thread */
	struct tw_ticket_runner *tickets;
	_Atomic uint64_t counts[3]; /* delivered, failed, abandoned */
};

/* --- results --- */

static bool is_mail(const struct tw_delivery *d)
{
	return strcmp(d->hook_id, TW_HOOK_MAIL) == 0;
}

/* Whether the receiver is unreachable or requested a delay: its other deliveries wait too. */
static bool holds_all(const struct tw_sent *s)
{
	return s->http == 0 || s->http == 408 || s->http == 429 || s->http >= 500;
}

static enum tw_status write_down(
        struct tw_hook_runner *h, struct flight *f, enum tw_outbox_state *ret, struct tw_err *err)
{
	const struct tw_sent *s = &f->result;
	const bool held = !is_mail(&f->of) && holds_all(s);
	const int64_t fails = held ? f->of.fails : f->of.attempts;
	const struct tw_tried t = {.at_ms = f->ended_ms - s->took_ms,
	        .took_ms = s->took_ms,
	        .http = s->http,
	        .error = s->error,
	        .body = f->body.data ? (const char *)f->body.data : "",
	        .next_ms = f->ended_ms +
	                   tw_hook_wait_ms(fails + 1, randombytes_random(), s->retry_after_s),
	        .holds_all = held,
	        .gone = s->http == 410,
	        .permanent = s->permanent};

	return tw_catalogue_outbox_tried(h->parts.catalogue, &f->of, &t, ret, err);
}

static void log_result(struct tw_hook_runner *h, const struct flight *f, enum tw_outbox_state state)
{
	const struct tw_sent *s = &f->result;
	const bool failed = s->error[0] != '\0';

	atomic_fetch_add(&h->counts[!failed ? 0 : state == TW_OUTBOX_GIVEN_UP ? 2 : 1], 1);
	tw_log(failed ? TW_LOG_WARN : TW_LOG_INFO, failed ? "delivery_failed" : "delivered",
	        tw_log_text("hook", f->of.hook_id), tw_log_text("event", f->of.event_id),
	        tw_log_number("http", s->http), tw_log_number("took_ms", s->took_ms));
}

static void free_flight(struct flight *f)
{
	tw_buf_done(&f->body);
	f->arena = tw_arena_free(f->arena);
	f->busy = f->ended = false;
}

/* Results that cannot be stored are retained here, and nothing is sent until they are stored;
 * otherwise the same deliveries would be sent repeatedly. */
static void write_ended(struct tw_hook_runner *h)
{
	enum tw_outbox_state state = TW_OUTBOX_WAITS;
	struct tw_err err;

	for (size_t i = 0; i < FLIGHTS && tw_monotonic_ms() >= h->write_ms; i++) {
		struct flight *f = &h->flights[i];

		if (!f->ended)
			continue;
		if (write_down(h, f, &state, &err) != TW_OK) {
			tw_log_err(TW_LOG_WARN, "delivery_not_stored", f->of.event_id, &err);
			h->write_wait_ms = h->write_wait_ms ? 2 * h->write_wait_ms : WRITE_FIRST_MS;
			if (h->write_wait_ms > WRITE_MOST_MS)
				h->write_wait_ms = WRITE_MOST_MS;
			h->write_ms = tw_monotonic_ms() + h->write_wait_ms;
			return;
		}
		h->write_wait_ms = 0;
		log_result(h, f, state);
		free_flight(f);
		h->check_ms = h->check_ms < h->rest_ms ? h->check_ms : h->rest_ms;
	}
}

static void end(struct tw_hook_runner *h, struct flight *f, const struct tw_sent *s)
{
	f->result = *s;
	f->ended_ms = tw_wait_ms();
	f->ended = true;
	tw_crash_point("delivery_answered");
	write_ended(h);
}

/* --- starting --- */

static bool copy(struct flight *f, const struct tw_delivery *d)
{
	const char **texts[] = {&f->of.project_id, &f->of.project, &f->of.hook_id, &f->of.event_id,
	        &f->of.facts, &f->of.url, &f->of.secret};

	f->arena = tw_arena_new(FLIGHT_ARENA);
	f->of = *d;
	for (size_t i = 0; f->arena && i < sizeof texts / sizeof *texts; i++) {
		*texts[i] = tw_arena_str(f->arena, tw_str_of(*texts[i]));
		if (!*texts[i])
			return false;
	}
	return f->arena != NULL;
}

/* The body, followed by a NUL that is not sent. */
static enum tw_status end_body(struct flight *f, struct tw_err *err)
{
	(void)tw_buf_add_u8(&f->body, 0);
	if (tw_buf_status(&f->body) != TW_OK)
		return tw_fail(err, TW_TOO_LARGE, "the body is too large");
	f->body.len--;
	return TW_OK;
}

static enum tw_status post(struct tw_hook_runner *h, struct flight *f, struct tw_err *err)
{
	char signature[TW_HOOK_SIGNATURE_BYTES], secret[TW_SECRET_PLAIN_MAX + 1];
	struct tw_str body;
	enum tw_status st = tw_hook_body(&f->of, h->parts.config->public_url, &f->body, err);

	if (st == TW_OK)
		st = end_body(f, err);
	if (st != TW_OK)
		return st;
	body = tw_buf_str(&f->body);
	st = tw_secret_decrypt(h->parts.secret_key, f->of.project_id, f->of.secret, secret, err);
	if (st == TW_OK)
		st = tw_hook_sign(secret, tw_unix_ms() / 1000, body, signature, err);
	explicit_bzero(secret, sizeof secret);
	if (st != TW_OK)
		return st;
	return tw_sender_post(h->sender,
	        &(struct tw_hook_post){f->of.url, tw_hook_event_names[f->of.event], f->of.event_id,
	                signature, body, f},
	        err);
}

static enum tw_status mail(struct tw_hook_runner *h, struct flight *f, struct tw_err *err)
{
	const struct tw_config *c = h->parts.config;
	const struct tw_digest_mail what = {
	        h->parts.catalogue, &f->of, c->public_url, &h->smtp, f->arena, &f->body};
	struct tw_mail m;
	enum tw_status st = tw_digest_mail(&what, &m, err);

	if (st == TW_OK)
		st = end_body(f, err);
	if (st != TW_OK)
		return st;
	m.message = tw_buf_str(&f->body);
	m.arg = f;
	return tw_sender_mail(h->sender, &m, err);
}

/* False: out of memory. */
static bool start(struct tw_hook_runner *h, struct flight *f, const struct tw_delivery *d)
{
	struct tw_sent failed = {.arg = f};
	struct tw_err err = {.msg = "no memory"};
	enum tw_status st;

	f->busy = true;
	tw_buf_init(&f->body, BODY_BYTES);
	if (!copy(f, d)) {
		free_flight(f);
		return false;
	}
	st = is_mail(d) ? mail(h, f, &err) : post(h, f, &err);
	tw_crash_point("delivery_begun");
	if (st == TW_OK)
		return true;
	failed.permanent = is_mail(d) && st == TW_NOT_FOUND; /* address removed from the project */
	(void)snprintf(failed.error, sizeof failed.error, "%s", err.msg);
	end(h, f, &failed);
	return true;
}

/* NULL: the hook or project has reached its limit, or all slots are in use. */
static struct flight *flight_for(
        struct tw_hook_runner *h, const char *project_id, const char *hook_id)
{
	const bool mail = strcmp(hook_id, TW_HOOK_MAIL) == 0;
	struct flight *space = NULL;
	unsigned of_project = 0, mails = 0;

	for (size_t i = 0; i < FLIGHTS; i++) {
		struct flight *f = &h->flights[i];

		if (!f->busy) {
			space = space ? space : f;
			continue;
		}
		mails += is_mail(&f->of);
		if (strcmp(f->of.project_id, project_id) != 0)
			continue;
		if (strcmp(f->of.hook_id, hook_id) == 0)
			return NULL;
		of_project++;
	}
	return of_project < OF_A_PROJECT && !(mail && mails >= MAILS) ? space : NULL;
}

static bool is_busy(const struct tw_hook_runner *h)
{
	for (size_t i = 0; i < FLIGHTS; i++)
		if (h->flights[i].busy)
			return true;
	return false;
}

/* No delivery starts while results wait to be stored. */
static bool has_space(const struct tw_hook_runner *h)
{
	bool space = false;

	for (size_t i = 0; i < FLIGHTS; i++) {
		if (h->flights[i].busy && h->flights[i].ended)
			return false;
		space = space || !h->flights[i].busy;
	}
	return space;
}

/* Starts one delivery of the project, if one is allowed. */
static enum tw_status start_one(
        struct tw_hook_runner *h, const char *project_id, bool *ret, struct tw_err *err)
{
	struct tw_catalogue *c = h->parts.catalogue;
	struct tw_arena *a = tw_arena_new(DUE_ARENA);
	struct tw_due *due = NULL;
	struct tw_delivery d;
	struct flight *f = NULL;
	size_t n = 0, i;
	enum tw_status st =
	        a ? tw_catalogue_outbox_due(c, project_id, tw_wait_ms(), a, &due, &n, err)
	          : tw_oom(err);

	*ret = false;
	for (i = 0; st == TW_OK && !f && i < n; i++)
		f = flight_for(h, project_id, due[i].hook_id);
	if (f) {
		st = tw_catalogue_outbox_get(c, due[i - 1].id, a, &d, err);
		*ret = st == TW_OK && start(h, f, &d);
	}
	tw_arena_free(a);
	return st == TW_NOT_FOUND ? TW_OK : st; /* its hook was removed in the meantime */
}

/* Serves each project once, beginning after the one served last. */
static enum tw_status start_round(struct tw_hook_runner *h, unsigned *ret, struct tw_err *err)
{
	char from[TW_ID_BYTES], at[TW_ID_BYTES], next[TW_ID_BYTES];
	bool started, again = false;
	enum tw_status st = TW_OK;

	memcpy(from, h->turn, sizeof from);
	memcpy(at, from, sizeof at);
	for (*ret = 0; st == TW_OK && has_space(h); memcpy(at, next, sizeof at)) {
		st = tw_catalogue_outbox_next(h->parts.catalogue, at, next, err);
		if (st != TW_OK || (again && (!*next || strcmp(next, from) > 0)))
			break;
		if (!*next) {
			again = true;
			continue;
		}
		st = start_one(h, next, &started, err);
		if (st == TW_OK && started) {
			memcpy(h->turn, next, sizeof next);
			(*ret)++;
		}
	}
	return st;
}

static enum tw_status start_due(struct tw_hook_runner *h, struct tw_err *err)
{
	const int64_t began = tw_monotonic_ms();
	unsigned started;
	enum tw_status st;
	int64_t now;

	do
		st = start_round(h, &started, err);
	while (st == TW_OK && started && has_space(h));
	now = tw_monotonic_ms();
	h->rest_ms = now + CHECK_SHARE * (now - began);
	h->check_ms = now + CHECK_MS;
	return st;
}

/* --- the thread --- */

static void expire(struct tw_hook_runner *h)
{
	const int64_t now = tw_monotonic_ms();
	struct tw_err err;

	if (now < h->expire_ms)
		return;
	h->expire_ms = now + EXPIRE_MS;
	if (tw_catalogue_outbox_expire(h->parts.catalogue, tw_wait_ms(), &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "outbox_not_expired", "deliveries", &err);
}

/* With several servers, the holder of the lease delivers. */
static bool holds_lease(struct tw_hook_runner *h)
{
	bool mine = true;
	enum tw_status st;

	if (tw_monotonic_ms() < h->lease_check_ms)
		return h->holds_lease;
	st = tw_catalogue_take_lease(
	        h->parts.catalogue, "webhooks", h->parts.node, LEASE_MS, &mine, NULL);
	h->holds_lease = st == TW_OK && mine;
	h->lease_check_ms = tw_monotonic_ms() + LEASE_MS / 4;
	return h->holds_lease;
}

/* Releases the lease, so that another server need not wait for it to expire. */
static void release_lease(struct tw_hook_runner *h)
{
	bool mine;

	if (h->holds_lease && tw_catalogue_take_lease(h->parts.catalogue, "webhooks", h->parts.node,
	                              0, &mine, NULL) == TW_OK)
		h->holds_lease = false;
}

static void check_due(struct tw_hook_runner *h)
{
	struct tw_err err;

	if (tw_monotonic_ms() < h->check_ms || !has_space(h) || !holds_lease(h))
		return;
	if (start_due(h, &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "deliveries_not_started", "webhooks", &err);
}

static void deliver(struct tw_periodic *p, void *arg)
{
	struct tw_hook_runner *h = arg;
	struct tw_sent sent;

	h->check_ms = 0;
	do {
		expire(h);
		check_due(h);
		if (is_busy(h) && tw_sender_step(h->sender, &sent))
			end(h, sent.arg, &sent);
		else
			write_ended(h);
	} while (is_busy(h) && !tw_periodic_stopping(p));
	if (tw_periodic_stopping(p)) { /* the last opportunity to store results */
		h->write_ms = 0;
		write_ended(h);
		release_lease(h);
	}
}

static void digest(struct tw_periodic *p, void *arg)
{
	struct tw_hook_runner *h = arg;
	struct tw_err err;

	if (tw_monotonic_ms() < h->digest_ms ||
	        tw_digests_make(h->parts.fleet, p, *h->parts.config->smtp_url != '\0', tw_unix_ms(),
	                &err) == TW_OK)
		return;
	tw_log_err(TW_LOG_WARN, "digests_not_made", "digests", &err);
	h->digest_ms = tw_monotonic_ms() + DIGEST_AGAIN_MS;
}

/* --- settings --- */

static enum tw_status read_settings(
        struct tw_hook_runner *h, const struct tw_config *c, struct tw_err *err)
{
	const struct tw_smtp_settings mail = {
	        c->smtp_url, c->smtp_user, c->smtp_password_file, c->smtp_ca_file, c->mail_from};

	if (tw_proxies_parse(c->webhook_private, &h->allowed, NULL) != TW_OK)
		return tw_fail(err, TW_BAD_REQUEST,
		        "webhook-private: \"%.100s\" is not a list of addresses and networks such "
		        "as 10.0.0.0/8",
		        c->webhook_private);
	return tw_smtp_read(&mail, h->smtp_password, &h->smtp, err);
}

enum tw_status tw_hook_runner_start(
        const struct tw_hook_parts *parts, struct tw_hook_runner **ret, struct tw_err *err)
{
	struct tw_hook_runner *h = *ret = tw_mem_zalloc(1, sizeof *h);
	enum tw_status st;

	if (!h)
		return tw_oom(err);
	h->parts = *parts;
	st = read_settings(h, parts->config, err);
	if (st == TW_OK)
		st = tw_sender_new(&h->allowed, &h->sender, err);
	if (st == TW_OK)
		st = tw_periodic_start(
		        &(struct tw_periodic_task){"deliveries", deliver, CHECK_EVERY_S * 1000}, h,
		        &h->thread, err);
	if (st == TW_OK)
		st = tw_ticket_runner_start(&h->parts, &h->allowed, &h->tickets, err);
	return st == TW_OK ? tw_periodic_start(&(struct tw_periodic_task){"digests", digest,
	                                               TW_DIGEST_INTERVAL_S * 1000},
	                             h, &h->digests, err)
	                   : st;
}

struct tw_hook_runner *tw_hook_runner_stop(struct tw_hook_runner *h)
{
	if (!h)
		return NULL;
	h->thread = tw_periodic_stop(h->thread);
	h->digests = tw_periodic_stop(h->digests);
	h->tickets = tw_ticket_runner_stop(h->tickets);
	h->sender = tw_sender_free(h->sender);
	for (size_t i = 0; i < FLIGHTS; i++)
		if (h->flights[i].busy)
			free_flight(&h->flights[i]);
	explicit_bzero(h->smtp_password, sizeof h->smtp_password);
	tw_mem_free(h);
	return NULL;
}

void tw_hook_runner_wake(struct tw_hook_runner *h)
{
	if (h)
		tw_periodic_wake(h->thread);
}

enum tw_status tw_hook_runner_metrics(const struct tw_hook_runner *h, struct tw_catalogue *c,
        struct tw_buf *out, struct tw_err *err)
{
	static const char *const outcomes[] = {"delivered", "failed", "given_up"};
	struct tw_outbox_sums sums;
	enum tw_status st = tw_catalogue_outbox_sums(c, &sums, err);
	const int64_t age_ms = st == TW_OK && sums.oldest_ms ? tw_wait_ms() - sums.oldest_ms : 0;

	if (st != TW_OK)
		return st;
	for (size_t i = 0; h && i < 3; i++)
		tw_buf_printf(out,
		        "tracewell_webhook_deliveries_total{outcome=\"%s\"} %" PRIu64 "\n",
		        outcomes[i], atomic_load(&h->counts[i]));
	tw_metric(out, "tracewell_webhook_waiting_events", (uint64_t)sums.waiting);
	tw_buf_printf(out, "tracewell_webhook_oldest_seconds %.3f\n",
	        age_ms > 0 ? (double)age_ms / 1000 : 0.0);
	tw_metric(out, "tracewell_webhook_paused_hooks", (uint64_t)sums.paused);
	return TW_OK;
}
