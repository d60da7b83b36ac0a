#include "server/http/limit/response_memory.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "decoder/base/hash.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/metric.h"
#include "server/http/http_int.h"

enum { BUCKETS = 256, KINDS = 3, KEY_BYTES = 128, SHORT_MS = 2000 };
static const int64_t step_bytes = 256 << 10;
static const int64_t trim_bytes = 32 << 20;
static const int64_t reserved_part = 16;    /* 1/16 each for streams that have begun and for small
                                             * responses */
static const int64_t small_bytes = 1 << 20; /* per response, outside all shares */
static const int64_t times_free[KINDS] = {1, 3, 3}; /* caller, address, project */
static const char *const kinds[KINDS] = {"c", "a", "p"};

struct tw_holder {
	struct tw_holder *next;
	int64_t granted;
	unsigned n_responses;
	char key[KEY_BYTES];
};

struct tw_response_memory {
	pthread_mutex_t lock;
	int64_t max, taken;
	int64_t granted; /* with `taken` */
	int64_t small;   /* part of `granted` that is outside the shares */
	int64_t freed;   /* since memory was last returned to the system */
	int64_t refused_ms;
	uint64_t refused;
	struct tw_holder *buckets[BUCKETS];
};

struct tw_response_memory *tw_response_memory_new(uint64_t max, uint64_t taken)
{
	struct tw_response_memory *m = tw_mem_zalloc(1, sizeof *m);

	if (!m)
		return NULL;
	(void)pthread_mutex_init(&m->lock, NULL);
	m->max = (int64_t)max;
	m->taken = m->granted = (int64_t)taken;
	m->refused_ms = INT64_MIN / 2;
	return m;
}

struct tw_response_memory *tw_response_memory_free(struct tw_response_memory *m)
{
	if (!m)
		return NULL;
	(void)pthread_mutex_destroy(&m->lock);
	tw_mem_free(m);
	return NULL;
}

/* --- holders; call with the lock held --- */

static struct tw_holder **bucket_of(struct tw_response_memory *m, const char *key)
{
	return &m->buckets[tw_fnv32(tw_str_of(key)) % BUCKETS];
}

static struct tw_holder *enter(struct tw_response_memory *m, const char *key)
{
	struct tw_holder **at = bucket_of(m, key);
	struct tw_holder *h = *at;

	while (h && strcmp(h->key, key) != 0)
		h = h->next;
	if (!h) {
		h = tw_mem_zalloc(1, sizeof *h);
		if (!h)
			return NULL;
		(void)snprintf(h->key, sizeof h->key, "%s", key);
		h->next = *at;
		*at = h;
	}
	h->n_responses++;
	return h;
}

static void leave(struct tw_response_memory *m, struct tw_holder *h)
{
	struct tw_holder **at = bucket_of(m, h->key);

	if (--h->n_responses)
		return;
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	tw_mem_free(h);
}

static void count_shared(struct tw_reservation *h, int64_t bytes)
{
	for (int k = 0; k < KINDS; k++)
		if (h->holders[k])
			h->holders[k]->granted += bytes;
}

static void add(struct tw_reservation *h, int64_t bytes)
{
	h->of->granted += bytes;
	(void)atomic_fetch_add(&h->account.granted, bytes);
}

static bool fits_shares(const struct tw_reservation *h, int64_t bytes)
{
	const struct tw_response_memory *m = h->of;
	const int64_t reserved = m->max / reserved_part * (h->begun ? 1 : 2);
	const int64_t left = m->max - reserved - (m->granted - m->small) - bytes;

	if (left < 0)
		return false;
	for (int k = 0; k < KINDS && !h->begun; k++)
		if (h->holders[k] && (h->holders[k]->granted + bytes) / times_free[k] > left)
			return false;
	return true;
}

static bool fits_reserve(const struct tw_reservation *h, int64_t bytes)
{
	return atomic_load(&h->account.granted) + bytes <= small_bytes &&
	       h->of->small + bytes <= h->of->max / reserved_part;
}

