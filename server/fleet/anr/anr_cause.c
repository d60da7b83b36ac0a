#include "server/fleet/anr/anr_cause.h"

#include <stdio.h>
#include <stdlib.h>

#include "decoder/base/order.h"
#include "decoder/formats/anr/anr_markup.h"
#include "server/base/secret.h"
#include "server/base/text/json.h"
#include "server/fleet/anr/anr_cause_int.h"
#include "server/fleet/anr/anr_frame.h"

/* --- paths of samples ---
 *
 * The common path of several samples of a main thread: from its outermost frame
 * inwards, as long as at least half of all samples share it.
 */

struct sample {
	const json_t *frames; /* innermost first */
	size_t n;
};

static const char *name_at_depth(const struct sample *l, size_t depth)
{
	return depth < l->n ? tw_json_text(json_array_get(l->frames, l->n - 1 - depth), "name")
	                    : NULL;
}

static size_t read_samples(const json_t *doc, struct sample samples[TW_ANR_SAMPLES_MAX])
{
	const json_t *processes = json_object_get(doc, "processes");
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(processes) && n < TW_ANR_SAMPLES_MAX; i++) {
		const json_t *p = json_array_get(processes, i);
		const json_t *main = tw_anr_at(json_object_get(p, "threads"), p, "main");
		const json_t *frames = json_object_get(main, "frames");

		if (json_array_size(frames))
			samples[n++] = (struct sample){frames, json_array_size(frames)};
	}
	return n;
}

/* The most frequent name at a depth. */
static const char *commonest(
        const struct sample samples[TW_ANR_SAMPLES_MAX], size_t n, size_t depth, size_t *ret_count)
{
	const char *best = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < n; i++) {
		const char *name = name_at_depth(&samples[i], depth);
		size_t count = 0;

		for (size_t k = 0; name && k < n; k++) {
			const char *other = name_at_depth(&samples[k], depth);

			count += other && strcmp(other, name) == 0;
		}
		if (count > *ret_count) {
			*ret_count = count;
			best = name;
		}
	}
	return best;
}

/* Leaves the samples that have this name at this depth. */
static size_t narrow(
        struct sample samples[TW_ANR_SAMPLES_MAX], size_t n, size_t depth, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const char *its = name_at_depth(&samples[i], depth);

		if (its && strcmp(its, name) == 0)
			samples[kept++] = samples[i];
	}
	return kept;
}

/* Names, the deepest first.  NULL: out of memory. */
static json_t *path_of_samples(const json_t *doc)
{
	enum { DEPTH_MAX = 256 };
	struct sample samples[TW_ANR_SAMPLES_MAX];
	size_t n = read_samples(doc, samples);
	size_t all = n;
	json_t *path = json_array();

	for (size_t depth = 0; depth < DEPTH_MAX && n; depth++) {
		size_t count;
		const char *name = commonest(samples, n, depth, &count);

		if (!name || count * 2 < all)
			break;
		if (json_array_insert_new(path, 0, json_string(name)) != 0) {
			json_decref(path);
			return NULL;
		}
		n = narrow(samples, n, depth, name);
	}
	return path;
}

/* Whether the names, the deepest first, end in a file, a database or the network. */
static bool path_is_io(const json_t *names)
{
	static const char *const packages[] = {"java.io.", "java.nio.", "sun.nio.", "libcore.io.",
	        "java.net.", "android.system.Os.", "android.database.sqlite.", "java.util.zip.",
	        "android.app.SharedPreferencesImpl"};
	const char *deepest = json_string_value(json_array_get(names, 0));

	for (size_t i = 0; deepest && i < sizeof packages / sizeof *packages; i++)
		if (strncmp(deepest, packages[i], strlen(packages[i])) == 0)
			return true;
	return false;
}

enum { HASHED_BYTES = 256 << 10, PLAIN_BYTES = 1024, RING_MAX = 64 };

