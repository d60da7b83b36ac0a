/*
 * export_csv.c - totals per method as CSV (RFC 4180), the longest self time first.
 *
 * The columns are those of the API's table of methods.  Names are data from an uploaded file, so a
 * name that a spreadsheet would evaluate as a formula is prefixed with an apostrophe.  Leading
 * white space counts too: spreadsheets skip it.
 */
#include <string.h>

#include "server/export/export_format.h"

static void head(struct tw_export *x, uint32_t i)
{
	(void)i;
	(void)tw_buf_add_str(&x->out,
	        TW_STR("name,count,self_ns,total_ns,sum_ns,max_ns,mean_ns,cpu_ns,source\r\n"));
}

void tw_csv_text(struct tw_buf *out, struct tw_str s)
{
	(void)tw_buf_add(out, "\"", 1);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) bytes, not a string */
	if (s.len && memchr("=+-@\t\r\n", s.ptr[0], 7))
		(void)tw_buf_add(out, "'", 1);
	while (s.len) {
		size_t quote = tw_str_find(s, TW_STR("\""));

		(void)tw_buf_add(out, s.ptr, quote);
		s = tw_str_from(s, quote);
		if (s.len) {
			(void)tw_buf_add(out, "\"\"", 2);
			s = tw_str_from(s, 1);
		}
	}
	(void)tw_buf_add(out, "\"", 1);
}

static void row(struct tw_export *x, uint32_t i)
{
	static const char *const names[] = {"", "calls", "samples", "calls and samples", "counts",
	        "calls and counts", "samples and counts", "calls, samples and counts"};
	uint32_t method = x->used[i];
	const struct tw_method_info *m = &x->totals.rows[method];
	const int64_t numbers[] = {(int64_t)m->count, m->self_ns, m->total_ns, m->sum_ns, m->max_ns,
	        m->sum_ns / (int64_t)m->count};

	tw_csv_text(&x->out, tw_export_name(x, method));
	for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
		(void)tw_buf_add(&x->out, ",", 1);
		tw_export_decimal(&x->out, numbers[k], 0);
	}
	(void)tw_buf_add(&x->out, ",", 1);
	if (m->cpu_ns >= 0)
		tw_export_decimal(&x->out, m->cpu_ns, 0);
	(void)tw_buf_printf(&x->out, ",\"%s\"\r\n", names[x->totals.sources[method] & 7]);
}

static const struct tw_export_step program[] = {
        {TW_WALK_ONCE, head},
        {TW_WALK_THREADS, NULL},
        {TW_WALK_TOTALS, NULL},
        {TW_WALK_NEXT_THREAD, NULL},
        {TW_WALK_RANKED, NULL},
        {TW_WALK_METHODS, row},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_csv = {
        .kind = {.name = "csv",
                .suffix = ".methods.csv",
                .type = "text/csv; charset=utf-8",
                .summary = "totals per method as a table"},
        .program = program,
        .metrics = 1 << TW_EXPORT_WALL,
};
