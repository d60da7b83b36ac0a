#include "decoder/formats/anr/anr_classify.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/formats/anr/anr_markup.h"
#include "decoder/formats/anr/anr_scan.h"

enum { NAME_BYTES = 160 };

static const char *const end_names[TW_ANR_ENDS] = {
        [TW_ANR_NO_STACK] = "no_stack",
        [TW_ANR_IDLE] = "idle",
        [TW_ANR_RUNS] = "running",
        [TW_ANR_NO_CPU] = "no_cpu",
        [TW_ANR_CALLS_NATIVE] = "native",
        [TW_ANR_IO] = "io",
        [TW_ANR_BINDER] = "binder",
        [TW_ANR_SLEEPS] = "sleeping",
        [TW_ANR_WAITS] = "waiting",
        [TW_ANR_GC] = "gc",
        [TW_ANR_LOCK_UNKNOWN] = "lock_unknown",
        [TW_ANR_HOLDER_MISSING] = "holder_gone",
        [TW_ANR_DEADLOCK] = "deadlock",
        [TW_ANR_POSSIBLE_DEADLOCK] = "possible_deadlock",
};

/* Describes a thread's activity, before a method's name; "": no description. */
static const char *const phrases[TW_ANR_ENDS] = {
        [TW_ANR_NO_STACK] = "has no stack in the dump",
        [TW_ANR_IDLE] = "waits for its next message",
        [TW_ANR_RUNS] = "runs ",
        [TW_ANR_NO_CPU] = "waits for a processor more than it runs, in ",
        [TW_ANR_CALLS_NATIVE] = "runs ",
        [TW_ANR_IO] = "runs ",
        [TW_ANR_BINDER] = "waits for another process in ",
        [TW_ANR_SLEEPS] = "sleeps in ",
        [TW_ANR_WAITS] = "waits in ",
        [TW_ANR_GC] = "waits for the garbage collector in ",
        [TW_ANR_LOCK_UNKNOWN] = "waits for a lock whose holder is not seen, in ",
        [TW_ANR_HOLDER_MISSING] = "waits for a lock in ",
        [TW_ANR_DEADLOCK] = "waits for a lock in ",
        [TW_ANR_POSSIBLE_DEADLOCK] = "waits for a lock in ",
};

static const char no_main[] = "the report has no stack of the main thread";

const char *tw_anr_end_name(enum tw_anr_end end)
{
	return end_names[end];
}

struct classifier {
	const struct tw_anr *m;
	const struct tw_anr_dump *d;
	struct tw_anr_finding *f;
	const struct tw_anr_thread *threads; /* of the dump */
	int64_t waited_ms;                   /* -1: unknown for this dump */
	bool no_memory;
};

/* --- parts of the verdict --- */

static const char *text(struct classifier *j, const char *s)
{
	if (!s)
		j->no_memory = true;
	return s ? s : "";
}

/* Truncated at a character boundary to a length that fits a sentence. */
static struct tw_str clip(struct tw_str s)
{
	if (s.len <= NAME_BYTES)
		return s;
	s.len = NAME_BYTES;
	while (s.len && ((unsigned char)s.ptr[s.len] & 0xC0) == 0x80)
		s.len--;
	return s;
}

#define ARG(s) (int)(s).len, (s).ptr
#define METHOD TW_ANR_MARKUP_METHOD "%.*s" TW_ANR_MARKUP_END
#define CLASS  TW_ANR_MARKUP_CLASS "%.*s" TW_ANR_MARKUP_END

static const char *describe_thread(struct classifier *j, uint32_t i)
{
	const struct tw_anr_thread *t = &j->threads[i];
	struct tw_str name = clip(tw_anr_str(j->m, t->name));

	if (i == j->f->main)
		return "main";
	if (name.len == 0)
		return text(j, tw_arena_printf(j->m->arena, "thread %llu",
		                       (unsigned long long)(t->tid ? t->tid : t->sys_tid)));
	return text(j, tw_arena_printf(j->m->arena, "%.*s", ARG(name)));
}

