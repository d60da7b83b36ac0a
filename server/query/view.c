#include "server/query/view.h"

#include <string.h>

#include "decoder/symbols/names.h"

struct tw_str tw_view_name(
        const struct tw_view *v, uint32_t method, char buf[TW_NAME_BYTES], bool *ret_known)
{
	const struct tw_method_ref *m = method < v->n_methods ? &v->methods[method] : NULL;
	bool known = true;
	struct tw_str name;

	if (!m)
		name = TW_STR("");
	else if (m->name && !v->names.retrace)
		name = tw_names_plain(tw_method_named(m).name);
	else {
		const struct tw_named what = tw_method_named(m);

		known = tw_names_display(&v->names, &what, buf, TW_NAME_BYTES);
		name = tw_str_of(buf);
	}
	if (ret_known)
		*ret_known = known;
	return name;
}

struct tw_str tw_view_obfuscated(const struct tw_view *v, uint32_t method, char buf[TW_NAME_BYTES])
{
	char *original = method < v->n_methods && v->names.retrace ? buf + TW_NAME_BYTES / 2 : NULL;
	struct tw_names before = v->names;
	struct tw_named what;

	if (!original)
		return TW_STR("");
	what = tw_method_named(&v->methods[method]);
	before.retrace = NULL;
	tw_names_display(&before, &what, buf, TW_NAME_BYTES / 2);
	tw_names_display(&v->names, &what, original, TW_NAME_BYTES / 2);
	return strcmp(buf, original) == 0 ? TW_STR("") : tw_str_of(buf);
}

struct tw_str tw_view_descriptor(
        const struct tw_view *v, uint32_t method, char buf[TW_DESCRIPTOR_BYTES])
{
	const struct tw_named what = method < v->n_methods ? tw_method_named(&v->methods[method])
	                                                   : (struct tw_named){.name = TW_STR("")};

	tw_names_descriptor(&v->names, &what, buf, TW_DESCRIPTOR_BYTES);
	return tw_str_of(buf);
}

enum tw_status tw_view_waits(
        const struct tw_view *v, struct tw_arena *a, struct tw_waits *ret, struct tw_err *err)
{
	bool *of = tw_arena_zalloc(a, (size_t)v->n_methods + 1, sizeof *of);
	char *name = tw_arena_alloc(a, TW_NAME_BYTES, 1);

	if (!of || !name)
		return tw_oom(err);
	for (uint32_t i = 0; i < v->n_methods; i++) {
		const struct tw_named what = tw_method_named(&v->methods[i]);

		if (!what.has_id)
			of[i] = tw_name_waits(what.name);
		else if (v->names.map && tw_names_display(&v->names, &what, name, TW_NAME_BYTES))
			of[i] = tw_name_waits(tw_str_of(name));
	}
	*ret = (struct tw_waits){of, v->n_methods};
	return TW_OK;
}