enum kind { DEADLOCK, LOCK, PATH, IO, BINDER, NO_CPU, GC, SLEEP, WAIT, RUN, IDLE, UNKNOWN };
const char *const tw_anr_kinds[] = {"deadlock", "lock", "path", "io", "binder", "no_cpu", "gc",
        "sleep", "wait", "run", "idle", "unknown", NULL};

/* --- the key --- */

static void hash_text(struct tw_anr_find *f, const char *text)
{
	char plain[PLAIN_BYTES];

	(void)tw_anr_frame_plain(tw_str_of(text), plain, sizeof plain);
	(void)tw_buf_add_str(&f->hashed, tw_str_of(plain));
	(void)tw_buf_add_u8(&f->hashed, '\n');
}

static void hash_names(struct tw_anr_find *f, const struct tw_anr_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		hash_text(f, names->at[i]);
}

static void key_of(const char *text, char ret[TW_ANR_KEY_BYTES])
{
	uint8_t hash[32];

	tw_secret_hash(text, hash);
	for (int i = 0; i < 8; i++)
		(void)snprintf(ret + (size_t)2 * (size_t)i, 3, "%02x", hash[i]);
}

/* --- locks --- */

struct held { /* a monitor with a holder and a waiting thread; "" unknown */
	const char *type, *blocked_method, *blocking_method;
};

/* "java.lang.Class<a.B>" is the class itself. */
static const char *type_of(struct tw_anr_find *f, const json_t *wants)
{
	struct tw_str s = tw_str_of(tw_json_text(wants, "type"));
	const char *type;

	if (tw_str_starts(s, TW_STR("java.lang.Class<")) && s.ptr[s.len - 1] == '>')
		s = (struct tw_str){s.ptr + 16, s.len - 17};
	type = tw_arena_str(f->arena, s);
	return type ? type : "";
}

static const char *first_blamed(struct tw_anr_find *f, const json_t *thread, size_t from)
{
	struct tw_anr_names one = {.n = 0};

	tw_anr_blamed(f, thread, from, 1, &one);
	return one.n ? one.at[0] : "";
}

static struct held held_of(struct tw_anr_find *f, const json_t *step)
{
	const json_t *thread = tw_anr_at(f->threads, step, "thread");
	const json_t *wants = json_object_get(step, "wants");
	const json_t *holder = tw_anr_at(f->threads, wants, "holder");
	struct held h = {type_of(f, wants), first_blamed(f, thread, 0), ""};
	size_t at = tw_anr_taken_at(holder, tw_json_text(wants, "id"));

	if (at < json_array_size(json_object_get(holder, "frames")))
		h.blocking_method = first_blamed(f, holder, at);
	return h;
}

static void add_lock_detail(struct tw_anr_find *f, const struct held *h)
{
	json_t *o = json_pack("{s:s, s:s, s:s}", "class", h->type, "blocked_method",
	        h->blocked_method, "blocking_method", h->blocking_method);

	(void)json_array_append_new(f->lock_list, o);
	if (f->locks.n < TW_ANR_NAMES_MAX)
		f->locks.at[f->locks.n++] = h->type;
}

/* --- deadlocks --- */

TW_ORDER_BY(by_class, struct held, TW_RISING(type), TW_RISING(blocked_method),
        TW_RISING(blocking_method))

static bool ring_has(const json_t *steps, json_int_t thread)
{
	for (size_t i = 0; i < json_array_size(steps); i++)
		if (json_integer_value(json_object_get(json_array_get(steps, i), "thread")) ==
		        thread)
			return true;
	return false;
}

/* The cycle of waits that main is in or waits for. */
static const json_t *ring_of(const struct tw_anr_find *f)
{
	const json_t *cycles = json_object_get(f->process, "cycles");
	json_int_t culprit = json_integer_value(json_object_get(f->process, "culprit"));

	for (size_t i = 0; i < json_array_size(cycles); i++) {
		const json_t *steps = json_object_get(json_array_get(cycles, i), "threads");

		if (ring_has(steps, culprit))
			return steps;
	}
	return NULL;
}