static const char *describe_frame(struct classifier *j, const struct tw_anr_thread *t)
{
	const struct tw_anr *m = j->m;
	uint32_t top = tw_anr_activity_frame(m, t);
	uint32_t app = tw_anr_app_frame(m, t);
	struct tw_str name;

	if (top == TW_ANR_NO_INDEX) {
		name = clip(tw_anr_str(m, t->channel));
		return name.len ? text(j, tw_arena_printf(m->arena, "the kernel's %.*s", ARG(name)))
		                : "";
	}
	name = tw_anr_str(m, m->frames[top].name);
	if (m->frames[top].kind != TW_ANR_JAVA)
		return text(j, tw_arena_printf(m->arena, "%.*s", ARG(clip(name))));
	if (app == TW_ANR_NO_INDEX || app == top)
		return text(j, tw_arena_printf(m->arena, METHOD, ARG(name)));
	return text(j, tw_arena_printf(m->arena, METHOD " for " METHOD, ARG(name),
	                       ARG(tw_anr_str(m, m->frames[app].name))));
}

static const char *describe_lock(struct classifier *j, uint32_t thread)
{
	int32_t at = j->f->graph.edges[thread].lock;
	const struct tw_anr *m = j->m;
	struct tw_str type;
	bool of_class;

	if (at < 0 || j->threads[thread].n_locks == 0)
		return "a lock";
	type = tw_anr_str(m, m->locks[j->threads[0].lock + (uint32_t)at].type);
	of_class = tw_anr_eat(&type, "java.lang.Class<");
	if (of_class && type.len && type.ptr[type.len - 1] == '>')
		type.len--;
	if (type.len == 0)
		return "a lock";
	return text(j, tw_arena_printf(m->arena, "%s of " CLASS,
	                       of_class ? "the class lock" : "a lock", ARG(type)));
}

static const char *describe_missing_holder(
        struct classifier *j, uint32_t thread, const char *waited)
{
	int32_t at = j->f->graph.edges[thread].lock;
	const struct tw_anr_lock *l = &j->m->locks[j->threads[0].lock + (uint32_t)at];

	return text(j, tw_arena_printf(j->m->arena,
	                       "waits%s for %s held by thread %llu, which the dump does not have",
	                       waited, describe_lock(j, thread), (unsigned long long)l->holder));
}

static const char *describe_activity(struct classifier *j, uint32_t thread, enum tw_anr_end end)
{
	const char *frame = describe_frame(j, &j->threads[thread]);
	const char *phrase = phrases[end];
	bool needs_frame = phrase[strlen(phrase) - 1] == ' ';

	if (end == TW_ANR_IO && j->threads[thread].n_frames == 0)
		phrase = "waits for input or output in ";
	if (end == TW_ANR_HOLDER_MISSING)
		return describe_missing_holder(j, thread, "");
	return text(j, tw_arena_printf(j->m->arena, "%s%s", phrase, needs_frame ? frame : ""));
}

/* "5 s", "1.5 s", "20 ms"; "" if unknown. */
static const char *duration(struct classifier *j)
{
	int64_t ms = j->waited_ms;

	if (ms < 0)
		return "";
	if (ms < 1000)
		return text(j, tw_arena_printf(j->m->arena, " %lld ms", (long long)ms));
	if (ms % 1000 < 50 || ms >= 100000)
		return text(j, tw_arena_printf(j->m->arena, " %lld s", (long long)(ms / 1000)));
	return text(j, tw_arena_printf(j->m->arena, " %lld.%lld s", (long long)(ms / 1000),
	                       (long long)(ms % 1000 / 100)));
}

/* --- the verdict --- */

static const char *without_chain(struct classifier *j)
{
	const char *waited = duration(j);
	const char *does = describe_activity(j, j->f->main, j->f->end);

	if (j->f->end == TW_ANR_IDLE)
		return "main was idle when the dump was taken: the work that blocked it had ended";
	if (j->f->end == TW_ANR_NO_STACK)
		return no_main;
	if (j->f->end == TW_ANR_HOLDER_MISSING)
		return text(j, tw_arena_printf(j->m->arena, "main %s",
		                       describe_missing_holder(j, j->f->main, waited)));
	if (*waited && j->f->end != TW_ANR_LOCK_UNKNOWN)
		return text(j, tw_arena_printf(j->m->arena, "main did not respond for%s: it %s",
		                       waited, does));
	return text(j, tw_arena_printf(j->m->arena, "main %s", does));
}