/* The reserve is used only if the shares are used up. */
static bool grant(struct tw_reservation *h, int64_t bytes)
{
	if (fits_shares(h, bytes)) {
		count_shared(h, bytes);
	} else if (fits_reserve(h, bytes)) {
		h->small += bytes;
		h->of->small += bytes;
	} else {
		return false;
	}
	add(h, bytes);
	return true;
}

/* Returns memory of the reserve first. */
static void release_grant(struct tw_reservation *h, int64_t bytes)
{
	const int64_t small = bytes < h->small ? bytes : h->small;

	h->small -= small;
	h->of->small -= small;
	h->of->freed += bytes;
	count_shared(h, small - bytes);
	add(h, -bytes);
}

static bool is_only_request(const struct tw_reservation *h)
{
	return h->of->granted - h->of->taken <= atomic_load(&h->account.granted) + step_bytes;
}

/* --- the account --- */

static bool more(struct tw_mem_account *account, int64_t used)
{
	struct tw_reservation *h = (struct tw_reservation *)(void *)account;
	struct tw_response_memory *m = h->of;
	int64_t bytes;
	bool ok;
	bool trim;

	(void)pthread_mutex_lock(&m->lock);
	bytes = (used + step_bytes - 1) / step_bytes * step_bytes - atomic_load(&account->granted);
	ok = bytes <= 0 || grant(h, bytes);
	if (!ok) {
		h->too_much |= is_only_request(h);
		m->refused += !atomic_load(&account->refused);
		m->refused_ms = tw_monotonic_ms();
	}
	/* freed memory still held by malloc counts, otherwise the server would grow past the
	 * limit */
	trim = ok && m->granted + m->freed > m->max;
	if (trim)
		m->freed = 0;
	(void)pthread_mutex_unlock(&m->lock);
	if (trim)
		(void)malloc_trim(0);
	return ok;
}

static void enter_all(struct tw_reservation *h, const struct tw_holders *who)
{
	const char *const names[KINDS] = {who->caller, who->address, who->project};
	char key[KEY_BYTES];

	for (int k = 0; k < KINDS; k++) {
		(void)snprintf(key, sizeof key, "%s:%s", kinds[k], names[k]);
		h->holders[k] = names[k][0] ? enter(h->of, key) : NULL;
	}
}

static void leave_all(struct tw_reservation *h)
{
	for (int k = 0; k < KINDS; k++) {
		if (h->holders[k])
			leave(h->of, h->holders[k]);
		h->holders[k] = NULL;
	}
}

struct tw_reservation *tw_reservation_open(
        struct tw_response_memory *m, const struct tw_holders *who)
{
	struct tw_reservation *h = tw_mem_zalloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->account.more = more;
	h->of = m;
	h->owners = 1;
	(void)pthread_mutex_lock(&m->lock);
	enter_all(h, who);
	(void)pthread_mutex_unlock(&m->lock);
	return h;
}

struct tw_reservation *tw_reservation_share(struct tw_reservation *h)
{
	if (!h)
		return NULL;
	(void)pthread_mutex_lock(&h->of->lock);
	h->owners++;
	(void)pthread_mutex_unlock(&h->of->lock);
	return h;
}

void tw_reservation_move(struct tw_reservation *h, const struct tw_holders *who)
{
	struct tw_mem_account *before = tw_mem_count_for(NULL);
	int64_t shared;

	(void)pthread_mutex_lock(&h->of->lock);
	shared = atomic_load(&h->account.granted) - h->small;
	count_shared(h, -shared);
	leave_all(h);
	enter_all(h, who);
	count_shared(h, shared);
	(void)pthread_mutex_unlock(&h->of->lock);
	(void)tw_mem_count_for(before);
}

void tw_reservation_trim(struct tw_reservation *h)
{
	int64_t used = atomic_load(&h->account.used);

	if (used < 0)
		used = 0;
	(void)pthread_mutex_lock(&h->of->lock);
	if (used < atomic_load(&h->account.granted))
		release_grant(h, atomic_load(&h->account.granted) - used);
	(void)pthread_mutex_unlock(&h->of->lock);
}

