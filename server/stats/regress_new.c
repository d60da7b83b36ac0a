/*
 * regress_new.c - finds methods that are new in a version and take a share of its time.
 *
 * A missing method has no quantile to compare with. Instead, a test decides whether the method
 * could have been missed by chance in all earlier traces, given the share of traces that contain
 * it now. Only device classes that both sides have are compared, as a rollout reaches other
 * devices first.
 */
#include <math.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/stats/change_point.h"
#include "server/stats/regress.h"

enum { HALF = 2 };

struct side {
	uint64_t all, have; /* traces of the device classes that both sides have */
	uint64_t days;      /* with traces, and with the method */
	double sum, squares;
	int64_t first_day;
	const char *worst;
	int64_t most;
};

static uint64_t traces_of(const struct tw_regress_totals *of, uint32_t version, uint32_t cls)
{
	uint64_t n = 0;

	for (size_t i = 0; i < of->n; i++)
		if (of->at[i].version == version &&
		        (cls == TW_REGRESS_CLASSES || of->at[i].cls == cls))
			n += of->at[i].n;
	return n;
}

static bool is_large(const struct tw_regress_totals *of, uint32_t version, uint32_t least)
{
	return traces_of(of, version, TW_REGRESS_CLASSES) >= least;
}

static double squares_of(const struct tw_sketch *s)
{
	double sum = 0;

	for (uint32_t i = s->first; s->n && i <= s->last; i++)
		sum += (double)s->counts[i] * (double)tw_bucket_ns(i) * (double)tw_bucket_ns(i);
	return sum;
}

static struct side side_of(const struct tw_regress_series *s, const struct tw_regress_totals *of,
        uint32_t version, unsigned classes)
{
	struct side r = {.first_day = INT64_MAX, .most = -1};
	int64_t last = INT64_MIN;

	for (uint32_t c = 0; c < TW_REGRESS_CLASSES; c++)
		r.all += classes >> c & 1 ? traces_of(of, version, c) : 0;
	for (size_t i = 0; i < s->n_parts; i++) {
		const struct tw_regress_part *p = &s->parts[i];

		if (p->version != version || !(classes >> p->cls & 1) || p->of->n == 0)
			continue;
		r.have += p->of->n;
		r.sum += (double)p->of->sum;
		r.squares += squares_of(p->of);
		r.days += p->day != last;
		last = p->day;
		r.first_day = p->day < r.first_day ? p->day : r.first_day;
		if (p->worst && p->of->max > r.most) {
			r.most = p->of->max;
			r.worst = p->worst;
		}
	}
	return r;
}

static uint64_t days_of(const struct tw_regress_totals *of, uint32_t version, unsigned classes)
{
	int64_t last = INT64_MIN;
	uint64_t n = 0;

	for (size_t i = 0; i < of->n; i++)
		if (of->at[i].version == version && (classes >> of->at[i].cls & 1) && of->at[i].n) {
			n += of->at[i].day != last;
			last = of->at[i].day;
		}
	return n;
}

/* Mean time per trace of the version, and its standard error. */
static double mean_of(const struct side *r, double *ret_error)
{
	const double n = (double)r->all;
	const double mean = n > 0 ? r->sum / n : 0;
	const double var = n > 0 ? r->squares / n - mean * mean : 0;

	*ret_error = n > 0 ? sqrt(fmax(var, 0) / n) : 0;
	return mean;
}

/* The difference of the two sides' shares, in standard errors. */
static double score_of(const struct side *base, const struct side *head)
{
	const double n = (double)head->all + (double)base->all;
	const double both = (double)head->have / n;
	const double var = both * (1 - both) * (1 / (double)head->all + 1 / (double)base->all);

	return var > 0 ? (double)head->have / (double)head->all / sqrt(var) : 0;
}

/* Finds the first version that has the method and the last one before it, of those with enough
 * traces. False: all have it, or only versions with few traces do. */
static bool find_pair(const struct tw_regress_series *s, const struct tw_regress_totals *of,
        uint32_t least, uint32_t *ret_base, uint32_t *ret_head)
{
	bool any = false;

	for (uint32_t v = 0; v < s->n_versions && v < TW_REGRESS_VERSIONS; v++) {
		bool has = false;

		if (!is_large(of, v, least))
			continue;
		for (size_t i = 0; i < s->n_parts && !has; i++)
			has = s->parts[i].version == v && s->parts[i].of->n > 0;
		if (has) {
			*ret_head = v;
			return any;
		}
		*ret_base = v;
		any = true;
	}
	return false;
}

static unsigned classes_of(const struct tw_regress_totals *of, uint32_t base, uint32_t head)
{
	unsigned both = 0;

	for (uint32_t c = 0; c < TW_REGRESS_CLASSES; c++)
		if (traces_of(of, base, c) && traces_of(of, head, c))
			both |= 1U << c;
	return both;
}

