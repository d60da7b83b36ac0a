#include "sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct random {
	uint64_t state;
};

static uint64_t next(struct random *r)
{
	uint64_t v = r->state += 0x9E3779B97F4A7C15u;

	v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9u;
	v = (v ^ v >> 27) * 0x94D049BB133111EBu;
	return v ^ v >> 31;
}

static uint32_t below(struct random *r, uint32_t n)
{
	return (uint32_t)(next(r) % n);
}

static bool percent(struct random *r, unsigned p)
{
	return below(r, 100) < p;
}

/* Log-normal around `median`: most calls are short, some are very long. */
static int64_t spread(struct random *r, double median, double sigma)
{
	double u1 = ((double)(next(r) >> 11) + 1) / 9007199254740994.0;
	double u2 = (double)(next(r) >> 11) / 9007199254740992.0;
	double z = sqrt(-2 * log(u1)) * cos(6.283185307179586 * u2);
	double v = median * exp(sigma * z);

	return v < 1 ? 1 : v > 4e9 ? 4000000000 : (int64_t)v;
}

/* Packages with the classes and methods that a shop app has. */
static const struct {
	const char *package;
	const char *classes[8];
} packages[] = {
        {"com.acme.shop", {"ShopApplication", "MainActivity", "DeepLinkRouter", "Config"}},
        {"com.acme.shop.feed", {"FeedFragment", "FeedAdapter", "FeedAdapter$Holder",
                                       "FeedRepository", "FeedViewModel", "FeedCard"}},
        {"com.acme.shop.cart", {"CartStore", "CartBadge", "PriceFormatter", "TaxRules"}},
        {"com.acme.shop.data", {"ShopDatabase", "ProductDao", "ProductDao_Impl", "Migrations"}},
        {"com.acme.shop.net", {"ShopApi", "AuthInterceptor", "ResponseMapper", "ImageLoader"}},
        {"com.acme.analytics", {"Tracker", "EventQueue", "Sampler"}},
        {"androidx.recyclerview.widget",
                {"RecyclerView", "LinearLayoutManager", "RecyclerView$Recycler", "AdapterHelper"}},
        {"androidx.constraintlayout.core",
                {"ConstraintWidget", "LinearSystem", "ArrayRow", "Chain"}},
        {"okhttp3.internal.http", {"RealInterceptorChain", "BridgeInterceptor",
                                          "CallServerInterceptor", "RetryInterceptor"}},
        {"com.google.gson", {"Gson", "stream.JsonReader", "internal.bind.ReflectiveTypeAdapter"}},
        {"kotlinx.coroutines", {"DispatchedTask", "CancellableContinuationImpl", "JobSupport"}},
        {"dagger.internal", {"DoubleCheck", "MapFactory", "SetFactory"}},
};
static const char *const verbs[] = {"onCreate", "onBindViewHolder", "inflate", "measure", "layout",
        "load", "parse", "resolve", "bind", "read", "write", "query", "decode", "get", "invoke",
        "proceed", "resumeWith", "update", "collect", "format", "apply", "run"};
enum { PACKAGES = sizeof packages / sizeof *packages, VERBS = sizeof verbs / sizeof *verbs };

static void make_methods(struct sim *s)
{
	struct random r = {s->options.build_seed * 977 + 5};
	uint32_t id = 1;

	for (unsigned p = 0; p < PACKAGES; p++)
		for (unsigned c = 0; c < 8 && packages[p].classes[c]; c++)
			for (unsigned v = 0; v < VERBS && s->n_methods < SIM_MAX_METHODS; v++) {
				struct sim_method *m = &s->methods[s->n_methods++];

				id += 1 + below(&r, 5); /* builds leave gaps, each its own */
				m->id = id;
				(void)snprintf(m->name, sizeof m->name, "%s.%s %s",
				        packages[p].package, packages[p].classes[c], verbs[v]);
			}
}