struct tw_reservation *tw_reservation_close(struct tw_reservation *h)
{
	struct tw_response_memory *m = h ? h->of : NULL;
	bool last;

	if (!h)
		return NULL;
	(void)pthread_mutex_lock(&m->lock);
	last = --h->owners == 0;
	if (last) {
		release_grant(h, atomic_load(&h->account.granted));
		leave_all(h);
	}
	(void)pthread_mutex_unlock(&m->lock);
	if (last)
		tw_mem_free(h);
	return NULL;
}

bool tw_response_memory_is_short(struct tw_response_memory *m)
{
	bool is_short;

	(void)pthread_mutex_lock(&m->lock);
	is_short = tw_monotonic_ms() - m->refused_ms < SHORT_MS;
	(void)pthread_mutex_unlock(&m->lock);
	return is_short;
}

/* Once a second: returns freed memory to the system. */
static void give_back_freed(struct tw_response_memory *m)
{
	bool trim;

	(void)pthread_mutex_lock(&m->lock);
	trim = m->freed >= trim_bytes;
	if (trim)
		m->freed = 0;
	(void)pthread_mutex_unlock(&m->lock);
	if (trim)
		(void)malloc_trim(0);
}

void tw_response_memory_metrics(struct tw_response_memory *m, struct tw_buf *out)
{
	int64_t granted, max;
	uint64_t refused;

	(void)pthread_mutex_lock(&m->lock);
	granted = m->granted;
	max = m->max;
	refused = m->refused;
	(void)pthread_mutex_unlock(&m->lock);
	tw_metric(out, "tracewell_response_memory_bytes", (uint64_t)granted);
	tw_metric(out, "tracewell_response_memory_limit_bytes", (uint64_t)max);
	tw_metric(out, "tracewell_response_memory_refused_total", refused);
}

/* --- of a request ---
 *
 * When responses are refused because memory is short, streams whose client read almost nothing for
 * a while are cut, so that memory cannot be held by reading a byte now and then.  A client that
 * reads nothing is cut by the connection's time limit in any case.
 */

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
	struct tw_response_memory *m = r->http->parts.response_memory;
	char text[100];
	struct tw_holders who;

	if (!m || r->route->upload)
		return TW_OK;
	who = holders_of(r, text);
	r->reservation = tw_reservation_open(m, &who);
	return r->reservation ? TW_OK : tw_oom(err);
}

void tw_req_hold_for(struct tw_req *r, const struct tw_caller *as)
{
	char text[100];
	struct tw_holders who;

	if (!r->reservation)
		return;
	who = holders_of(r, text);
	who.project = as->project_id;
	tw_reservation_move(r->reservation, &who);
}

enum tw_status tw_req_held(struct tw_req *r, enum tw_status st, struct tw_err *err)
{
	char text[16];

	if (!r->reservation)
		return st;
	(void)tw_mem_count_for(NULL);
	if (!atomic_load(&r->reservation->account.refused)) {
		tw_reservation_trim(r->reservation);
		return st;
	}
	if (r->response)
		MHD_destroy_response(r->response);
	r->response = NULL;
	(void)snprintf(text, sizeof text, "%d", RETRY_S);
	tw_req_set_header(r, "Retry-After", text);
	if (r->reservation->too_much)
		return tw_fail(err, TW_BUSY,
		        "the response needs more memory than one caller may use "
		        "(--response-memory); select fewer threads or a shorter range");
	return tw_fail(
	        err, TW_BUSY, "too many large responses are in progress; retry in a few seconds");
}

void tw_req_release(struct tw_req *r)
{
	r->reservation = tw_reservation_close(r->reservation);
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
	struct tw_response_memory *m = h->parts.response_memory;
	uint64_t now = tw_http_now_ns();
	int64_t cut = 0;
	bool is_short;

	if (!m)
		return;
	is_short = tw_response_memory_is_short(m);
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
	give_back_freed(m);
}