/* The chain's length, which may exceed its stored part. */
static uint32_t steps(const struct tw_anr_finding *f, uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	for (; from != to; from = (uint32_t)f->graph.edges[from].to)
		n++;
	return n;
}

/* The activity of the thread that main waits for, and so on to the end. */
static const char *rest_of_chain(struct classifier *j)
{
	const struct tw_anr_finding *f = j->f;
	uint32_t holder = f->chain[1];
	uint32_t last = f->culprit;
	uint32_t between = steps(f, holder, last);

	if (between == 0)
		return describe_activity(j, holder, f->end);
	if (between > 1)
		return text(j,
		        tw_arena_printf(j->m->arena, "waits for %s; %u threads further on, %s %s",
		                describe_lock(j, holder), between, describe_thread(j, last),
		                describe_activity(j, last, f->end)));
	return text(j, tw_arena_printf(j->m->arena, "waits for %s held by %s, which %s",
	                       describe_lock(j, holder), describe_thread(j, last),
	                       describe_activity(j, last, f->end)));
}

/* --- deadlocks --- */

static const char *kind_of_cycle(const struct tw_anr_cycle *c)
{
	return c->certain ? "deadlock" : "possible deadlock";
}

/* Two steps of a cycle, from one of its members. */
static const char *describe_cycle(struct classifier *j, uint32_t member, const char *waited)
{
	const struct tw_anr_graph *g = &j->f->graph;
	uint32_t holder = (uint32_t)g->edges[member].to;
	uint32_t next = (uint32_t)g->edges[holder].to;
	uint32_t n = g->cycles[g->cycle_of[member] - 1].n;
	const char *tail = "";

	if (n > 2)
		tail = text(j, tw_arena_printf(j->m->arena, ", in a ring of %u threads", n));
	return text(j, tw_arena_printf(j->m->arena,
	                       "%s waits%s for %s held by %s, which waits for %s "
	                       "held by %s%s",
	                       describe_thread(j, member), waited, describe_lock(j, member),
	                       describe_thread(j, holder), describe_lock(j, holder),
	                       describe_thread(j, next), tail));
}

/* Main is a member, or waits for one. */
static const char *describe_deadlock(struct classifier *j)
{
	const struct tw_anr_finding *f = j->f;
	const struct tw_anr_graph *g = &f->graph;
	const char *kind = kind_of_cycle(&g->cycles[g->cycle_of[f->culprit] - 1]);

	if (g->cycle_of[f->main])
		return text(j, tw_arena_printf(j->m->arena, "%s: %s", kind,
		                       describe_cycle(j, f->main, duration(j))));
	return text(j, tw_arena_printf(j->m->arena, "%s: main waits%s for %s held by %s; %s", kind,
	                       duration(j), describe_lock(j, f->main),
	                       describe_thread(j, f->chain[1]), describe_cycle(j, f->culprit, "")));
}

/* A cycle that main does not wait for is not the cause, but is reported too. */
static const char *add_other_cycles(struct classifier *j, const char *verdict)
{
	const struct tw_anr_graph *g = &j->f->graph;
	uint32_t mains = j->f->main == TW_ANR_NO_INDEX ? 0 : g->cycle_of[j->f->culprit];
	uint32_t other = mains == 1 ? 1 : 0;
	uint32_t others = g->n_cycles - (mains ? 1 : 0);
	const char *tail = "";

	if (others == 0)
		return verdict;
	if (others > 1)
		tail = text(j, tw_arena_printf(j->m->arena, ", and %u more", others - 1));
	return text(j, tw_arena_printf(j->m->arena, "%s; also a %s: %s%s", verdict,
	                       kind_of_cycle(&g->cycles[other]),
	                       describe_cycle(j, g->cycles[other].first, ""), tail));
}

static const char *describe_cause(struct classifier *j)
{
	const struct tw_anr_finding *f = j->f;

	if (f->main == TW_ANR_NO_INDEX)
		return no_main;
	if (f->n_chain < 2)
		return without_chain(j);
	if (f->end == TW_ANR_DEADLOCK || f->end == TW_ANR_POSSIBLE_DEADLOCK)
		return describe_deadlock(j);
	return text(j, tw_arena_printf(j->m->arena, "main waits%s for %s held by %s, which %s",
	                       duration(j), describe_lock(j, f->main),
	                       describe_thread(j, f->chain[1]), rest_of_chain(j)));
}

