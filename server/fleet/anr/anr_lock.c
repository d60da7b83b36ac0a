#include "server/base/text/json.h"
#include "server/fleet/anr/anr_brief.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/base/sum.h"
#include "server/fleet/anr/anr_cause_int.h"
#include "server/query/note_names.h"

enum { DISTINCT_MAX = 4096, SLOTS = 2 * DISTINCT_MAX };

static struct tw_lock_wait *push(struct tw_lock_list *l, struct tw_arena *a)
{
	if (!TW_GROW(a, l->at, l->n, l->cap))
		return NULL;
	return &l->at[l->n++];
}

/* --- calls --- */

struct reading {
	struct tw_arena *a;
	struct tw_lock_list list;
	uint32_t *slots; /* index + 1 */
	const struct tw_thread_info *threads;
	uint32_t n_threads;
	bool no_memory;
};

static bool is_main(const struct reading *r, uint32_t thread_id)
{
	for (uint32_t i = 0; i < r->n_threads; i++)
		if (r->threads[i].thread_id == thread_id)
			return r->threads[i].is_main;
	return false;
}

static const char *thread_name(const struct reading *r, int64_t tid)
{
	for (uint32_t i = 0; tid > 0 && i < r->n_threads; i++)
		if (r->threads[i].tid == (uint64_t)tid && r->threads[i].name.len)
			return tw_arena_str(r->a, r->threads[i].name);
	return "";
}

static bool same(const struct tw_lock_wait *a, const struct tw_lock_wait *b)
{
	return a->is_main == b->is_main && strcmp(a->raw_monitor, b->raw_monitor) == 0 &&
	       strcmp(a->raw_owner, b->raw_owner) == 0 && strcmp(a->source, b->source) == 0;
}

/* Returns the equal lock of the list, or adds it. NULL: the list is full. */
static struct tw_lock_wait *met(struct reading *r, const struct tw_lock_wait *w)
{
	uint64_t h = tw_hash_str(tw_str_of(w->raw_owner), w->is_main) ^
	             tw_hash_str(tw_str_of(w->raw_monitor), 1) ^
	             tw_hash_str(tw_str_of(w->source), 2);
	uint32_t at = (uint32_t)h % SLOTS;
	struct tw_lock_wait *added;

	for (; r->slots[at]; at = (at + 1) % SLOTS)
		if (same(&r->list.at[r->slots[at] - 1], w))
			return &r->list.at[r->slots[at] - 1];
	if (r->list.n == DISTINCT_MAX)
		return NULL;
	added = push(&r->list, r->a);
	if (!added) {
		r->no_memory = true;
		return NULL;
	}
	*added = *w;
	r->slots[at] = (uint32_t)r->list.n;
	return added;
}

static const char *copy_text(struct reading *r, const json_t *o, const char *key)
{
	const char *s = tw_json_text(o, key);
	const char *copy = s[0] ? tw_arena_str(r->a, tw_str_of(s)) : "";

	r->no_memory = r->no_memory || !copy;
	return copy ? copy : "";
}

static void count(struct tw_lock_wait *w, const struct reading *r, const struct tw_note_row *n)
{
	w->waits++;
	if (n->dur_ns < 0)
		return;
	w->timed++;
	w->total_ns = tw_sum_ns(w->total_ns, n->dur_ns);
	if (n->dur_ns > w->max_ns || !w->holder[0]) {
		const char *holder = thread_name(r, n->value);

		w->max_ns = n->dur_ns > w->max_ns ? n->dur_ns : w->max_ns;
		w->holder = holder ? holder : "";
	}
}

/* A monitor contention event of atrace contains its owner's method, not the monitor's class. */
static bool add_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct reading *r = arg;
	json_t *detail = n->detail.len ? json_loadb(n->detail.ptr, n->detail.len, 0, NULL) : NULL;
	bool named = !tw_str_eq(n->text, TW_STR("monitor")) && !tw_str_eq(n->text, TW_STR("mutex"));
	char text[1024];
	struct tw_lock_wait w = {.is_main = is_main(r, n->thread_id),
	        .raw_monitor = "",
	        .monitor = "",
	        .owner = "",
	        .holder = ""};
	struct tw_lock_wait *at;

	(void)id;
	w.raw_owner = copy_text(r, detail, "owner_method");
	w.source = copy_text(r, detail, "owner_source");
	if (named || !w.raw_owner[0]) {
		(void)tw_utf8_clean(text, sizeof text, n->text);
		w.raw_monitor = tw_arena_str(r->a, tw_str_of(text));
		r->no_memory = r->no_memory || !w.raw_monitor;
	}
	at = r->no_memory ? NULL : met(r, &w);
	if (at) {
		count(at, r, n);
		if (!at->holder[0])
			at->holder = copy_text(r, detail, "owner");
	}
	json_decref(detail);
	return !r->no_memory;
}

TW_ORDER_BY(by_total, struct tw_lock_wait, TW_FALLING(is_main), TW_FALLING(total_ns),
        TW_RISING(raw_owner), TW_RISING(raw_monitor), TW_RISING(source))

