#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/base/age_clock.h"
#include "server/base/caller.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/log.h"
#include "server/base/secret.h"
#include "server/base/text/json.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/catalogue/notify/catalogue_ticket.h"
#include "server/derive/jobs_hook.h"
#include "server/notify/hook_send.h"
#include "server/notify/text.h"
#include "server/notify/ticket.h"

enum {
	CHECK_MS = 2000,
	LEASE_MS = 60 * 1000,
	EXPIRE_MS = 3600 * 1000,
	POLL_MS = 10 * 60 * 1000,
	OTHER_TRACKER_MS = 6 * 3600 * 1000,
	UNSURE_MS = 180 * 1000, /* pause before searching for the result of a lost creation */
	HOLD_MS = 60 * 1000,    /* a project whose tracker does not respond */
	TRIES_MOST = 30,
	NOTE_MOST = 2000,
	ARENA_BYTES = 8 << 20,
	RESPONSE_BYTES = 4 << 20,
	ERROR_BYTES = 500,
	COMMENT_BYTES = 4000,
	GROUP_DAYS = 90
};

struct tw_ticket_runner {
	const struct tw_hook_parts *parts;
	struct tw_sender *sender;
	struct tw_periodic *thread;
	int64_t expire_ms;
};

struct work { /* on one ticket */
	struct tw_ticket_runner *by;
	struct tw_periodic *thread;
	struct tw_arena *arena;
	struct tw_ticket row;
	struct tw_ticket_task task;
	json_t *tracker;
	char token[TW_SECRET_PLAIN_MAX + 1];
	struct tw_ticket_seen seen; /* the last response */
	struct tw_sent sent;
	char error[ERROR_BYTES];
};

/* How a request ended. */
enum outcome {
	DONE,
	LATER,   /* the tracker does not respond, or requests a delay */
	REFUSED, /* it would be refused again */
	STOPPED  /* the server stops: nothing is known */
};

static struct tw_catalogue *catalogue(const struct work *w)
{
	return w->by->parts->catalogue;
}

/* --- one request --- */

static bool same_origin(const char *a, const char *b)
{
	char one[300], other[300];

	tw_hook_host(a, one, sizeof one);
	tw_hook_host(b, other, sizeof other);
	return strcasecmp(one, other) == 0;
}

/* False: the server stops. */
static bool exchange(
        struct work *w, const struct tw_ticket_request *r, const char *url, struct tw_buf *response)
{
	const char *headers[TW_TICKET_HEADERS];
	struct tw_err err = {.msg = "no memory"};
	enum tw_status st;

	for (size_t i = 0; i < r->n_headers; i++)
		headers[i] = r->headers[i];
	tw_buf_clear(response);
	w->sent = (struct tw_sent){.http = 0};
	st = tw_sender_request(w->by->sender,
	        &(struct tw_send_request){r->method, url, headers, r->n_headers,
	                {(const char *)r->body.data, r->body.len}, response, w},
	        &err);
	if (st != TW_OK) {
		(void)snprintf(w->sent.error, sizeof w->sent.error, "%s", err.msg);
		return true;
	}
	while (!tw_sender_step(w->by->sender, &w->sent))
		if (tw_periodic_stopping(w->thread))
			return false;
	return true;
}

static enum outcome explain(struct work *w, struct tw_str response)
{
	const int64_t http = w->sent.http;
	const char *what = http == 401   ? "the tracker refuses the token"
	                   : http == 403 ? "the token may not do this"
	                   : http == 404 ? "no such project or issue, or the token may not read it"
	                   : http == 410 ? "it was deleted there"
	                                 : "the tracker refuses it";
	char refusal[200];

	tw_ticket_refusal(response, refusal, sizeof refusal);
	if (http == 0 || http >= 500 || http == 408 || http == 429 || w->sent.truncated ||
	        (http == 403 && w->sent.retry_after_s)) {
		(void)snprintf(w->error, sizeof w->error, "%s%s%s", w->sent.error,
		        *refusal ? ": " : "", refusal);
		return LATER;
	}
	if (http < 400)
		(void)snprintf(w->error, sizeof w->error, "%s", w->sent.error);
	else
		(void)snprintf(w->error, sizeof w->error, "%s (%d)%s%s", what, (int)http,
		        *refusal ? ": " : "", refusal);
	return REFUSED;
}

