/* Title, pin and tags of a trace. */
#include <string.h>

#include "server/api/api.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_annotation.h"
#include "server/catalogue/traces/catalogue_trace.h"

static const struct tw_member members[] = {
        TW_MEMBER(TW_MEMBER_TEXT, struct tw_trace_edit, title, .max = TW_TITLE_BYTES),
        TW_MEMBER(TW_MEMBER_FLAG, struct tw_trace_edit, pinned),
        {.name = "tags", .kind = TW_MEMBER_OTHER},
        {.name = "add_tags", .kind = TW_MEMBER_OTHER},
        {.name = "remove_tags", .kind = TW_MEMBER_OTHER},
        {0},
};

static enum tw_status check_tag(const json_t *item, const char **ret, struct tw_err *err)
{
	const char *tag = json_string_value(item);
	enum tw_status st;

	if (!tag || !*tag || strspn(tag, " ") == strlen(tag))
		return tw_fail(err, TW_BAD_REQUEST, "a tag must be a text, not empty");
	if (strlen(tag) > TW_TAG_BYTES)
		return tw_fail(err, TW_BAD_REQUEST, "a tag has at most %d bytes: %.40s",
		        TW_TAG_BYTES, tag);
	if (strchr(tag, ','))
		return tw_fail(err, TW_BAD_REQUEST, "a tag must not contain a comma: %.40s", tag);
	st = tw_check_text("a tag", tag, err);
	if (st == TW_OK)
		*ret = tag;
	return st;
}

static enum tw_status read_tags(const json_t *body, const char *member, struct tw_arena *a,
        struct tw_tag_list *ret, struct tw_err *err)
{
	const json_t *list = json_object_get(body, member);
	const char **tags;
	enum tw_status st = TW_OK;

	if (!list)
		return TW_OK;
	if (!json_is_array(list) || json_array_size(list) > TW_TAGS_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a list of at most %d texts", member,
		        TW_TAGS_MAX);
	ret->tags = tags = tw_arena_alloc(a, TW_TAGS_MAX, sizeof *tags);
	if (!tags)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < json_array_size(list); i++)
		st = check_tag(json_array_get(list, i), &tags[ret->n++], err);
	return st;
}

static enum tw_status read_edit(
        struct tw_req *r, const json_t *body, struct tw_trace_edit *m, struct tw_err *err)
{
	struct tw_arena *a = tw_req_arena(r);
	enum tw_status st =
	        tw_members_only(body, members, 1, "only ", " of a trace can be changed", err);

	if (st == TW_OK)
		st = tw_members_read(body, members, m, err);
	m->sets_pinned = json_object_get(body, "pinned") != NULL;
	m->sets_tags = json_object_get(body, "tags") != NULL;
	if (st == TW_OK)
		st = read_tags(body, "tags", a, &m->tags, err);
	if (st == TW_OK)
		st = read_tags(body, "add_tags", a, &m->add_tags, err);
	return st == TW_OK ? read_tags(body, "remove_tags", a, &m->remove_tags, err) : st;
}

static enum tw_status edit_trace(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(r);
	const char *project_id = tw_api_project(r);
	struct tw_trace_edit edit = {0};
	struct tw_trace_row row;
	const char *id;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	if (st == TW_OK)
		st = read_edit(r, body, &edit, err);
	if (st == TW_OK)
		st = tw_catalogue_trace_edit(c, project_id, id, &edit, err);
	if (st == TW_OK)
		tw_record_trace(tw_api_of(r)->recorder, project_id, id);
	if (st == TW_OK)
		st = tw_catalogue_trace_get(c, project_id, id, tw_req_arena(r), &row, err);
	return st == TW_OK ? tw_req_reply_json(r, 200, tw_api_trace(&row), err) : st;
}

const struct tw_route tw_routes_trace_edit[] = {
        TW_ROUTE("PATCH", "/api/v1/traces/{id}", TW_NEED_WRITE, "Sets a trace's title, pin or tags",
                .json = edit_trace),
        {0},
};
