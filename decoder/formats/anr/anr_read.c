#include "decoder/formats/anr/anr_report.h"

#include "decoder/formats/anr/anr_scan.h"
#include "decoder/formats/json/json_text.h"

struct again {
	struct tw_anr *m;
	const struct tw_anr_namer *namer;
};

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static bool is_true(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static uint32_t text(struct again *a, const json_t *o, const char *key)
{
	return tw_anr_text(a->m, tw_json_text_of(o, key), TW_NO_OFFSET);
}

static void read_facts(struct again *a, const json_t *o, uint32_t facts[TW_ANR_FACTS])
{
	for (int i = 0; i < TW_ANR_FACTS; i++)
		facts[i] = text(a, o, tw_anr_fact_name((enum tw_anr_fact)i));
}

/* --- locks --- */

/* "0x0d3a2f0a", "@0x1" */
static uint64_t object_of(const json_t *lock)
{
	struct tw_str id = tw_json_text_of(lock, "id");
	bool address = tw_anr_eat(&id, "@");
	uint64_t v = 0;

	(void)tw_anr_eat_hex(&id, &v);
	return address ? v | TW_ANR_ADDRESS : v & ~TW_ANR_ADDRESS;
}

static void add_lock(struct again *a, const json_t *lock, enum tw_anr_how how, uint64_t holder)
{
	struct tw_anr *m = a->m;
	struct tw_str type = tw_json_text_of(lock, "type");
	const struct tw_anr_line l = {.how = how,
	        .object = object_of(lock),
	        .holder = holder,
	        .text = type.len ? a->namer->type(a->namer->arg, type) : type};

	if (tw_anr_add_lock(m, &l, TW_NO_OFFSET) && m->threads[m->n_threads - 1].n_frames == 0)
		m->locks[m->n_locks - 1].frame = TW_ANR_NO_INDEX;
}

static bool how_of(const json_t *lock, enum tw_anr_how *ret)
{
	static const struct {
		const char *word;
		enum tw_anr_how how;
	} names[] = {{"locked", TW_ANR_LOCKED}, {"wants", TW_ANR_WANTED}, {"waits", TW_ANR_WAITING},
	        {"sleeps", TW_ANR_SLEEPING}};
	struct tw_str how = tw_json_text_of(lock, "how");

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (tw_str_eq(how, tw_str_of(names[i].word))) {
			*ret = names[i].how;
			return true;
		}
	return false;
}

/* The owner is stored with the thread: it applies to the first lock that the thread wants. */
static void read_frame_locks(
        struct again *a, const json_t *frame, const json_t *wants, bool *wanted)
{
	const json_t *locks = json_object_get(frame, "locks");

	for (size_t i = 0; i < json_array_size(locks); i++) {
		const json_t *lock = json_array_get(locks, i);
		enum tw_anr_how how;
		uint64_t holder = 0;

		if (!how_of(lock, &how))
			continue;
		if (how == TW_ANR_WANTED && !*wanted) {
			holder = number(wants, "holder_tid");
			*wanted = true;
		}
		add_lock(a, lock, how, holder);
	}
}

/* --- threads --- */

/* A frame whose function is not found keeps its build id. */
static void read_native(struct again *a, struct tw_anr_line *l, struct tw_str build_id)
{
	struct tw_str function = TW_STR("");

	if (build_id.len)
		function = a->namer->native(a->namer->arg, l->name, build_id);
	if (function.len)
		l->name = function;
	if (tw_anr_add_frame(a->m, l, TW_NO_OFFSET) && !function.len)
		a->m->frames[a->m->n_frames - 1].build_id =
		        tw_anr_text(a->m, build_id, TW_NO_OFFSET);
}

static void read_frame(struct again *a, const json_t *frame)
{
	struct tw_str kind = tw_json_text_of(frame, "kind");
	struct tw_anr_line l = {
	        .name = tw_json_text_of(frame, "name"), .text = tw_json_text_of(frame, "where")};

	if (kind.len == 0) {
		a->namer->frame(a->namer->arg, a->m, l.name, l.text);
		return;
	}
	l.kind = tw_str_eq(kind, TW_STR("kernel")) ? TW_ANR_KERNEL : TW_ANR_NATIVE;
	read_native(a, &l, tw_json_text_of(frame, "build_id"));
}

void tw_anr_document_add_frame(
        struct tw_anr *m, struct tw_str name, struct tw_str where, bool inlined)
{
	const struct tw_anr_line l = {.kind = TW_ANR_AT, .name = name, .text = where};

	if (tw_anr_add_frame(m, &l, TW_NO_OFFSET))
		m->frames[m->n_frames - 1].inlined = inlined;
}

/* If the document omits the frames, the thread's own lock members are used. */
static void read_stack(struct again *a, const json_t *thread)
{
	const json_t *frames = json_object_get(thread, "frames");
	const json_t *wants = json_object_get(thread, "wants");
	const json_t *held = json_object_get(thread, "held");
	bool wanted = false;

	a->namer->thread(a->namer->arg);
	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *frame = json_array_get(frames, i);

		read_frame(a, frame);
		read_frame_locks(a, frame, wants, &wanted);
	}
	if (json_is_object(wants) && !wanted)
		add_lock(a, wants, TW_ANR_WANTED, number(wants, "holder_tid"));
	for (size_t i = 0; json_array_size(frames) == 0 && i < json_array_size(held); i++)
		add_lock(a, json_array_get(held, i), TW_ANR_LOCKED, 0);
}

