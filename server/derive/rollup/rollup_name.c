/*
 * rollup_name.c - names the methods in rollups: when they are first counted, and again after a
 * mapping is uploaded.
 */
#include <stdio.h>

#include "server/base/log.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/derive/rollup/rollup_writer_int.h"

enum { DESCRIPTOR_BYTES = 512 };

/* *ret is NULL if the mapping is unreadable; TW_BUSY if it may be readable later. */
static enum tw_status acquire(const struct tw_derive_parts *p, const char *sha256,
        const char *build_id, struct tw_symbols_ref **ret, struct tw_err *err)
{
	struct tw_err why;
	enum tw_status st = tw_symbols_acquire(p->symbols, sha256, ret, &why);

	if (st == TW_OK)
		return st;
	*ret = NULL;
	if (st == TW_BUSY)
		tw_err_copy(err, &why);
	else
		tw_log_err(TW_LOG_ERROR, "mapping_unreadable", build_id, &why);
	return st == TW_BUSY ? st : TW_OK;
}

enum tw_status tw_namer_open(const struct tw_derive_parts *p, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_namer *ret, struct tw_err *err)
{
	struct tw_mapping_ids ids;
	enum tw_status st = tw_catalogue_mappings(p->catalogue, of, a, &ids, err);

	return st == TW_OK ? tw_namer_open_by(p, &ids, of->build_id, ret, err) : st;
}

enum tw_status tw_namer_open_by(const struct tw_derive_parts *p, const struct tw_mapping_ids *ids,
        const char *build_id, struct tw_namer *ret, struct tw_err *err)
{
	enum tw_status st = acquire(p, ids->map, build_id, &ret->map, err);

	ret->ids = *ids;
	if (st == TW_OK)
		st = acquire(p, ids->retrace, build_id, &ret->retrace, err);
	if (st != TW_OK) {
		tw_namer_close(p, ret);
		return st;
	}
	ret->names = (struct tw_names){ret->map ? tw_symbols_map(ret->map) : NULL,
	        ret->retrace ? tw_symbols_retrace(ret->retrace) : NULL, NULL};
	return TW_OK;
}

enum tw_status tw_namer_inline(const struct tw_derive_parts *p, const char *project_id,
        struct tw_trace_file *file, struct tw_arena *a, struct tw_namer *io, struct tw_err *err)
{
	enum tw_status st =
	        tw_natives_open(p->catalogue, p->symbols, project_id, file, a, &io->natives, err);

	io->names.natives = &io->natives.natives;
	return st == TW_OK ? tw_trace_file_inline(file, &io->names, err) : st;
}

void tw_namer_close(const struct tw_derive_parts *p, struct tw_namer *n)
{
	tw_natives_close(p->symbols, &n->natives);
	if (n->map)
		tw_symbols_release(p->symbols, n->map);
	if (n->retrace)
		tw_symbols_release(p->symbols, n->retrace);
	*n = (struct tw_namer){0};
}

bool tw_namer_name(struct tw_rollup_worker *f, const struct tw_names *names,
        const struct tw_named *what, struct tw_rollup_naming *m)
{
	char descriptor[DESCRIPTOR_BYTES], name[TW_ROLLUP_NAME_BYTES];

	m->named = tw_names_display(names, what, f->name, TW_ROLLUP_WORKER_NAME_BYTES);
	(void)tw_rollup_bound_name(tw_str_of(f->name), name);
	m->name = tw_arena_str(f->arena, tw_str_of(name));
	tw_names_descriptor(names, what, descriptor, sizeof descriptor);
	m->descriptor = tw_arena_str(f->arena, tw_str_of(descriptor));
	return m->name && m->descriptor;
}

/* --- naming again --- */

/* A truncated name cannot be looked up in a mapping. */
static enum tw_status rename_one(struct tw_rollup_worker *f, const char *project_id,
        struct tw_rollup_naming *m, struct tw_err *err)
{
	const struct tw_named_trace of = {project_id, "", m->build_id, m->mapping_id};
	const struct tw_named what = tw_rollup_named(m->raw);
	struct tw_namer namer = {0};
	bool fits;
	enum tw_status st;

	if (tw_rollup_is_cut(m->raw))
		return TW_OK;
	st = tw_namer_open(&f->parts, &of, f->arena, &namer, err);
	if (st != TW_OK)
		return st;
	fits = tw_namer_name(f, &namer.names, &what, m);
	tw_namer_close(&f->parts, &namer);
	return fits ? TW_OK : tw_oom(err);
}

/* The build after the last one, in rotation, so that a failing build does not block others. */
static enum tw_status next_rename(struct tw_rollup_worker *f, struct tw_rename *ret,
        struct tw_rollup_naming **ret_methods, size_t *ret_n, struct tw_err *err)
{
	enum tw_status st;

	f->rename_turn = (struct tw_rename){f->rename_project, f->rename_build, "", 0};
	st = tw_catalogue_rollup_renames(
	        f->parts.catalogue, &f->rename_turn, f->arena, ret, ret_methods, ret_n, err);
	if (st == TW_NOT_FOUND && f->rename_project[0])
		st = tw_catalogue_rollup_renames(
		        f->parts.catalogue, NULL, f->arena, ret, ret_methods, ret_n, err);
	if (st == TW_OK) {
		(void)snprintf(f->rename_project, sizeof f->rename_project, "%s", ret->project_id);
		(void)snprintf(f->rename_build, sizeof f->rename_build, "%s", ret->build_id);
	}
	return st;
}

/* The methods behind a frame with a line number depend on the mapping, so the traces of the build
 * are counted again on days where all of them still exist.  On other days only the names change. */
static enum tw_status count_again(
        struct tw_rollup_worker *f, const struct tw_rename *of, struct tw_err *err)
{
	struct tw_rollup_reset sums;
	bool expanded = false;
	enum tw_status st = tw_catalogue_rollup_expanded(
	        f->parts.catalogue, of->project_id, of->build_id, &expanded, err);

	if (st == TW_OK && expanded)
		st = f->parts.fleet->engine->reset(
		        f->parts.fleet, of->project_id, of->build_id, &sums, err);
	return st;
}

enum tw_status tw_rollup_worker_rename(
        struct tw_rollup_worker *f, bool *ret_more, struct tw_err *err)
{
	struct tw_rollup_naming *methods = NULL;
	struct tw_rename of;
	size_t n = 0;
	enum tw_status st;

	tw_arena_reset(f->arena);
	st = next_rename(f, &of, &methods, &n, err);
	*ret_more = st == TW_OK;
	if (st == TW_NOT_FOUND)
		return TW_OK;
	if (st == TW_OK && !of.after_id[0])
		st = count_again(f, &of, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = rename_one(f, of.project_id, &methods[i], err);
	if (st == TW_OK && n && f->parts.fleet->engine->rename)
		st = f->parts.fleet->engine->rename(f->parts.fleet, of.project_id, methods, n, err);
	if (st == TW_OK)
		st = tw_catalogue_rollup_renamed(f->parts.catalogue, &of, methods, n, err);
	return st;
}