static enum kind find_deadlock(struct tw_anr_find *f)
{
	const json_t *steps = ring_of(f);
	struct held ring[RING_MAX];
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(steps) && n < RING_MAX; i++)
		ring[n++] = held_of(f, json_array_get(steps, i));
	TW_SORT(ring, n, by_class);
	for (size_t i = 0; i < n; i++) {
		add_lock_detail(f, &ring[i]);
		if (ring[i].blocked_method[0] && f->frames.n < TW_ANR_NAMES_MAX)
			f->frames.at[f->frames.n++] = ring[i].blocked_method;
		hash_text(f, ring[i].type);
		hash_text(f, ring[i].blocked_method);
		hash_text(f, ring[i].blocking_method);
	}
	return DEADLOCK;
}

/* --- a holder that is running --- */

/* For the last lock: the frame where its holder took it, and its callers. */
static void blame_holder(struct tw_anr_find *f, const json_t *last)
{
	const json_t *wants = json_object_get(last, "wants");
	const json_t *holder = tw_anr_at(f->threads, wants, "holder");
	size_t at = tw_anr_taken_at(holder, tw_json_text(wants, "id"));

	if (holder && at == json_array_size(json_object_get(holder, "frames")))
		at = 0;
	if (holder)
		tw_anr_blamed(f, holder, at, TW_ANR_PATH_FRAMES, &f->frames);
	else /* the holder is unknown: blame the waiting thread */
		tw_anr_blamed(f, tw_anr_at(f->threads, last, "thread"), 0, TW_ANR_PATH_FRAMES,
		        &f->frames);
}

static enum kind find_lock(struct tw_anr_find *f)
{
	const json_t *chain = json_object_get(f->process, "chain");
	const json_t *last = NULL;

	for (size_t i = 0; i < json_array_size(chain); i++) {
		const json_t *step = json_array_get(chain, i);
		struct held h;

		if (!json_is_object(json_object_get(step, "wants")))
			break;
		h = held_of(f, step);
		add_lock_detail(f, &h);
		hash_text(f, h.type);
		last = step;
	}
	if (last)
		blame_holder(f, last);
	hash_names(f, &f->frames);
	return LOCK;
}

/* --- no lock --- */

static enum kind find_binder(struct tw_anr_find *f)
{
	hash_text(f, f->interface ? f->interface : "");
	hash_text(f, f->method ? f->method : "");
	hash_text(f, f->frames.n ? f->frames.at[0] : "");
	return BINDER;
}

/* Blames what main executed during the ANR. UNKNOWN: its path is unknown, or not in the app. */
static enum kind find_path(struct tw_anr_find *f, const json_t *names)
{
	tw_anr_blamed_names(f, names, TW_ANR_PATH_FRAMES, &f->frames);
	if (f->frames.n == 0)
		return UNKNOWN;
	if (tw_anr_binder(f, names))
		return find_binder(f);
	hash_names(f, &f->frames);
	return path_is_io(names) ? IO : PATH;
}

static enum kind kind_of_end(const char *end)
{
	static const struct {
		const char *end;
		enum kind kind;
	} kinds[] = {{"io", IO}, {"binder", BINDER}, {"gc", GC}, {"sleeping", SLEEP},
	        {"waiting", WAIT}, {"running", RUN}, {"native", RUN}, {"no_cpu", NO_CPU},
	        {"idle", IDLE}};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].end, end) == 0)
			return kinds[i].kind;
	return UNKNOWN;
}

static bool lacks_cpu(struct tw_anr_find *f, const json_t *doc, const json_t *main, enum kind k)
{
	bool runnable = strcmp(tw_json_text(main, "sched_state"), "R") == 0;

	if (k != NO_CPU && !(k == RUN && runnable))
		return false;
	f->consumer = tw_anr_consumer(f, doc);
	return k == NO_CPU || f->consumer;
}

static enum kind find_moment(struct tw_anr_find *f, const json_t *doc, enum kind k)
{
	const json_t *main = tw_anr_at(f->threads, f->process, "main");