/* --- one dump --- */

static uint32_t main_of(const struct tw_anr *m, const struct tw_anr_dump *d)
{
	uint32_t first = TW_ANR_NO_INDEX;
	uint32_t named = TW_ANR_NO_INDEX;

	for (uint32_t i = 0; i < d->n_threads; i++) {
		const struct tw_anr_thread *t = &m->threads[d->thread + i];

		if (d->pid && t->sys_tid == d->pid)
			return i;
		if (t->tid == 1 && first == TW_ANR_NO_INDEX)
			first = i;
		if (named == TW_ANR_NO_INDEX && tw_str_eq(tw_anr_str(m, t->name), TW_STR("main")))
			named = i;
	}
	return first != TW_ANR_NO_INDEX ? first : named;
}

static void follow(struct classifier *j)
{
	struct tw_anr_finding *f = j->f;
	const struct tw_anr_graph *g = &f->graph;
	uint32_t last, cycle;

	f->n_chain = tw_anr_chain(g, f->main, f->chain, TW_ANR_CHAIN_MAX);
	f->culprit = g->ends[f->main];
	cycle = g->cycle_of[f->culprit];
	last = f->culprit;
	if (cycle)
		f->end = g->cycles[cycle - 1].certain ? TW_ANR_DEADLOCK : TW_ANR_POSSIBLE_DEADLOCK;
	else if (g->edges[last].to == TW_ANR_MISSING)
		f->end = TW_ANR_HOLDER_MISSING;
	else
		f->end = tw_anr_doing(
		        j->m, &j->threads[last], g->edges[last].lock >= 0, last == f->main);
}

/* Hash of the blamed threads: in a deadlock the whole cycle, in any order. */
static uint64_t cluster_of(const struct classifier *j)
{
	const struct tw_anr_finding *f = j->f;
	const struct tw_anr_graph *g = &f->graph;
	uint32_t cycle = g->cycle_of[f->culprit];
	enum tw_anr_end end = f->end == TW_ANR_NO_CPU ? TW_ANR_RUNS : f->end; /* the same cause */
	uint64_t h = 0;

	if (!cycle)
		return tw_anr_stack_hash(j->m, &j->threads[f->culprit]) * 31 + end;
	for (uint32_t i = 0, at = f->culprit; i < g->cycles[cycle - 1].n; i++) {
		h += tw_anr_stack_hash(j->m, &j->threads[at]);
		at = (uint32_t)g->edges[at].to;
	}
	return h * 31 + f->end;
}

/* Classes of the locks that main waits for, in chain order. */
static uint64_t add_locks(const struct classifier *j, uint64_t h)
{
	const struct tw_anr_finding *f = j->f;

	for (uint32_t i = 0; i < f->n_chain; i++) {
		int32_t lock = f->graph.edges[f->chain[i]].lock;
		struct tw_str type = {"", 0};

		if (lock >= 0)
			type = tw_anr_str(
			        j->m, j->m->locks[j->threads[0].lock + (uint32_t)lock].type);
		h = tw_fnv64(h, type);
	}
	return h;
}

static bool draw(struct classifier *j)
{
	const struct tw_anr *m = j->m;
	uint32_t n = j->d->n_threads;
	struct tw_anr_node *nodes = tw_arena_alloc(m->arena, (size_t)n + 1, sizeof *nodes);
	uint32_t first = n ? j->threads[0].lock : 0;
	uint32_t n_locks = 0;

	if (!nodes)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		nodes[i] = (struct tw_anr_node){
		        j->threads[i].tid, tw_anr_blocked(tw_anr_str(m, j->threads[i].state))};
		n_locks += j->threads[i].n_locks;
	}
	return tw_anr_graph(
	        m->arena, nodes, n, n_locks ? m->locks + first : NULL, n_locks, &j->f->graph);
}

static const struct tw_anr_thread no_thread;

static bool classify_dump(const struct tw_anr *m, uint32_t dump, struct tw_anr_summary *s)
{
	struct tw_anr_finding *f = &s->findings[dump];
	struct classifier j = {.m = m, .d = &m->dumps[dump], .f = f, .waited_ms = -1};

	j.threads = j.d->n_threads ? m->threads + j.d->thread : &no_thread;
	if (dump == s->blamed)
		j.waited_ms = s->waited_ms;
	if (!draw(&j))
		return false;
	if (f->main != TW_ANR_NO_INDEX) {
		f->main_frame = tw_anr_app_frame(m, &j.threads[f->main]);
		follow(&j);
		f->cluster = add_locks(&j, cluster_of(&j));
	}
	f->verdict = add_other_cycles(&j, describe_cause(&j));
	return !j.no_memory;
}

