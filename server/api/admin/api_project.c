/* Creates a project.  The list is in api_session.c, because it depends on the caller. */
#include <string.h>

#include "server/api/api.h"
#include "server/base/app.h"
#include "server/catalogue/access/catalogue_project.h"

enum { NAME_BYTES = 100 };

static enum tw_status read_and_create(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	char id[TW_ID_BYTES];
	const char *name;
	bool is_new;
	enum tw_status st = tw_api_text(body, "name", NAME_BYTES, false, &name, err);

	if (st == TW_OK && strspn(name, " ") == strlen(name))
		st = tw_fail(err, TW_BAD_REQUEST, "name must not be empty");
	if (st == TW_OK)
		st = tw_catalogue_project(tw_req_app(r)->catalogue, name, id, &is_new, err);
	if (st == TW_OK && !is_new)
		st = tw_fail(err, TW_CONFLICT, "there is a project of that name");
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 201, json_pack("{ss ss}", "id", id, "name", name), err);
}

static enum tw_status add_project(struct tw_req *r, struct tw_err *err)
{
	return tw_api_with_body(r, read_and_create, err);
}

const struct tw_route tw_routes_project[] = {
        {.method = "POST",
                .path = "/api/v1/projects",
                .needs = TW_NEED_SERVER,
                .max_body = tw_api_small_body,
                .begin = tw_api_collect_begin,
                .body = tw_api_collect,
                .end = add_project,
                .summary = "Creates a project"},
        {0},
};