static void read_thread(struct again *a, const json_t *thread)
{
	struct tw_str letter = tw_json_text_of(thread, "sched_state");
	const struct tw_anr_line l = {.name = tw_json_text_of(thread, "name"),
	        .text = tw_json_text_of(thread, "state"),
	        .tid = number(thread, "tid"),
	        .sys_tid = number(thread, "sys_tid"),
	        .priority = (int32_t)json_integer_value(json_object_get(thread, "priority")),
	        .daemon = is_true(thread, "daemon"),
	        .attached = !json_is_false(json_object_get(thread, "attached")),
	        .starting = is_true(thread, "starting")};
	struct tw_anr_thread *t;

	if (!tw_anr_add_thread(a->m, &l, TW_NO_OFFSET))
		return;
	t = &a->m->threads[a->m->n_threads - 1];
	t->track = number(thread, "track");
	t->nice = (int32_t)json_integer_value(json_object_get(thread, "nice"));
	t->sched_state = (char)(letter.len ? letter.ptr[0] : '\0');
	t->run_ns = number(thread, "run_ns");
	t->queue_ns = number(thread, "queue_ns");
	t->user_ticks = number(thread, "user_ticks");
	t->kernel_ticks = number(thread, "kernel_ticks");
	t->channel = text(a, thread, "channel");
	read_stack(a, thread);
	t->frames_left_out += (uint32_t)number(thread, "more_frames");
}

static void read_process(struct again *a, const json_t *process)
{
	const json_t *threads = json_object_get(process, "threads");
	int64_t at_ns = (int64_t)number(process, "at_ns");
	struct tw_anr_dump *d;

	if (!tw_anr_add_dump(a->m, number(process, "pid"), is_true(process, "dated") ? at_ns : -1,
	            TW_NO_OFFSET))
		return;
	d = &a->m->dumps[a->m->n_dumps - 1];
	d->process = !is_true(process, "stacks_only");
	read_facts(a, json_object_get(process, "facts"), d->facts);
	for (size_t i = 0; i < json_array_size(threads); i++)
		read_thread(a, json_array_get(threads, i));
	d->threads_left_out += (uint32_t)number(process, "threads_left_out");
}

bool tw_anr_document_read(struct tw_anr *m, const json_t *doc, const struct tw_anr_namer *namer,
        int64_t **ret_times_ns)
{
	struct again a = {m, namer};
	const json_t *processes = json_object_get(doc, "processes");
	const json_t *blamed = json_object_get(doc, "blamed");
	const json_t *loads = json_object_get(doc, "loads");
	int64_t *times = tw_arena_zalloc(m->arena, json_array_size(processes) + 1, sizeof *times);

	if (!times)
		return false;
	read_facts(&a, json_object_get(doc, "facts"), m->facts);
	for (size_t i = 0; i < json_array_size(loads) && m->n_loads < TW_ANR_MAX_LOADS; i++) {
		const char *load = json_string_value(json_array_get(loads, i));

		m->loads[m->n_loads++] = tw_anr_text(m, tw_str_of(load ? load : ""), TW_NO_OFFSET);
	}
	for (size_t i = 0; i < json_array_size(processes); i++) {
		const json_t *process = json_array_get(processes, i);

		times[m->n_dumps] = (int64_t)number(process, "at_ns");
		read_process(&a, process);
	}
	if (json_is_integer(blamed) && json_integer_value(blamed) >= 0)
		m->dumping_pid = number(
		        json_array_get(processes, (size_t)json_integer_value(blamed)), "pid");
	*ret_times_ns = times;
	return !m->no_memory;
}