/* --- the report --- */

static const struct {
	const char *word, *kind;
} kinds[] = {
        {"Input dispatching timed out", "input"},
        {"keyDispatchingTimedOut", "input"},
        {"Broadcast of", "broadcast"},
        {"did not then call Service.startForeground", "foreground_service"},
        {"startForegroundService", "foreground_service"},
        {"xecuting service", "service"},
        {"ontentProvider", "provider"},
        {"onStartJob", "job"},
        {"onStopJob", "job"},
        {"WATCHDOG", "watchdog"},
        {"Blocked in", "watchdog"},
        {"Application Not Responding", "watchdog"},
        {"ANR detected", "watchdog"},
};

static const char *kind_of(struct tw_str reason)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (tw_anr_find(reason, kinds[i].word) < reason.len)
			return kinds[i].kind;
	return "unknown";
}

/* "Waited 5008ms", "for at least 5000 ms", "head age: 5523.1ms" */
static int64_t waited_of(struct tw_str reason)
{
	static const char *const prefixes[] = {"aited ", "at least ", "head age: "};

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t at = tw_anr_find(reason, prefixes[i]);
		struct tw_str rest = tw_str_from(reason, at);
		uint64_t ms, part;

		if (!tw_anr_eat(&rest, prefixes[i]) || !tw_anr_eat_number(&rest, &ms) ||
		        ms > INT32_MAX)
			continue;
		if (tw_anr_eat(&rest, "."))
			(void)tw_anr_eat_number(&rest, &part);
		rest = tw_anr_skip_blanks(rest);
		if (tw_anr_eat(&rest, "ms"))
			return (int64_t)ms;
	}
	return -1;
}

static void read_reason(const struct tw_anr *m, struct tw_anr_summary *s)
{
	static const enum tw_anr_fact tries[] = {
	        TW_ANR_FACT_subject, TW_ANR_FACT_reason, TW_ANR_FACT_watchdog, TW_ANR_FACT_what};
	struct tw_str reason = {"", 0};

	for (size_t i = 0; reason.len == 0 && i < sizeof tries / sizeof *tries; i++)
		reason = tw_anr_str(m, m->facts[tries[i]]);
	s->reason = reason;
	s->kind = kind_of(reason);
	s->waited_ms = waited_of(reason);
}

static bool is_of_name(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '.' || c == ':';
}

/* Whether the text names exactly this process, rather than a longer name containing it. */
static bool mentions(struct tw_str text, struct tw_str name)
{
	for (size_t at = 0; name.len && at + name.len <= text.len; at++) {
		size_t end = at + name.len;

		if (memcmp(text.ptr + at, name.ptr, name.len) == 0 &&
		        (at == 0 || !is_of_name(text.ptr[at - 1])) &&
		        (end == text.len || !is_of_name(text.ptr[end])))
			return true;
	}
	return false;
}

/* How certain the report is about the process of a dump. */
static int blame_of(const struct tw_anr *m, const struct tw_anr_dump *d, bool has_main)
{
	static const enum tw_anr_fact names[] = {
	        TW_ANR_FACT_what, TW_ANR_FACT_process, TW_ANR_FACT_package};
	static const enum tw_anr_fact reasons[] = {TW_ANR_FACT_subject, TW_ANR_FACT_reason};
	struct tw_str command = tw_anr_str(m, d->facts[TW_ANR_FACT_command]);
	struct tw_str name = tw_anr_take_word(&command);
	struct tw_str reported_pid = tw_anr_str(m, m->facts[TW_ANR_FACT_pid]);
	uint64_t pid;

	if (!has_main)
		return d->n_threads ? 1 : 0;
	if (d->pid && d->pid == m->dumping_pid)
		return 6;
	if (d->pid && tw_anr_eat_number(&reported_pid, &pid) && pid == d->pid)
		return 5;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (mentions(tw_anr_str(m, m->facts[names[i]]), name))
			return 4;
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (mentions(tw_anr_str(m, m->facts[reasons[i]]), name))
			return 3;
	return 2;
}

