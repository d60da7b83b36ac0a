/*
 * anr_frames.c - finds frames of the app, lock holders and calls to other processes in threads of
 * an ANR document.
 */

#include "server/base/text/json.h"
#include "server/fleet/anr/anr_cause_int.h"
#include "server/fleet/anr/anr_frame.h"

enum { PLAIN_BYTES = 1024, ALL_TAKEN_PERCENT = 90 };

const json_t *tw_anr_at(const json_t *list, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return NULL;
	return json_array_get(list, (size_t)json_integer_value(v));
}

/* --- frames of the app --- */

static void add(struct tw_anr_names *io, const char *name)
{
	if (io->n < TW_ANR_NAMES_MAX)
		io->at[io->n++] = name;
}

static bool same(const char *a, const char *b)
{
	char one[PLAIN_BYTES], other[PLAIN_BYTES];

	(void)tw_anr_frame_plain(tw_str_of(a), one, sizeof one);
	(void)tw_anr_frame_plain(tw_str_of(b), other, sizeof other);
	return strcmp(one, other) == 0;
}

/* Frames taken so far from one stack. */
struct taking {
	const struct tw_anr_find *f;
	struct tw_anr_names *to;
	size_t begun, max;
	bool bridges; /* compiler-generated bridges are taken too */
};

static void take(struct taking *t, const char *name)
{
	const struct tw_anr_blame *by = t->f->by;
	struct tw_str s = tw_str_of(name);

	if (t->to->n - t->begun >= t->max || s.len == 0 ||
	        (!t->bridges && tw_anr_frame_is_bridge(s)) || !tw_frame_rules_app(by->app, s) ||
	        tw_anr_rules_skip(by->rules, s))
		return;
	if (t->to->n > t->begun && same(t->to->at[t->to->n - 1], name))
		return;
	add(t->to, name);
}

static void take_frames(struct taking *t, const json_t *frames, size_t from)
{
	for (size_t i = from; i < json_array_size(frames); i++) {
		const json_t *frame = json_array_get(frames, i);

		if (!json_object_get(frame, "kind")) /* Java */
			take(t, tw_json_text(frame, "name"));
	}
}

static void take_names(struct taking *t, const json_t *names)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		take(t, name ? name : "");
	}
}

void tw_anr_blamed(const struct tw_anr_find *f, const json_t *thread, size_t from, size_t max,
        struct tw_anr_names *io)
{
	const json_t *frames = json_object_get(thread, "frames");
	struct taking t = {f, io, io->n, max, false};
	const char *top = tw_json_text(json_object_get(thread, "top"), "name");

	take_frames(&t, frames, from);
	if (io->n == t.begun) { /* the frame that took the lock is not the app's */
		take_frames(&t, frames, 0);
	}
	if (io->n == t.begun) {
		t.bridges = true;
		take_frames(&t, frames, 0);
	}
	if (io->n == t.begun && top[0])
		add(io, top);
}

void tw_anr_blamed_names(
        const struct tw_anr_find *f, const json_t *names, size_t max, struct tw_anr_names *io)
{
	struct taking t = {f, io, io->n, max, false};

	take_names(&t, names);
	t.bridges = true;
	if (io->n == t.begun)
		take_names(&t, names);
}

size_t tw_anr_taken_at(const json_t *thread, const char *object)
{
	const json_t *frames = json_object_get(thread, "frames");

	for (size_t i = json_array_size(frames); i-- > 0;) {
		const json_t *locks = json_object_get(json_array_get(frames, i), "locks");

		for (size_t k = 0; k < json_array_size(locks); k++) {
			const json_t *lock = json_array_get(locks, k);

			if (strcmp(tw_json_text(lock, "how"), "locked") == 0 &&
			        strcmp(tw_json_text(lock, "id"), object) == 0)
				return i;
		}
	}
	return json_array_size(frames);
}

/* --- calls to other processes --- */

static const char *name_at(const json_t *frames, size_t i)
{
	const json_t *frame = json_array_get(frames, i);
	const char *name =
	        json_is_string(frame) ? json_string_value(frame) : tw_json_text(frame, "name");

	return name;
}

