#include "server/query/detect/query_detect.h"

#include "decoder/base/sum.h"
#include "server/query/detect/name_pattern.h"

static const struct {
	const char *id, *title;
} phases[] = {
#define PHASE(id, title) {#id, title},
#define PHASE_CALLS(id, names)
#include "server/query/detect/start_phases.def"
#undef PHASE
#undef PHASE_CALLS
};

static const struct {
	enum tw_phase phase;
	const char *names;
} phase_calls[] = {
#define PHASE(id, title)
#define PHASE_CALLS(id, names) {TW_PHASE_##id, names},
#include "server/query/detect/start_phases.def"
#undef PHASE
#undef PHASE_CALLS
};

enum { PHASE_CALLS_N = sizeof phase_calls / sizeof *phase_calls };
_Static_assert(PHASE_CALLS_N + TW_CALL_PHASE <= TW_CALL_ROLES_MAX, "roles are bits of a number");

static const struct {
	uint8_t role;
	const char *names;
} others[] = {
        {TW_CALL_LOOP,
                "android.app.ActivityThread.main|android.os.Looper.loop|android.os.Looper.loopOnce"
                "|android.os.HandlerThread.run"
                "|com.android.internal.os.ZygoteInit.main"
                "|com.android.internal.os.RuntimeInit$MethodAndArgsCaller.run"},
        {TW_CALL_FRAME, "android.view.Choreographer.doFrame|Choreographer#doFrame*"},
        {TW_CALL_MESSAGE, "android.os.Handler.dispatchMessage"},
        {TW_CALL_DRAWN, "*Activity.reportFullyDrawn|reportFullyDrawn*"},
};

/* --- names --- */

/* These patterns have no expressions: nothing to free, and no errors. */
static bool fits(struct tw_str name, const char *names)
{
	struct tw_str rest = tw_str_of(names);

	while (rest.len) {
		struct tw_name_pattern p;
		bool yes = false;

		if (tw_name_pattern_init(&p, tw_str_split(&rest, '|'), NULL) == TW_OK &&
		        tw_name_pattern_check(&p, name, &yes, NULL) == TW_OK && yes)
			return true;
	}
	return false;
}

uint8_t tw_detect_role_of(struct tw_str name)
{
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (fits(name, others[i].names))
			return others[i].role;
	for (size_t i = 0; i < PHASE_CALLS_N; i++)
		if (fits(name, phase_calls[i].names))
			return (uint8_t)(TW_CALL_PHASE + i);
	return TW_CALL_NONE;
}

/* --- phases --- */

struct search_range { /* the range to search; the phase is within it */
	int64_t from_ns, to_ns;
};

static int64_t end_of(const struct tw_role_call *m)
{
	return tw_sum_ns(m->start_ns, m->dur_ns);
}

/* The first call with a role in a range. */
static const struct tw_role_call *first_of(
        const struct tw_detected *d, uint8_t role, const struct search_range *in)
{
	for (uint32_t i = 0; i < d->n_role_calls; i++)
		if (d->role_calls[i].role == role && d->role_calls[i].start_ns >= in->from_ns &&
		        end_of(&d->role_calls[i]) <= in->to_ns)
			return &d->role_calls[i];
	return NULL;
}

/* Uses the phase's best line for which the trace has calls. */
static const struct tw_role_call *find(
        const struct tw_detected *d, enum tw_phase phase, const struct search_range *in)
{
	const struct tw_role_call *m = NULL;

	for (size_t i = 0; !m && i < PHASE_CALLS_N; i++)
		if (phase_calls[i].phase == phase)
			m = first_of(d, (uint8_t)(TW_CALL_PHASE + i), in);
	return m;
}

static void put(struct tw_start *s, enum tw_phase phase, const struct tw_role_call *m)
{
	if (!m)
		return;
	if (s->n == 0 || m->start_ns < s->start_ns)
		s->start_ns = m->start_ns;
	if (s->n == 0 || end_of(m) > s->end_ns)
		s->end_ns = end_of(m);
	s->phases[s->n++] = (struct tw_start_phase){phases[phase].id, phases[phase].title,
	        m->start_ns, m->dur_ns, m->method, m->thread_id};
}

/* Calls of several providers form one phase. */
static bool providers(
        const struct tw_detected *d, const struct search_range *in, struct tw_role_call *ret)
{
	const struct tw_role_call *first = find(d, TW_PHASE_providers, in);

	if (!first)
		return false;
	*ret = *first;
	for (uint32_t i = 0; i < d->n_role_calls; i++) {
		const struct tw_role_call *m = &d->role_calls[i];

		if (m->role != first->role || m->start_ns < end_of(ret) || end_of(m) > in->to_ns)
			continue;
		ret->dur_ns = end_of(m) - ret->start_ns;
		ret->method = TW_NO_METHOD;
	}
	return true;
}

static void process(
        const struct tw_detected *d, const struct tw_role_call *create, struct tw_start *s)
{
	const struct search_range all = {INT64_MIN, create ? create->start_ns : INT64_MAX};
	const struct tw_role_call *application = find(d, TW_PHASE_application, &all);
	struct search_range before = {INT64_MIN, application ? application->start_ns : all.to_ns};
	const struct tw_role_call *attach = find(d, TW_PHASE_attach, &before);
	struct tw_role_call all_providers;

	put(s, TW_PHASE_bind, find(d, TW_PHASE_bind, &all));
	if (application || s->n) /* otherwise attach is an activity's */
		put(s, TW_PHASE_attach, attach);
	before.from_ns = attach ? end_of(attach) : INT64_MIN;
	if ((application || s->n) && providers(d, &before, &all_providers))
		put(s, TW_PHASE_providers, &all_providers);
	put(s, TW_PHASE_application, application);
}

void tw_detect_start(const struct tw_detected *d, struct tw_start *ret)
{
	struct search_range rest = {INT64_MIN, INT64_MAX};
	const struct tw_role_call *application = find(d, TW_PHASE_application, &rest);
	const struct tw_role_call *create, *resume, *frame, *drawn;

	*ret = (struct tw_start){.n = 0};
	if (application)
		rest.from_ns = end_of(application);
	create = find(d, TW_PHASE_create, &rest);
	process(d, create, ret);
	ret->cold = ret->n > 0;
	if (create)
		rest.from_ns = create->start_ns;
	if (!ret->cold && !create)
		return;
	put(ret, TW_PHASE_create, create);
	resume = find(d, TW_PHASE_resume, &rest);
	put(ret, TW_PHASE_resume, resume);
	if (resume || create)
		rest.from_ns = end_of(resume ? resume : create);
	frame = first_of(d, TW_CALL_FRAME, &rest);
	if (!frame)
		frame = find(d, TW_PHASE_frame, &rest);
	put(ret, TW_PHASE_frame, frame);
	drawn = first_of(d, TW_CALL_DRAWN, &rest);
	if (frame)
		ret->initial_ns = end_of(frame) - ret->start_ns;
	if (drawn)
		ret->full_ns = end_of(drawn) - ret->start_ns;
}
