#include "server/query/view.h"

#include <stdio.h>
#include <string.h>

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