	if (k == IDLE || k == UNKNOWN)
		return k;
	if (lacks_cpu(f, doc, main, k)) {
		hash_text(f, f->consumer ? f->consumer : "");
		return NO_CPU;
	}
	tw_anr_blamed(f, main, 0, k == IO ? TW_ANR_PATH_FRAMES : 1, &f->frames);
	if (k == BINDER && tw_anr_binder(f, json_object_get(main, "frames")))
		return find_binder(f);
	hash_names(f, &f->frames);
	return k;
}

static enum kind find_without_lock(struct tw_anr_find *f, const json_t *doc, const char *end)
{
	json_t *sampled =
	        json_is_true(json_object_get(doc, "sampled")) ? path_of_samples(doc) : NULL;
	const json_t *names = sampled ? sampled : json_object_get(f->by->path, "frames");
	enum kind k = names ? find_path(f, names) : UNKNOWN;
	size_t n = f->frames.n;

	/* names of samples are freed with the list: copy them */
	for (size_t i = 0; sampled && i < n; i++) {
		const char *copy = tw_arena_str(f->arena, tw_str_of(f->frames.at[i]));

		f->frames.at[i] = copy ? copy : "";
	}
	json_decref(sampled);
	return k != UNKNOWN ? k : find_moment(f, doc, kind_of_end(end));
}

static enum kind find(struct tw_anr_find *f, const json_t *doc)
{
	const char *end = tw_json_text(doc, "end");

	if (strcmp(end, "deadlock") == 0 || strcmp(end, "possible_deadlock") == 0)
		return find_deadlock(f);
	if (json_array_size(json_object_get(f->process, "chain")) > 1 ||
	        strcmp(end, "holder_gone") == 0 || strcmp(end, "lock_unknown") == 0)
		return find_lock(f);
	return find_without_lock(f, doc, end);
}

/* --- the result --- */

static const char *short_name(const struct tw_anr_find *f, const char *name, enum tw_anr_part part)
{
	char plain[PLAIN_BYTES];
	struct tw_str s = {plain, tw_anr_frame_plain(tw_str_of(name), plain, sizeof plain)};
	const char *copy = tw_arena_str(f->arena, tw_anr_short(s, part));

	return copy ? copy : "";
}

static const char *join_classes(const struct tw_anr_find *f)
{
	const char *out = "";

	for (size_t i = 0; out && i < f->locks.n; i++) {
		const char *name = short_name(f, f->locks.at[i], TW_ANR_PART_CLASS);
		const char *between = i == 0 ? "" : i + 1 == f->locks.n ? " and " : ", ";

		out = tw_arena_printf(
		        f->arena, "%s%s%s", out, between, name[0] ? name : "an unnamed lock");
	}
	return out;
}

static const char *lock_title(const struct tw_anr_find *f, const char *frame)
{
	const char *type = f->locks.n ? f->locks.at[f->locks.n - 1] : "";
	const char *name = short_name(f, type, TW_ANR_PART_CLASS);

	return tw_arena_printf(
	        f->arena, "Lock%s%s, held in %s", name[0] ? " of " : "", name, frame);
}

static const char *binder_title(const struct tw_anr_find *f, const char *frame)
{
	if (!f->interface)
		return tw_arena_printf(f->arena, "Call to another process from %s", frame);
	return tw_arena_printf(f->arena, "%s.%s in another process, called by %s",
	        short_name(f, f->interface, TW_ANR_PART_CLASS), f->method, frame);
}

