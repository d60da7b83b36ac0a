/* export_anchor.c - see the header. */
#include "server/export/perfetto/export_anchor.h"

#include <string.h>

#include "server/export/perfetto/export_cursor.h"

static bool is_named(const struct tw_ours *o, struct tw_named what, const char *name)
{
	char shown[4096];

	(void)tw_names_display(&o->names, &what, shown, sizeof shown);
	return strcmp(shown, name) == 0;
}

/* The begin of the first call of the marked methods on one thread. */
static enum tw_status first_on(const struct tw_ours *o, const struct tw_thread_info *t,
        const bool *wanted, uint32_t n_methods, int64_t *first_ns, struct tw_err *err)
{
	struct tw_cursor c;
	struct tw_edge e;
	enum tw_status st = tw_cursor_open_range(
	        &c, o->file, t->thread_id, UINT16_MAX, o->sel.from_ns, o->sel.to_ns, err);

	while (st == TW_OK && !c.done && c.next_ns < *first_ns) {
		st = tw_cursor_next(&c, &e, err);
		if (st == TW_OK && e.begin && e.method < n_methods && wanted[e.method] &&
		        e.ts_ns < *first_ns)
			*first_ns = e.ts_ns;
	}
	tw_cursor_close(&c);
	return st;
}

enum tw_status tw_anchor_first(
        const struct tw_ours *o, const char *name, int64_t *ret_ns, struct tw_err *err)
{
	const struct tw_method_ref *methods;
	uint32_t n_methods;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(o->file, &n);
	int64_t first = INT64_MAX;
	enum tw_status st = tw_trace_file_method_refs(o->file, &methods, &n_methods, err);
	bool *wanted = st == TW_OK ? tw_mem_zalloc((size_t)n_methods + 1, 1) : NULL;
	bool any = false;

	if (st != TW_OK)
		return st;
	if (!wanted)
		return tw_oom(err);
	for (uint32_t i = 0; i < n_methods; i++) {
		wanted[i] = is_named(o, tw_method_named(&methods[i]), name);
		any = any || wanted[i];
	}
	for (uint32_t i = 0; any && st == TW_OK && i < n; i++)
		if (t[i].slices && tw_selection_has(&o->sel, &t[i]))
			st = first_on(o, &t[i], wanted, n_methods, &first, err);
	tw_mem_free(wanted);
	if (st == TW_OK && first == INT64_MAX)
		return tw_fail(err, TW_NOT_FOUND, "no call of %.100s is in trace %.40s", name,
		        o->facts.trace_id);
	*ret_ns = first;
	return st;
}

bool tw_anchor_is_certain(const struct tw_ours *o, const char *name)
{
	const struct tw_method_info *methods;
	uint32_t n;

	if (!o->sel.all_threads || o->sel.ranged ||
	        tw_trace_file_methods(o->file, &methods, &n, NULL) != TW_OK)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (methods[i].count && is_named(o, tw_method_info_named(&methods[i]), name))
			return true;
	return false;
}