enum tw_status tw_locks_of_trace(
        struct tw_trace_file *f, struct tw_arena *a, struct tw_lock_list *io, struct tw_err *err)
{
	const struct tw_note_query q = {.kind = TW_NOTE_contention,
	        .from_ns = INT64_MIN,
	        .to_ns = INT64_MAX,
	        .limit = UINT32_MAX};
	struct reading r = {.a = a, .slots = tw_arena_zalloc(a, SLOTS, sizeof(uint32_t))};
	enum tw_status st;

	r.threads = tw_trace_file_threads(f, &r.n_threads);
	if (!r.slots)
		return tw_oom(err);
	st = tw_trace_file_notes(f, &q, add_note, &r, err);
	if (st == TW_OK && r.no_memory)
		return tw_oom(err);
	TW_SORT(r.list.at, r.list.n, by_total);
	for (size_t i = 0; st == TW_OK && i < r.list.n && i < TW_LOCKS_MAX; i++) {
		struct tw_lock_wait *w = push(io, a);

		if (!w)
			return tw_oom(err);
		*w = r.list.at[i];
	}
	return st;
}

/* --- reports --- */

static const char *class_of(const json_t *wants, struct tw_arena *a)
{
	struct tw_str s = tw_str_of(tw_json_text(wants, "type"));

	if (tw_str_starts(s, TW_STR("java.lang.Class<")) && s.ptr[s.len - 1] == '>')
		s = (struct tw_str){s.ptr + 16, s.len - 17};
	return tw_arena_str(a, s);
}

/* Only main's waiting time is known, if the report states it. */
static bool read_wait(struct tw_lock_wait *w, const json_t *doc, const json_t *threads,
        const json_t *thread, struct tw_arena *a)
{
	const json_t *wants = json_object_get(thread, "wants");
	const json_t *holder = tw_anr_at(threads, wants, "holder");
	const json_t *frames = json_object_get(holder, "frames");
	const json_t *ms = json_object_get(doc, "waited_ms");
	size_t at = tw_anr_taken_at(holder, tw_json_text(wants, "id"));

	*w = (struct tw_lock_wait){.dump = true,
	        .is_main = w->is_main,
	        .raw_monitor = "",
	        .raw_owner = "",
	        .source = "",
	        .waits = 1};
	w->monitor = class_of(wants, a);
	w->owner = tw_json_text(json_array_get(frames, at), "name");
	w->holder = tw_json_text(holder, "name");
	if (w->is_main && json_is_integer(ms) && json_integer_value(ms) >= 0 &&
	        json_integer_value(ms) <= INT32_MAX) {
		w->timed = 1;
		w->total_ns = w->max_ns = json_integer_value(ms) * INT64_C(1000000);
	}
	return w->monitor != NULL;
}

enum tw_status tw_locks_of_anr(
        const json_t *doc, struct tw_arena *a, struct tw_lock_list *io, struct tw_err *err)
{
	const json_t *process = tw_anr_at(json_object_get(doc, "processes"), doc, "blamed");
	const json_t *threads = json_object_get(process, "threads");
	const json_t *main = tw_anr_at(threads, process, "main");

	for (size_t i = 0; i < json_array_size(threads) && io->n < TW_LOCKS_MAX; i++) {
		const json_t *thread = json_array_get(threads, i);
		struct tw_lock_wait *w;

		if (!json_is_object(json_object_get(thread, "wants")))
			continue;
		w = push(io, a);
		if (!w)
			return tw_oom(err);
		w->is_main = thread == main;
		if (!read_wait(w, doc, threads, thread, a))
			return tw_oom(err);
	}
	return TW_OK;
}

/* --- names --- */

/* "void a.b.c(int)": a.b.c */
static struct tw_str plain_method(struct tw_str pretty)
{
	struct tw_str name = tw_str_split(&pretty, '(');
	size_t blank = tw_str_find_last(name, TW_STR(" "));

	return blank < name.len ? tw_str_from(name, blank + 1) : name;
}

static bool name_lock(const struct tw_retrace *retrace, struct tw_arena *a, struct tw_lock_wait *w)
{
	json_t *o =
	        json_pack("{s:s, s:s}", "owner_method", w->raw_owner, "owner_source", w->source);
	struct tw_str monitor = tw_str_of(w->raw_monitor);
	bool ok = o != NULL;

	if (ok && retrace) {
		ok = tw_note_detail(retrace, o);
		monitor = tw_note_text(retrace, TW_NOTE_contention, monitor);
	}
	w->owner = ok ? tw_arena_str(a, plain_method(tw_str_of(tw_json_text(o, "owner_method"))))
	              : NULL;
	w->monitor = tw_arena_str(a, monitor);
	json_decref(o);
	return w->owner && w->monitor;
}

enum tw_status tw_locks_name(const struct tw_retrace *retrace, struct tw_arena *a,
        struct tw_lock_list *io, struct tw_err *err)
{
	for (size_t i = 0; i < io->n; i++)
		if (!io->at[i].dump && !name_lock(retrace, a, &io->at[i]))
			return tw_oom(err);
	return TW_OK;
}