static const char *copy(const struct tw_anr_find *f, struct tw_str s)
{
	return tw_arena_str(f->arena, s);
}

/* "pkg.IFoo$Stub$Proxy.bar", or any "pkg.Foo.bar". */
static void name_call(struct tw_anr_find *f, struct tw_str name)
{
	size_t dot = tw_str_find_last(name, TW_STR("."));
	size_t proxy = tw_str_find(name, TW_STR("$Stub$Proxy"));

	f->method = copy(f, dot < name.len ? tw_str_from(name, dot + 1) : name);
	if (dot < name.len)
		name.len = dot;
	if (proxy < name.len)
		name.len = proxy;
	f->interface = copy(f, name);
}

/* "android::BpFoo::bar(int)" */
static bool name_native(struct tw_anr_find *f, struct tw_str name)
{
	size_t at = tw_str_find(name, TW_STR("::Bp"));
	size_t end;

	if (at == name.len)
		return false;
	name = tw_str_from(name, at + sizeof "::Bp" - 1);
	end = tw_str_find(name, TW_STR("::"));
	if (end == name.len)
		return false;
	f->interface = copy(f, (struct tw_str){name.ptr, end});
	name = tw_str_from(name, end + 2);
	f->method = copy(f, tw_str_split(&name, '('));
	return true;
}

bool tw_anr_binder(struct tw_anr_find *f, const json_t *frames)
{
	size_t n = json_array_size(frames);
	bool calls = false;

	for (size_t i = 0; i < n; i++) {
		struct tw_str name = tw_str_of(name_at(frames, i));
		bool java = tw_str_find(name, TW_STR("BinderProxy.transact")) < name.len;

		if (java || tw_str_find(name, TW_STR("IPCThreadState::transact")) < name.len) {
			calls = true;
			continue;
		}
		if (calls && tw_str_find(name, TW_STR("::")) < name.len) {
			if (name_native(f, name))
				return true;
			continue;
		}
		if (calls && tw_str_find(name, TW_STR(".")) < name.len &&
		        tw_str_find(name, TW_STR(".so")) == name.len) {
			name_call(f, name);
			return true;
		}
	}
	return calls;
}

/* --- processor load --- */

struct load { /* "45% 4242/com.app: 30% user + ..." */
	uint64_t percent, pid;
	struct tw_str name;
	bool total;
};

static bool read_load(const char *text, struct load *ret)
{
	struct tw_str s = tw_str_trim(tw_str_of(text));
	struct tw_str number;

	*ret = (struct load){0};
	if (s.len && s.ptr[0] == '+')
		s = tw_str_from(s, 1);
	if (tw_str_find(s, TW_STR("%")) == s.len)
		return false;
	number = tw_str_split(&s, '%');
	number = tw_str_split(&number, '.');
	if (!tw_str_u64(number, 100000, &ret->percent))
		return false;
	s = tw_str_trim(s);
	ret->total = tw_str_starts(s, TW_STR("TOTAL"));
	if (ret->total)
		return true;
	number = tw_str_split(&s, '/');
	ret->name = tw_str_split(&s, ':');
	ret->name = tw_str_split(&ret->name, '/');
	return tw_str_u64(number, UINT32_MAX, &ret->pid);
}

const char *tw_anr_consumer(const struct tw_anr_find *f, const json_t *doc)
{
	const json_t *loads = json_object_get(doc, "loads");
	uint64_t pid = (uint64_t)json_integer_value(json_object_get(f->process, "pid"));
	uint64_t total = 0, own = 0, most = 0;
	struct tw_str who = {NULL, 0};

	for (size_t i = 0; i < json_array_size(loads); i++) {
		const char *text = json_string_value(json_array_get(loads, i));
		struct load l;

		if (!text || !read_load(text, &l))
			continue;
		if (l.total)
			total = l.percent;
		else if (l.pid == pid)
			own += l.percent;
		else if (l.percent > most) {
			most = l.percent;
			who = l.name;
		}
	}
	if (total < ALL_TAKEN_PERCENT || own * 2 >= most || !who.ptr)
		return NULL;
	return copy(f, who);
}