static enum outcome exchange_and_read(struct work *w, enum tw_ticket_step step,
        struct tw_ticket_request *r, struct tw_buf *response)
{
	char moved[TW_SEND_URL_BYTES];
	struct tw_str text;
	struct tw_err err;

	if (!exchange(w, r, (const char *)r->url.data, response))
		return STOPPED;
	/* a project that was renamed; never to another host, which would get the token */
	if (w->sent.http >= 300 && w->sent.http < 400 &&
	        same_origin(w->sent.location, (const char *)r->url.data)) {
		memcpy(moved, w->sent.location, sizeof moved);
		if (!exchange(w, r, moved, response))
			return STOPPED;
	}
	text = (struct tw_str){response->len ? (const char *)response->data : "", response->len};
	if (w->sent.error[0])
		return explain(w, text);
	if (step == TW_TICKET_CREATE)
		tw_crash_point("ticket_created");
	if (tw_ticket_read_response(&w->task, step, text, &w->seen, &err) == TW_OK)
		return DONE;
	(void)snprintf(w->error, sizeof w->error, "%s", err.msg);
	return LATER;
}

static enum outcome request(struct work *w, enum tw_ticket_step step)
{
	struct tw_ticket_request r;
	struct tw_buf response;
	struct tw_err err = {.msg = ""};
	enum outcome o = REFUSED;

	if (!tw_ticket_needs(&w->task, step))
		return DONE;
	json_decref(w->seen.ids);
	w->seen.ids = NULL;
	tw_buf_init(&response, RESPONSE_BYTES);
	if (tw_ticket_request(&w->task, step, &r, &err) == TW_OK)
		o = exchange_and_read(w, step, &r, &response);
	else
		(void)snprintf(w->error, sizeof w->error, "%s", err.msg);
	tw_ticket_request_done(&r);
	tw_buf_done(&response);
	return o;
}

/* Keeps the numbers for the next request. */
static enum outcome request_ids(struct work *w, enum tw_ticket_step step)
{
	const enum outcome o = request(w, step);

	if (o == DONE && w->seen.ids) {
		w->task.ids = w->seen.ids;
		w->seen.ids = NULL;
	}
	return o;
}

/* --- results --- */

