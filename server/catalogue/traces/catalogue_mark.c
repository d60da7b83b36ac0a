/* catalogue_mark.c - title, pin and tags of a trace. */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_annotation.h"

#include <stdio.h>

static enum tw_status set_tags(struct tw_db *db, const char *project_id, const char *id,
        const struct tw_trace_marks *m, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "DELETE FROM trace_tag WHERE project_id=? AND trace_id=?", "tt", project_id, id);

	for (size_t i = 0; st == TW_OK && i < m->n_tags; i++)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO trace_tag(project_id,trace_id,tag) VALUES(?,?,?)"
		        " ON CONFLICT DO NOTHING",
		        "ttt", project_id, id, m->tags[i]);
	return st;
}

static enum tw_status must_exist(
        struct tw_db *db, const char *project_id, const char *id, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_first_int(/* primary key */
	        db, &there, err, "SELECT 1 FROM trace WHERE project_id=? AND trace_id=?", "tt",
	        project_id, id);

	if (st == TW_OK && !there)
		st = tw_fail(err, TW_NOT_FOUND, "no such trace");
	return st;
}

/* Separated by commas, which tags do not contain. */
static void list_tags(const struct tw_trace_marks *m, char *out, size_t cap)
{
	size_t len = 0;

	for (size_t i = 0; i < m->n_tags && len < cap; i++)
		len += (size_t)snprintf(out + len, cap - len, "%s%s", i ? "," : "", m->tags[i]);
}

enum tw_status tw_catalogue_trace_mark(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_trace_marks *m, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char tags[TW_TAGS_MAX * (TW_TAG_BYTES + 1) + 1] = "";
	enum tw_status st = tw_cat_begin(c, TW_ALONE_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = must_exist(w, project_id, trace_id, err);
	if (st == TW_OK && m->title)
		st = tw_cat_exec(w, NULL, err,
		        "UPDATE trace SET title=? WHERE project_id=? AND trace_id=?", "ttt",
		        m->title, project_id, trace_id);
	if (st == TW_OK && m->sets_pinned)
		st = tw_cat_exec(w, NULL, err,
		        "UPDATE trace SET pinned=? WHERE project_id=? AND trace_id=?", "itt",
		        (int64_t)m->pinned, project_id, trace_id);
	if (st == TW_OK && m->sets_tags)
		st = set_tags(w, project_id, trace_id, m, err);
	if (m->sets_tags)
		list_tags(m, tags, sizeof tags);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"trace.mark", project_id, trace_id,
	                .facts = {{"title", m->title},
	                        {"pinned", !m->sets_pinned ? NULL
	                                   : m->pinned     ? "true"
	                                                   : "false"},
	                        {"tags", m->sets_tags ? tags : NULL}}},
	        err);
}