static const char *const thread_names[] = {"main", "OkHttp Dispatch", "arch_disk_io_0",
        "DefaultDispatcher-worker-1", "DefaultDispatcher-worker-2", "glide-source-thr",
        "analytics-queue", "RenderThread"};
enum { NAMES = sizeof thread_names / sizeof *thread_names };

static void make_threads(struct sim *s)
{
	struct random r = {s->options.seed * 31 + 7};
	uint32_t tid;

	s->pid = (s->options.big_tids ? 41000 : 9000) + below(&r, 800);
	tid = s->pid;
	s->n_threads = s->options.threads < SIM_MAX_THREADS ? s->options.threads : SIM_MAX_THREADS;
	for (uint32_t i = 0; i < s->n_threads; i++) {
		struct sim_thread *t = &s->threads[i];

		t->tid = tid;
		tid += 1 + below(&r, 9);
		if (i < NAMES)
			(void)snprintf(t->name, sizeof t->name, "%s", thread_names[i]);
		else
			(void)snprintf(t->name, sizeof t->name, "pool-1-thread-%u", i - NAMES + 1);
	}
}

/* One thread being run: calls are made on an explicit stack, so that depth costs no C stack. */
struct frame {
	int64_t start_ns, children_ns;
	uint32_t method;
	uint32_t left; /* calls it still makes */
};

struct run {
	struct sim *sim;
	struct sim_thread *thread;
	struct random r;
	int64_t now;
	struct frame *stack;
	uint32_t depth;
	uint64_t budget;      /* calls it may still make */
	uint64_t root_budget; /* of them below the root that is open */
	bool failed;
};

static void keep(struct run *run, const struct sim_record *rec)
{
	struct sim *s = run->sim;

	if (s->n_records == s->cap) {
		uint64_t cap = s->cap ? s->cap * 2 : 4096;
		struct sim_record *p = realloc(s->records, cap * sizeof *p);

		if (!p) {
			run->failed = true;
			return;
		}
		s->records = p;
		s->cap = cap;
	}
	s->records[s->n_records++] = *rec;
}

/* Truth is noted where the call ends. */
static void leave(struct run *run)
{
	struct frame *f = &run->stack[--run->depth];
	struct sim_method *m = &run->sim->methods[f->method];
	int64_t dur;

	if (run->now <= f->start_ns)
		run->now = f->start_ns + 1; /* a phone writes no call of length 0 */
	dur = run->now - f->start_ns;
	m->count++;
	m->sum_ns += dur;
	m->self_ns += dur - f->children_ns;
	if (dur > m->max_ns)
		m->max_ns = dur;
	if (run->depth)
		run->stack[run->depth - 1].children_ns += dur;
	else
		run->thread->roots++;
	run->thread->slices++;
	keep(run, &(struct sim_record){f->start_ns, run->now, run->thread->tid, f->method});
}

/* Callees stay near their caller's package, so that stacks look like stacks; a method calls itself
 * now and then. */
static uint32_t callee(struct run *run)
{
	uint32_t n = run->sim->n_methods;
	uint32_t from = run->depth ? run->stack[run->depth - 1].method : below(&run->r, n);

	if (run->depth && percent(&run->r, 4))
		return from;
	if (percent(&run->r, 60))
		return (from + n - 40 + below(&run->r, 80)) % n;
	return below(&run->r, n);
}

static uint32_t fan_out(struct run *run)
{
	uint32_t depth = run->depth;

	if (depth + 1 >= run->sim->options.max_depth)
		return 0;
	if (depth < 6)
		return 2 + below(&run->r, 5);
	if (percent(&run->r, 3))
		return 1 + below(&run->r, 12); /* a loop */
	return percent(&run->r, depth < 24 ? 55 : depth < 60 ? 46 : 30) ? 1 + below(&run->r, 3) : 0;
}

static void enter(struct run *run)
{
	uint32_t method = callee(run);
	uint32_t left = fan_out(run);

	run->stack[run->depth++] = (struct frame){run->now, 0, method, left};
	if (run->depth > run->thread->max_depth)
		run->thread->max_depth = run->depth;
}