/* The dump that the report is about: of the process named as not responding, otherwise the first
 * with a main thread, otherwise the first with threads. */
static uint32_t blamed(const struct tw_anr *m, const struct tw_anr_summary *s)
{
	uint32_t best = TW_ANR_NO_INDEX;
	int most = 0;

	for (uint32_t i = 0; i < m->n_dumps; i++) {
		int blame = blame_of(m, &m->dumps[i], s->findings[i].main != TW_ANR_NO_INDEX);

		if (blame > most) {
			most = blame;
			best = i;
		}
	}
	return best;
}

static uint32_t sample_frame(const struct tw_anr *m, const struct tw_anr_summary *s, uint32_t dump)
{
	const struct tw_anr_finding *f = &s->findings[dump];

	if (m->dumps[dump].process || f->main == TW_ANR_NO_INDEX)
		return TW_ANR_NO_INDEX;
	if (f->main_frame != TW_ANR_NO_INDEX)
		return f->main_frame;
	return tw_anr_activity_frame(m, &m->threads[m->dumps[dump].thread + f->main]);
}

/* For samples at intervals: the most frequent frame of main. */
static bool classify_samples(const struct tw_anr *m, struct tw_anr_summary *s, int64_t span_ns)
{
	uint32_t *counts = tw_arena_zalloc(m->arena, m->n_texts, sizeof *counts);
	uint32_t best = 0;
	uint32_t n = 0;

	if (!counts)
		return false;
	for (uint32_t i = 0; i < m->n_dumps; i++) {
		uint32_t frame = sample_frame(m, s, i);

		if (frame == TW_ANR_NO_INDEX)
			continue;
		n++;
		if (++counts[m->frames[frame].name] > counts[best]) {
			best = m->frames[frame].name;
			s->blamed = i;
		}
	}
	if (n < 2 || best == 0)
		return true;
	s->sampled = true;
	s->end = s->findings[s->blamed].end;
	s->cluster = s->findings[s->blamed].cluster;
	s->verdict = tw_arena_printf(m->arena, "main was in " METHOD " in %u of %u samples",
	        ARG(tw_anr_str(m, best)), counts[best], n);
	if (s->verdict && span_ns >= 100000000)
		s->verdict = tw_arena_printf(m->arena, "%s over %lld.%lld s", s->verdict,
		        (long long)(span_ns / 1000000000), (long long)(span_ns / 100000000 % 10));
	return s->verdict != NULL;
}

static int64_t span_of(const struct tw_anr *m)
{
	int64_t first = -1;
	int64_t last = -1;

	for (uint32_t i = 0; i < m->n_dumps; i++) {
		if (first < 0)
			first = m->dumps[i].at_ns;
		if (m->dumps[i].at_ns > last)
			last = m->dumps[i].at_ns;
	}
	return first >= 0 ? last - first : 0;
}

bool tw_anr_classify(const struct tw_anr *m, struct tw_anr_summary *ret)
{
	struct tw_anr_summary s = {.blamed = TW_ANR_NO_INDEX, .kind = "unknown"};

	s.findings = tw_arena_alloc(m->arena, (size_t)m->n_dumps + 1, sizeof *s.findings);
	if (!s.findings)
		return false;
	read_reason(m, &s);
	for (uint32_t i = 0; i < m->n_dumps; i++)
		s.findings[i] = (struct tw_anr_finding){.main = main_of(m, &m->dumps[i]),
		        .culprit = TW_ANR_NO_INDEX,
		        .main_frame = TW_ANR_NO_INDEX};
	s.blamed = blamed(m, &s);
	for (uint32_t i = 0; i < m->n_dumps; i++)
		if (!classify_dump(m, i, &s))
			return false;
	s.verdict = no_main;
	if (s.blamed != TW_ANR_NO_INDEX) {
		s.verdict = s.findings[s.blamed].verdict;
		s.end = s.findings[s.blamed].end;
		s.cluster = s.findings[s.blamed].cluster;
		if (m->n_dumps > 1 && !m->dumps[s.blamed].process &&
		        !classify_samples(m, &s, span_of(m)))
			return false;
	}
	*ret = s;
	return true;
}
