#include "server/cli/admin/cli_by_name.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/text/find.h"
#include "server/catalogue/access/catalogue_project.h"

enum {
	LIST_BYTES = 16 << 20,
	MAX_TEXT = 512,
	SHORTEST_NEAR = 3 /* shorter names all resemble each other */
};

struct found {
	bool is_there, is_first; /* is_first: there is no project yet */
	char id[TW_ID_BYTES];
	char hint[MAX_TEXT]; /* a hint naming the most similar project; "": none */
};

static void compare(
        const char *name, const struct tw_project_row *rows, size_t n, struct found *ret)
{
	struct tw_near_match hint = {.best = NULL};

	for (size_t i = 0; i < n; i++) {
		tw_near_match_try(&hint, name, rows[i].name);
		if (strcmp(rows[i].name, name) == 0) {
			ret->is_there = true;
			(void)snprintf(ret->id, sizeof ret->id, "%s", rows[i].id);
		}
	}
	if (hint.best && strlen(name) >= SHORTEST_NEAR)
		(void)snprintf(ret->hint, sizeof ret->hint, " (did you mean %.50s?)", hint.best);
}

static enum tw_status find(
        struct tw_catalogue *c, const char *name, struct found *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(LIST_BYTES);
	struct tw_project_row *rows = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_catalogue_projects(c, a, &rows, &n, err) : tw_oom(err);

	*ret = (struct found){.is_first = n == 0};
	if (st == TW_OK)
		compare(name, rows, n, ret);
	(void)tw_arena_free(a);
	return st;
}

enum tw_status tw_cli_project_find(
        struct tw_catalogue *c, const char *name, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct found f;
	enum tw_status st = find(c, name, &f, err);

	if (st == TW_OK && !f.is_there)
		return tw_fail(err, TW_NOT_FOUND, "there is no project %.100s%s", name, f.hint);
	if (st == TW_OK)
		memcpy(ret_id, f.id, sizeof f.id);
	return st;
}

enum tw_status tw_cli_project_make(struct tw_catalogue *c, const char *name, bool may_create,
        char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct found f;
	bool is_new = false;
	enum tw_status st = find(c, name, &f, err);

	if (st == TW_OK && !f.is_there && !f.is_first && !may_create)
		return tw_fail(err, TW_NOT_FOUND,
		        "there is no project %.50s%s: correct --project, or add --new-project to "
		        "create it",
		        name, f.hint);
	if (st == TW_OK)
		st = tw_catalogue_project(c, name, ret_id, &is_new, err);
	if (st == TW_OK && is_new && !may_create)
		(void)fprintf(stderr, "created project %s, the first of this server\n", name);
	return st;
}