static void work(struct run *run, double median)
{
	const struct frame *f = &run->stack[run->depth - 1];
	int64_t t = spread(&run->r, median, 1.3);

	if (run->sim->options.slow_percent && f->method % 97 == 13)
		t += t * run->sim->options.slow_percent / 100;
	if (!percent(&run->r, 6)) /* else: begins and ends fall together */
		run->now += t;
}

static void run_thread(struct run *run)
{
	while (run->budget > 0 && !run->failed) {
		/* a third of the calls belong to the first root: the start-up */
		run->root_budget =
		        run->thread->roots == 0 ? run->budget / 3 : 20 + below(&run->r, 500);
		run->now += spread(&run->r, run->thread->roots % 3 ? 400000 : 9000000, 1.0);
		enter(run);
		run->budget--;
		while (run->depth && !run->failed) {
			struct frame *f = &run->stack[run->depth - 1];

			work(run, f->left ? 9000 : 36000);
			if (f->left && run->budget && run->root_budget) {
				f->left--;
				run->budget--;
				run->root_budget--;
				enter(run);
			} else {
				leave(run);
			}
		}
	}
}

/* The very deep stack that some apps have: a recursion to max_depth once, on the main thread. */
static void dive(struct run *run)
{
	uint32_t method = below(&run->r, run->sim->n_methods);

	while (run->depth + 1 < run->sim->options.max_depth) {
		run->stack[run->depth++] = (struct frame){run->now, 0, method, 0};
		if (run->depth > run->thread->max_depth)
			run->thread->max_depth = run->depth;
		run->now += 300;
	}
	while (run->depth) {
		run->now += 200;
		leave(run);
	}
}

static bool run_all(struct sim *s)
{
	struct frame *stack = calloc((size_t)s->options.max_depth + 2, sizeof *stack);
	bool failed = !stack;

	for (uint32_t i = 0; !failed && i < s->n_threads; i++) {
		struct run run = {.sim = s,
		        .thread = &s->threads[i],
		        .stack = stack,
		        .r = {s->options.seed * 1000003 + i},
		        .now = 1000000 + (int64_t)i * 3700000};

		/* the main thread makes half of the calls */
		run.budget = i == 0 ? s->options.records / 2
		                    : s->options.records / 2 / (s->n_threads - 1);
		if (s->n_threads == 1)
			run.budget = s->options.records;
		if (i == 0 && s->options.max_depth > 400)
			dive(&run);
		run_thread(&run);
		failed = run.failed;
	}
	free(stack);
	return !failed;
}

/* A merge sort keeps ties of one thread in the order in which they were made. */
static bool sort_by_end(struct sim *s)
{
	struct sim_record *from = s->records;
	struct sim_record *to = malloc((s->n_records ? s->n_records : 1) * sizeof *to);

	if (!to)
		return false;
	for (uint64_t width = 1; width < s->n_records; width *= 2) {
		for (uint64_t lo = 0; lo < s->n_records; lo += 2 * width) {
			uint64_t mid = lo + width < s->n_records ? lo + width : s->n_records;
			uint64_t hi = mid + width < s->n_records ? mid + width : s->n_records;
			uint64_t i = lo;
			uint64_t j = mid;

			for (uint64_t k = lo; k < hi; k++) {
				bool left =
				        i < mid && (j >= hi || from[i].end_ns <= from[j].end_ns);

				to[k] = left ? from[i++] : from[j++];
			}
		}
		s->records = to;
		to = from;
		from = s->records;
	}
	free(to);
	return true;
}

struct sim *sim_new(const struct sim_options *o)
{
	struct sim *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->options = *o;
	make_methods(s);
	make_threads(s);
	if (!run_all(s) || !sort_by_end(s))
		return sim_free(s);
	return s;
}

struct sim *sim_free(struct sim *s)
{
	if (s)
		free(s->records);
	free(s);
	return NULL;
}