static int64_t median_of(const struct tw_regress_series *s, uint32_t version, struct tw_arena *a)
{
	struct tw_sketch *all = tw_arena_zalloc(a, 1, sizeof *all);

	for (size_t i = 0; all && i < s->n_parts; i++)
		if (s->parts[i].version == version)
			tw_sketch_add_all(all, s->parts[i].of);
	return all ? tw_sketch_quantile(all, 50) : -1;
}

/* A later version that spends significantly less than half of the time, unless its methods have no
 * names yet. */
static const char *fixed_in(const struct tw_regress_series *s, const struct tw_regress_totals *of,
        uint32_t head, double mean, uint32_t least)
{
	for (uint32_t v = head + 1; v < s->n_versions && v < TW_REGRESS_VERSIONS; v++) {
		const struct side r = side_of(s, of, v, (1U << TW_REGRESS_CLASSES) - 1);
		double error;
		const double left = mean_of(&r, &error);

		if (r.all >= least &&
		        (double)of->hidden_ns[v] + left + TW_REGRESS_FIXED_ERRORS * error <=
		                mean / HALF)
			return s->versions[v];
	}
	return "";
}

static int64_t first_day_of(
        const struct tw_regress_series *s, const struct tw_regress_totals *of, const char *version)
{
	for (size_t i = 0; i < of->n; i++)
		if (strcmp(s->versions[of->at[i].version], version) == 0)
			return of->at[i].day;
	return 0;
}

static bool is_known(const struct side *base, const struct side *head, uint64_t base_days,
        const struct tw_change_rules *rules)
{
	return base->all >= rules->min_traces && head->have >= rules->min_traces &&
	       base_days >= rules->min_days && head->days >= rules->min_days &&
	       score_of(base, head) >= rules->certainty;
}

enum tw_status tw_regress_find_new(const struct tw_regress_series *s,
        const struct tw_regress_totals *of, const struct tw_regress_rules *rules,
        struct tw_regress_list *io, struct tw_err *err)
{
	const struct tw_change_rules *shift = &rules->shift;
	const double median = (double)(of->median_ns > 0 ? of->median_ns : 1);
	uint32_t b = 0, h = 0;
	struct tw_regress_found one;
	struct side base, head;
	unsigned classes;
	double mean, error;

	if (!find_pair(s, of, shift->min_traces, &b, &h))
		return TW_OK;
	classes = classes_of(of, b, h);
	base = side_of(s, of, b, classes);
	head = side_of(s, of, h, classes);
	mean = mean_of(&head, &error);
	if (!is_known(&base, &head, days_of(of, b, classes), shift) ||
	        (mean - TW_CHANGE_INTERVAL * error) / median < rules->min_share ||
	        (double)of->hidden_ns[b] >= mean / HALF)
		return TW_OK;
	one = (struct tw_regress_found){.kind = TW_REGRESS_NEW,
	        .share = (double)head.have / (double)head.all,
	        .app = s->app,
	        .scenario = s->scenario,
	        .method = s->method,
	        .descriptor = s->descriptor,
	        .base = s->versions[b],
	        .head = s->versions[h],
	        .day = head.first_day,
	        .percentile = 50,
	        .after_ns = median_of(s, h, io->arena),
	        .shift = {.day = head.first_day,
	                .change = mean / median,
	                .low = (mean - TW_CHANGE_INTERVAL * error) / median,
	                .high = (mean + TW_CHANGE_INTERVAL * error) / median,
	                .error = error / median,
	                .score = score_of(&base, &head),
	                .n_before = base.all,
	                .n_after = head.all},
	        .after_trace = head.worst};
	one.fixed_in = fixed_in(s, of, h, mean, shift->min_traces);
	one.fixed_from = first_day_of(s, of, one.fixed_in);
	if (one.after_ns < 0)
		return tw_oom(err);
	return tw_regress_add(io, &one, err);
}

TW_ORDER_BY(by_share, struct tw_regress_found, TW_RISING(head), TW_FALLING(shift.change))

void tw_regress_limit_new(struct tw_regress_list *io)
{
	size_t kept = 0;

	TW_SORT(io->of, io->n, by_share);
	for (size_t i = 0; i < io->n;) {
		double all = 0;
		size_t end = i;

		for (; end < io->n && strcmp(io->of[end].head, io->of[i].head) == 0; end++)
			all += io->of[end].shift.change;
		for (size_t k = i; all <= 0.5 && k < end && k < i + TW_REGRESS_NEW_MAX; k++)
			io->of[kept++] = io->of[k];
		i = end;
	}
	io->n = kept;
}
