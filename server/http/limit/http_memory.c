/*
 * http_memory.c - counts the memory of responses (answer_memory.h), and cuts streams that are not
 * read.
 *
 * When responses are refused because memory is short, streams whose client read almost nothing for
 * a while are cut, so that memory cannot be held by reading a byte now and then.  A client that
 * reads nothing is cut by the connection's time limit in any case.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "server/base/log.h"
#include "server/http/http_int.h"
#include "server/http/limit/answer_memory.h"

enum { RETRY_S = 5, WINDOW_S = 10, STALLED_BYTES = 64 << 10 };

static const char *after(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return path && strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

static struct tw_holders holders_of(const struct tw_req *r, char text[static 100])
{
	const struct tw_caller *who = &r->caller;
	const char *ticket = after(r->target.path, "/api/v1/tickets/");

	text[0] = '\0';
	if (who->user_id[0])
		(void)snprintf(text, 100, "user:%s", who->user_id);
	else if (who->key_id[0])
		(void)snprintf(text, 100, "key:%s", who->key_id);
	else if (ticket)
		(void)snprintf(text, 100, "ticket:%.80s", ticket);
	return (struct tw_holders){text, r->address, who->project_id};
}

enum tw_status tw_req_hold(struct tw_req *r, struct tw_err *err)
{
	struct tw_answer_memory *m = r->http->parts.answer_memory;
	char text[100];
	struct tw_holders who;

	if (!m || r->route->upload)
		return TW_OK;
	who = holders_of(r, text);
	r->held = tw_held_open(m, &who);
	return r->held ? TW_OK : tw_oom(err);
}

void tw_req_hold_for(struct tw_req *r, const struct tw_caller *as)
{
	char text[100];
	struct tw_holders who;

	if (!r->held)
		return;
	who = holders_of(r, text);
	who.project = as->project_id;
	tw_held_move(r->held, &who);
}

enum tw_status tw_req_held(struct tw_req *r, enum tw_status st, struct tw_err *err)
{
	char text[16];

	if (!r->held)
		return st;
	(void)tw_mem_count_for(NULL);
	if (!atomic_load(&r->held->account.refused)) {
		tw_held_finalize(r->held);
		return st;
	}
	if (r->response)
		MHD_destroy_response(r->response);
	r->response = NULL;
	(void)snprintf(text, sizeof text, "%d", RETRY_S);
	tw_req_set_header(r, "Retry-After", text);
	if (r->held->too_much)
		return tw_fail(err, TW_BUSY,
		        "the response needs more memory than one caller may use (--answer-memory); "
		        "select fewer threads or a shorter range");
	return tw_fail(
	        err, TW_BUSY, "too many large responses are in progress; retry in a few seconds");
}

void tw_req_release(struct tw_req *r)
{
	r->held = tw_held_close(r->held);
}

/* --- streams --- */

void tw_outflow_begin(struct tw_http *h, struct tw_outflow *o, struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	o->fd = i ? i->connect_fd : -1;
	o->since_ns = tw_http_now_ns();
	(void)pthread_mutex_lock(&h->outflow_lock);
	o->next = h->outflows;
	o->at = &h->outflows;
	if (o->next)
		o->next->at = &o->next;
	h->outflows = o;
	(void)pthread_mutex_unlock(&h->outflow_lock);
}

void tw_outflow_end(struct tw_http *h, struct tw_outflow *o)
{
	(void)pthread_mutex_lock(&h->outflow_lock);
	if (o->at) {
		*o->at = o->next;
		if (o->next)
			o->next->at = o->at;
		o->at = NULL;
	}
	(void)pthread_mutex_unlock(&h->outflow_lock);
}

/* Whether fewer bytes were read than any client needs, in a window in which bytes were always
 * available. */
static bool has_stalled(struct tw_outflow *o, uint64_t now)
{
	uint64_t sent = atomic_load(&o->sent);

	if (!atomic_load(&o->ready) || sent - o->seen >= STALLED_BYTES) {
		o->since_ns = now;
		o->seen = sent;
		return false;
	}
	return now - o->since_ns >= WINDOW_S * UINT64_C(1000000000);
}

void tw_http_memory_tick(struct tw_http *h)
{
	struct tw_answer_memory *m = h->parts.answer_memory;
	uint64_t now = tw_http_now_ns();
	int64_t cut = 0;
	bool is_short;

	if (!m)
		return;
	is_short = tw_answer_memory_is_short(m);
	(void)pthread_mutex_lock(&h->outflow_lock);
	for (struct tw_outflow *o = h->outflows; o; o = o->next)
		if (has_stalled(o, now) && is_short && o->fd >= 0) {
			(void)shutdown(o->fd, SHUT_RDWR);
			o->fd = -1;
			cut++;
		}
	(void)pthread_mutex_unlock(&h->outflow_lock);
	if (cut)
		tw_log(TW_LOG_INFO, "unread_responses_aborted", tw_log_number("count", cut));
	tw_answer_memory_tick(m);
}
