/*
 * fleet_label.c - groups cells by the values of a label: the values with most traces, and the rest
 * as one group.
 */
#include <stdlib.h>
#include <string.h>

#include "server/fleet/fleet.h"

struct value {
	const char *text;
	uint64_t traces;
};

static int by_text(const void *pa, const void *pb)
{
	return strcmp(((const struct value *)pa)->text, ((const struct value *)pb)->text);
}

static int by_traces(const void *pa, const void *pb)
{
	const struct value *a = pa;
	const struct value *b = pb;

	if (a->traces != b->traces)
		return a->traces < b->traces ? 1 : -1;
	return strcmp(a->text, b->text);
}

/* Distinct values, sorted. Cells without the label are skipped. */
static size_t take_values(const struct tw_rollup_cell *cells, size_t n, struct value *values)
{
	size_t n_values = 0, to = 0;

	for (size_t i = 0; i < n; i++)
		if (cells[i].dims.label[0])
			values[n_values++] = (struct value){cells[i].dims.label, cells[i].traces};
	if (n_values)
		qsort(values, n_values, sizeof *values, by_text);
	for (size_t i = 0; i < n_values; i++)
		if (to && strcmp(values[to - 1].text, values[i].text) == 0)
			values[to - 1].traces += values[i].traces;
		else
			values[to++] = values[i];
	return to;
}

/* The value of "key=value"; keys cannot contain '='. */
static const char *value_of(const char *label)
{
	const char *at = strchr(label, '=');

	return at ? at + 1 : "";
}

enum tw_status tw_fleet_label_values(struct tw_rollup_cell *cells, size_t n, size_t top,
        struct tw_arena *a, struct tw_fleet_values *ret, struct tw_err *err)
{
	struct value *values = tw_arena_alloc(a, n + 1, sizeof *values);
	size_t n_values;

	if (!values)
		return tw_fail(err, TW_TOO_LARGE,
		        "too many rollups for one response; narrow the filter or the time range");
	for (size_t i = 0; i < n; i++) {
		cells[i].label = cells[i].dims.label;
		cells[i].dims.label = value_of(cells[i].dims.label);
	}
	n_values = take_values(cells, n, values);
	*ret = (struct tw_fleet_values){.values = n_values};
	if (n_values <= top + 1)
		return TW_OK;
	ret->rest = n_values - top;
	qsort(values, n_values, sizeof *values, by_traces);
	qsort(values, top, sizeof *values, by_text);
	for (size_t i = 0; i < n; i++) {
		const struct value key = {cells[i].dims.label, 0};

		if (key.text[0] && !bsearch(&key, values, top, sizeof *values, by_text))
			cells[i].dims.label = TW_FLEET_REST;
	}
	return TW_OK;
}
