#include "server/query/view.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/symbols/names.h"
#include "server/base/log.h"
#include "server/trace/trace_file.h"

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

/* --- native symbols --- */

static bool has(const struct tw_list *ids, struct tw_str id)
{
	const struct tw_str *list = ids->items;

	for (uint32_t i = ids->n; i-- > 0;) /* frames of one library follow each other */
		if (tw_str_eq(list[i], id))
			return true;
	return false;
}

enum tw_status tw_natives_add_id(
        struct tw_list *ids, struct tw_arena *a, struct tw_str id, struct tw_err *err)
{
	struct tw_str *added;

	if (ids->n >= TW_NATIVES_MAX || has(ids, id))
		return TW_OK;
	added = tw_list_add(ids, a, sizeof *added);
	if (!added)
		return tw_oom(err);
	*added = id;
	return TW_OK;
}

/* The build ids in the names of the trace's methods, as long as the file. */
static enum tw_status find_ids(
        struct tw_trace_file *file, struct tw_arena *a, struct tw_list *ids, struct tw_err *err)
{
	const struct tw_method_ref *refs;
	struct tw_native_frame f;
	uint32_t n;
	enum tw_status st = tw_trace_file_method_refs(file, &refs, &n, err);

	for (uint32_t i = 0; st == TW_OK && i < n; i++)
		if (refs[i].name && tw_native_frame_parse(tw_method_named(&refs[i]).name, &f))
			st = tw_natives_add_id(ids, a, f.build_id, err);
	return st;
}

static const char *build_of(struct tw_arena *a, struct tw_str id)
{
	char build[sizeof TW_NATIVE_BUILD + TW_BUILD_ID_HEX];

	(void)snprintf(build, sizeof build, TW_NATIVE_BUILD "%.*s", (int)id.len, id.ptr);
	return tw_arena_str(a, tw_str_of(build));
}

enum tw_status tw_natives_libraries_of(
        const struct tw_list *ids, struct tw_arena *a, struct tw_libraries *ret, struct tw_err *err)
{
	const char **builds = tw_arena_alloc(a, ids->n + 1, sizeof *builds);

	for (uint32_t i = 0; builds && i < ids->n; i++) {
		builds[i] = build_of(a, ((const struct tw_str *)ids->items)[i]);
		if (!builds[i])
			return tw_oom(err);
	}
	*ret = (struct tw_libraries){builds, NULL, ids->n};
	return builds ? TW_OK : tw_oom(err);
}

enum tw_status tw_natives_libraries(struct tw_trace_file *file, struct tw_arena *a,
        struct tw_libraries *ret, struct tw_err *err)
{
	struct tw_list ids = {0};
	enum tw_status st = find_ids(file, a, &ids, err);

	*ret = (struct tw_libraries){0};
	return st == TW_OK && ids.n ? tw_natives_libraries_of(&ids, a, ret, err) : st;
}

/* Adds the library's symbols, if there are any. */
static enum tw_status add(struct tw_symbols *s, const char *image, struct tw_native_map *maps,
        struct tw_natives_open *n, struct tw_err *err)
{
	struct tw_symbols_ref *ref = NULL;
	struct tw_err why;
	enum tw_status st = tw_symbols_acquire(s, image, &ref, &why);

	if (st == TW_BUSY || st == TW_NOMEM) {
		tw_err_copy(err, &why);
		return st;
	}
	if (st != TW_OK)
		tw_log_err(TW_LOG_ERROR, "symbols_unreadable", image, &why);
	else if (!tw_symbols_native(ref))
		tw_symbols_release(s, ref);
	else {
		n->version = n->version * 31 + tw_hash_str(tw_str_of(image), 0) + 1;
		maps[n->natives.n] = *tw_symbols_native(ref);
		n->refs[n->natives.n++] = ref;
	}
	return TW_OK;
}

enum tw_status tw_natives_open_libraries(struct tw_catalogue *c, struct tw_symbols *s,
        const char *project_id, struct tw_arena *a, struct tw_natives_open *io, struct tw_err *err)
{
	struct tw_natives_open n = {.libraries = io->libraries};
	struct tw_native_map *maps = tw_arena_zalloc(a, n.libraries.n + 1, sizeof *maps);
	enum tw_status st;

	*io = (struct tw_natives_open){0};
	n.refs = tw_arena_zalloc(a, n.libraries.n + 1, sizeof(struct tw_symbols_ref *));
	if (!maps || !n.refs)
		return tw_oom(err);
	n.natives.maps = maps;
	st = tw_catalogue_library_images(c, project_id, a, &n.libraries, err);
	for (size_t i = 0; st == TW_OK && i < n.libraries.n; i++)
		if (*n.libraries.images[i])
			st = add(s, n.libraries.images[i], maps, &n, err);
	if (st == TW_OK)
		*io = n;
	else
		tw_natives_close(s, &n);
	return st;
}

enum tw_status tw_natives_open(struct tw_catalogue *c, struct tw_symbols *s, const char *project_id,
        struct tw_trace_file *file, struct tw_arena *a, struct tw_natives_open *ret,
        struct tw_err *err)
{
	enum tw_status st;

	*ret = (struct tw_natives_open){0};
	st = tw_natives_libraries(file, a, &ret->libraries, err);
	if (st != TW_OK || ret->libraries.n == 0)
		return st;
	return tw_natives_open_libraries(c, s, project_id, a, ret, err);
}

void tw_natives_close(struct tw_symbols *s, struct tw_natives_open *n)
{
	for (size_t i = 0; i < n->natives.n; i++)
		tw_symbols_release(s, n->refs[i]);
	*n = (struct tw_natives_open){0};
}