static void change(struct work *w, enum tw_ticket_state from)
{
	struct tw_err err;

	w->row.error = w->error;
	if (tw_catalogue_ticket_change(catalogue(w), &w->row, from, &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "ticket_not_stored", w->row.tag, &err);
}

/* All requests of the project wait, as they would fail the same way. */
static void wait(struct work *w, enum tw_ticket_state from)
{
	struct tw_err err;

	w->row.due_ms = tw_wait_ms() + tw_hook_wait_ms(w->row.attempts, randombytes_random(),
	                                       w->sent.retry_after_s);
	change(w, from);
	if (tw_catalogue_tickets_hold(catalogue(w), w->row.project_id,
	            tw_wait_ms() + (w->sent.retry_after_s ? w->sent.retry_after_s * 1000 : HOLD_MS),
	            &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "tickets_not_postponed", w->row.project_id, &err);
}

static void failed(struct work *w, enum outcome o, enum tw_ticket_state from)
{
	if (o == STOPPED)
		return;
	tw_log(TW_LOG_WARN, "ticket_failed", tw_log_text("project", w->row.project_id),
	        tw_log_text("ticket", w->row.tag), tw_log_number("http", w->sent.http),
	        tw_log_text("reason", w->error));
	if (o == LATER && w->row.attempts < TRIES_MOST) {
		wait(w, from);
		return;
	}
	w->row.state = TW_TICKET_FAILED;
	w->row.due_ms = 0;
	change(w, from);
}

/* --- creating --- */

static void created(struct work *w)
{
	w->row.state = w->seen.closed ? TW_TICKET_CLOSED : TW_TICKET_OPEN;
	w->row.key = w->seen.key;
	w->row.url = w->seen.url;
	w->row.attempts = 0;
	w->row.due_ms = w->seen.closed ? 0 : tw_wait_ms() + POLL_MS;
	change(w, TW_TICKET_WAITING);
	tw_log(TW_LOG_INFO, "ticket_created", tw_log_text("project", w->row.project_id),
	        tw_log_text("ticket", w->row.tag), tw_log_text("key", w->row.key));
}

static bool refuses_assignee(const struct work *w, enum outcome o)
{
	return o == REFUSED && *w->row.assignee && (w->sent.http == 422 || w->sent.http == 400);
}

static void create(struct work *w)
{
	const bool first = w->row.attempts == 0;
	enum outcome o = DONE;

	/* stored before the request, so that a crash leads to a search */
	w->row.attempts++;
	w->row.due_ms = tw_wait_ms() + UNSURE_MS;
	change(w, TW_TICKET_WAITING);
	if (!first)
		o = request(w, TW_TICKET_SEARCH);
	if (o == DONE && !w->seen.found)
		o = request_ids(w, TW_TICKET_IDS);
	if (o == DONE && !w->seen.found)
		o = request(w, TW_TICKET_CREATE);
	if (refuses_assignee(w, o)) {
		w->task.assignee = w->row.assignee = "";
		w->task.ids = NULL;
		o = request_ids(w, TW_TICKET_IDS);
		if (o == DONE)
			o = request(w, TW_TICKET_CREATE);
	}
	if (o == DONE) {
		w->error[0] = '\0';
		created(w);
	} else
		failed(w, o, TW_TICKET_WAITING);
}

/* --- reading --- */

static void add_note(const struct work *w, const char *before, char out[NOTE_MOST + 1])
{
	int n = snprintf(out, NOTE_MOST + 1, "%s%sClosed in %s: %s", before, *before ? "\n" : "",
	        w->row.tracker, *w->row.url ? w->row.url : w->row.key);

	if (n > NOTE_MOST || strstr(before, w->row.url))
		(void)snprintf(out, NOTE_MOST + 1, "%s", before);
}

static enum tw_status fix_regression(struct work *w, struct tw_err *err)
{
	char note[NOTE_MOST + 1];
	struct tw_regression r;
	enum tw_status st = tw_catalogue_regression_get(
	        catalogue(w), w->row.project_id, w->row.subject_id, w->arena, &r, err);

	if (st != TW_OK || r.status == TW_REGRESS_FIXED)
		return st;
	add_note(w, r.note, note);
	return tw_catalogue_triage(catalogue(w), w->row.project_id,
	        &(struct tw_triage_item){TW_TRIAGE_REGRESSION, r.id,
	                {TW_REGRESS_FIXED, r.of.fixed_in, r.owner, note, r.muted_until_ms}},
	        1, err);
}

/* A group that returned is fixed again: its ticket was reopened by the return. */
static enum tw_status fix_group(struct work *w, struct tw_err *err)
{
	char note[NOTE_MOST + 1];
	struct tw_anr_state *rows = NULL, state;
	size_t n = 0;
	enum tw_status st = tw_catalogue_anr_states(
	        catalogue(w), w->row.project_id, w->row.subject_id, w->arena, &rows, &n, err);

	if (st != TW_OK)
		return st;
	state = tw_anr_state_of(rows, n, w->row.subject_id);
	if (state.triage.status == TW_REGRESS_FIXED)
		return TW_OK;
	add_note(w, state.triage.note, note);
	state.triage.status = TW_REGRESS_FIXED;
	state.triage.note = note;
	return tw_catalogue_triage(catalogue(w), w->row.project_id,
	        &(struct tw_triage_item){TW_TRIAGE_ANR, w->row.subject_id, state.triage}, 1, err);
}

/* Also if the ticket is in that state already, or its subject was deleted. */
static enum tw_status apply_closing(struct work *w, struct tw_err *err)
{
	const struct tw_actor by = {"tracker", w->row.tracker, w->row.tracker, "", ""};
	enum tw_status st;

	tw_actor_set(&by);
	st = w->row.kind == TW_TICKET_REGRESSION ? fix_regression(w, err) : fix_group(w, err);
	tw_actor_set(NULL);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static void read_state(struct work *w)
{
	struct tw_err err;
	enum outcome o = request(w, TW_TICKET_READ);

	if (o == STOPPED)
		return;
	if (o == REFUSED && (w->sent.http == 404 || w->sent.http == 410)) {
		failed(w, o, TW_TICKET_OPEN);
		return;
	}
	if (o != DONE) { /* the token can be corrected */
		w->row.attempts++;
		wait(w, TW_TICKET_OPEN);
		return;
	}
	w->error[0] = '\0';
	w->row.attempts = 0;
	w->row.due_ms = tw_wait_ms() + POLL_MS;
	if (w->seen.closed) {
		if (apply_closing(w, &err) != TW_OK) {
			tw_log_err(TW_LOG_WARN, "ticket_closing_not_applied", w->row.tag, &err);
			return;
		}
		w->row.state = TW_TICKET_CLOSED;
		w->row.due_ms = 0;
	}
	change(w, TW_TICKET_OPEN);
}

/* --- reopening --- */

static void comment_regression(struct work *w, struct tw_text_links *links)
{
	char url[TW_TEXT_URL_BYTES];
	struct tw_regression r;
	json_t *j = NULL;

	if (tw_catalogue_regression_get(catalogue(w), w->row.project_id, w->row.subject_id,
	            w->arena, &r, NULL) == TW_OK)
		j = tw_row_json(&tw_regression_fields, &r);
	tw_buf_printf(links->p.out, "The regression returned");
	if (j && *r.of.head)
		tw_markup_phrase(&links->p, " in ", r.of.head);
	tw_buf_printf(links->p.out, ".");
	if (j && tw_text_regression_url(links, j, url))
		tw_buf_printf(links->p.out, "\n\n%s", url);
	json_decref(j);
}

static void comment_group(struct work *w, struct tw_text_links *links)
{
	const int64_t today = tw_unix_ms() / TW_DAY_MS;
	const struct tw_rollup_filter f = tw_rollup_days(today - GROUP_DAYS + 1, today + 1);
	char url[TW_TEXT_URL_BYTES];
	struct tw_anr_group group;

	tw_buf_printf(links->p.out, "The ANR returned");
	if (tw_catalogue_anr_group(catalogue(w), w->row.project_id, &f, w->row.subject_id, w->arena,
	            &group, NULL) == TW_OK)
		tw_markup_phrase(&links->p, " in ", group.last_version);
	tw_buf_printf(links->p.out, ".");
	if (tw_text_url(links, "/anrs/", w->row.subject_id, NULL, url))
		tw_buf_printf(links->p.out, "\n\n%s", url);
}

static void write_comment(struct work *w, struct tw_buf *out)
{
	struct tw_text_links links = {
	        {out, TW_MARKUP_PLAIN}, w->by->parts->config->public_url, w->row.project_id};

	if (w->row.kind == TW_TICKET_REGRESSION)
		comment_regression(w, &links);
	else
		comment_group(w, &links);
	(void)tw_buf_add_u8(out, 0);
}

static void reopen(struct work *w)
{
	struct tw_buf comment;
	enum outcome o;

	w->row.attempts++;
	w->row.due_ms = tw_wait_ms() + UNSURE_MS;
	change(w, TW_TICKET_REOPENING);
	tw_buf_init(&comment, COMMENT_BYTES);
	write_comment(w, &comment);
	w->task.comment =
	        tw_buf_status(&comment) == TW_OK ? (const char *)comment.data : "It returned.";
	o = request(w, TW_TICKET_READ);
	if (o == DONE && w->seen.closed) {
		o = request_ids(w, TW_TICKET_WAYS);
		if (o == DONE)
			o = request(w, TW_TICKET_REOPEN);
	}
	if (o == DONE)
		o = request(w, TW_TICKET_COMMENT);
	if (o == DONE) {
		w->error[0] = '\0';
		w->row.state = TW_TICKET_OPEN;
		w->row.attempts = 0;
		w->row.due_ms = tw_wait_ms() + POLL_MS;
		change(w, TW_TICKET_REOPENING);
	} else
		failed(w, o, TW_TICKET_REOPENING);
	w->task.comment = NULL;
	tw_buf_done(&comment);
}

/* --- one ticket --- */

static enum tw_status load(struct work *w, struct tw_err *err)
{
	const char *encrypted = NULL;
	int64_t changed_ms;
	enum tw_status st = tw_setting_load(catalogue(w), w->row.project_id, &tw_tracker_setting,
	        &w->tracker, &changed_ms, err);

	if (st == TW_OK)
		st = tw_catalogue_setting_get(catalogue(w), w->row.project_id,
		        TW_SETTING_TRACKER_TOKEN, w->arena, &encrypted, &changed_ms, err);
	if (st != TW_OK)
		return st;
	if (!w->tracker || !tw_tracker_has_api(w->tracker) || !encrypted || !*encrypted)
		return tw_fail(err, TW_CONFLICT, "the project's tracker has no API and token");
	if (strcmp(tw_json_text(w->tracker, "for"), w->row.tracker) != 0)
		return tw_fail(err, TW_CONFLICT, "the project has another tracker now");
	st = tw_secret_decrypt(
	        w->by->parts->secret_key, w->row.project_id, encrypted, w->token, err);
	if (st != TW_OK)
		return tw_fail(
		        err, TW_CONFLICT, "the tracker's token cannot be decrypted: set it again");
	w->task = (struct tw_ticket_task){.tracker = w->tracker,
	        .token = w->token,
	        .tag = w->row.tag,
	        .title = w->row.title,
	        .body = w->row.body,
	        .assignee = w->row.assignee,
	        .key = w->row.key,
	        .since_ms = w->row.created_ms};
	return TW_OK;
}

static void act(struct work *w)
{
	const enum tw_ticket_state state = w->row.state;
	struct tw_err err;
	enum tw_status st = load(w, &err);

	if (st == TW_CONFLICT) { /* the settings can be corrected */
		(void)snprintf(w->error, sizeof w->error, "%s", err.msg);
		w->row.state = state == TW_TICKET_WAITING ? TW_TICKET_FAILED : state;
		w->row.due_ms = state == TW_TICKET_WAITING ? 0 : tw_wait_ms() + OTHER_TRACKER_MS;
		change(w, state);
	} else if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "ticket_not_loaded", w->row.tag, &err);
	else if (state == TW_TICKET_WAITING)
		create(w);
	else if (state == TW_TICKET_REOPENING)
		reopen(w);
	else
		read_state(w);
}

static void work_on(struct tw_ticket_runner *t, struct tw_periodic *p, struct tw_arena *a,
        const struct tw_ticket *row)
{
	struct work w = {.by = t, .thread = p, .arena = a, .row = *row};

	act(&w);
	explicit_bzero(w.token, sizeof w.token);
	json_decref((json_t *)(uintptr_t)w.task.ids);
	json_decref(w.seen.ids);
	json_decref(w.tracker);
}

/* --- the thread --- */

/* With several servers, the holder of the lease works on tickets. */
static bool acquire_lease(struct tw_ticket_runner *t)
{
	bool mine = false;

	return tw_catalogue_take_lease(t->parts->catalogue, "tickets", t->parts->node, LEASE_MS,
	               &mine, NULL) == TW_OK &&
	       mine;
}

static void expire(struct tw_ticket_runner *t)
{
	const int64_t now = tw_monotonic_ms();
	struct tw_err err;

	if (now < t->expire_ms)
		return;
	t->expire_ms = now + EXPIRE_MS;
	if (tw_catalogue_tickets_expire(t->parts->catalogue, tw_wait_ms(), &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "tickets_not_expired", "tickets", &err);
}

/* Works on the first ticket that is due; it may delay others of its project.  False: none due. */
static bool handle_one(struct tw_ticket_runner *t, struct tw_periodic *p)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_ticket *due = NULL;
	struct tw_err err;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_catalogue_tickets_due(t->parts->catalogue, tw_wait_ms(), a, &due, &n, &err)
	          : tw_oom(&err);

	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "tickets_not_read", "tickets", &err);
	else if (n && acquire_lease(t))
		work_on(t, p, a, &due[0]);
	else
		n = 0;
	tw_arena_free(a);
	return st == TW_OK && n > 1;
}

static void run(struct tw_periodic *p, void *arg)
{
	struct tw_ticket_runner *t = arg;

	expire(t);
	while (!tw_periodic_stopping(p) && handle_one(t, p))
		;
}

enum tw_status tw_ticket_runner_start(const struct tw_hook_parts *parts,
        const struct tw_proxies *allowed, struct tw_ticket_runner **ret, struct tw_err *err)
{
	struct tw_ticket_runner *t = tw_mem_zalloc(1, sizeof *t);
	enum tw_status st;

	if (!t)
		return tw_oom(err);
	t->parts = parts;
	t->expire_ms = tw_monotonic_ms() + EXPIRE_MS;
	st = tw_sender_new(allowed, &t->sender, err);
	if (st == TW_OK)
		st = tw_periodic_start(
		        &(struct tw_periodic_task){"tickets", run, CHECK_MS}, t, &t->thread, err);
	if (st == TW_OK)
		*ret = t;
	else
		(void)tw_ticket_runner_stop(t);
	return st;
}

struct tw_ticket_runner *tw_ticket_runner_stop(struct tw_ticket_runner *t)
{
	if (!t)
		return NULL;
	t->thread = tw_periodic_stop(t->thread);
	t->sender = tw_sender_free(t->sender);
	tw_mem_free(t);
	return NULL;
}