static const char *title_of(const struct tw_anr_find *f, enum kind k)
{
	static const char *const begins[] = {[PATH] = "Time spent in",
	        [IO] = "File, database or network in",
	        [GC] = "Garbage collection in",
	        [SLEEP] = "Sleep in",
	        [WAIT] = "Wait in",
	        [RUN] = "Running"};
	const char *frame =
	        f->frames.n ? short_name(f, f->frames.at[0], TW_ANR_PART_METHOD) : "unknown code";

	if (k == DEADLOCK)
		return tw_arena_printf(f->arena, "Deadlock of %s", join_classes(f));
	if (k == LOCK)
		return lock_title(f, frame);
	if (k == BINDER)
		return binder_title(f, frame);
	if (k == NO_CPU && f->consumer)
		return tw_arena_printf(f->arena, "No CPU: used by %s", f->consumer);
	if (k == NO_CPU)
		return "No CPU: used by others";
	if (k == IDLE)
		return "Idle when the report was made";
	if (k == UNKNOWN)
		return "No stack of the main thread";
	return tw_arena_printf(f->arena, "%s %s", begins[k], frame);
}

static json_t *list_of(const struct tw_anr_names *names)
{
	json_t *list = json_array();

	for (size_t i = 0; i < names->n; i++)
		(void)json_array_append_new(list, json_string(names->at[i]));
	return list;
}

static const char *detail_of(struct tw_anr_find *f)
{
	json_t *o = json_pack("{s:o, s:O}", "frames", list_of(&f->frames), "locks", f->lock_list);
	const char *text = NULL;
	char *dumped;

	if (f->interface)
		(void)json_object_set_new(o, "binder",
		        json_pack("{s:s, s:s}", "interface", f->interface, "method",
		                f->method ? f->method : ""));
	if (f->consumer)
		(void)json_object_set_new(o, "consumer", json_string(f->consumer));
	if (f->by->path)
		(void)json_object_set(o, "path", (json_t *)(uintptr_t)f->by->path);
	dumped = tw_json_dumps(o, JSON_COMPACT);
	if (dumped)
		text = tw_arena_str(f->arena, tw_str_of(dumped));
	free(dumped);
	json_decref(o);
	return text;
}

/* Applies the project's rules: the group's name and key. */
static bool apply_rules(struct tw_anr_find *f, struct tw_anr_cause *c)
{
	const struct tw_anr_subject s = {
	        c->kind, c->base, f->frames.at, f->locks.at, f->frames.n, f->locks.n};
	const char *merged, *named;

	tw_anr_rules_apply(f->by->rules, &s, &merged, &named);
	memcpy(c->key, c->base, sizeof c->key);
	if (merged) {
		const char *text = tw_arena_printf(f->arena, "merge\n%s", merged);

		if (!text)
			return false;
		key_of(text, c->key);
	}
	named = named ? named : merged;
	c->name = tw_arena_str(f->arena, tw_str_of(named ? named : ""));
	return c->name != NULL;
}

static bool write_cause(
        struct tw_anr_find *f, const json_t *doc, enum kind k, struct tw_anr_cause *c)
{
	const char *text;

	(void)tw_buf_add_u8(&f->hashed, '\0');
	if (tw_buf_status(&f->hashed) != TW_OK)
		return false;
	c->kind = tw_anr_kinds[k];
	text = tw_arena_printf(f->arena, "%s\n%s", c->kind, (const char *)f->hashed.data);
	if (!text)
		return false;
	key_of(text, c->base);
	c->title = title_of(f, k);
	c->verdict = tw_arena_str(f->arena, tw_str_of(tw_json_text(doc, "verdict")));
	c->detail = detail_of(f);
	return apply_rules(f, c) && c->title && c->verdict && c->detail;
}

enum tw_status tw_anr_cause_of(const json_t *doc, const struct tw_anr_blame *by, struct tw_arena *a,
        struct tw_anr_cause *ret, struct tw_err *err)
{
	struct tw_anr_find f = {.by = by, .arena = a, .lock_list = json_array()};
	bool written;

	f.process = tw_anr_at(json_object_get(doc, "processes"), doc, "blamed");
	f.threads = json_object_get(f.process, "threads");
	tw_buf_init(&f.hashed, HASHED_BYTES);
	written = f.lock_list && write_cause(&f, doc, find(&f, doc), ret);
	tw_buf_done(&f.hashed);
	json_decref(f.lock_list);
	return written ? TW_OK : tw_oom(err);
}
