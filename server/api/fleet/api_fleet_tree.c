#include "server/api/fleet/api_fleet_tree.h"

#include "server/api/api.h"
#include "server/query/detect/frame_rules.h"

enum { ROOT_MAX = 4096, NODES_MAX = 200000 };

enum tw_status tw_fleet_read_trees(struct tw_fleet_question *q, const struct tw_fleet_cells_of *of,
        struct tw_rollup_tree *t, struct tw_err *err)
{
	struct tw_fleet_store *store = tw_fleet_store_of(q);

	return store->engine->tree(store, &q->query, of, t, err);
}

/* --- names --- */

static enum tw_status mark_foreign(
        struct tw_fleet_question *q, struct tw_fleet_taking *t, struct tw_err *err)
{
	const struct tw_frame_rules *rules = NULL;
	uint8_t *foreign = tw_arena_zalloc(q->arena, (size_t)t->names.n + 1, 1);
	int64_t version;
	enum tw_status st =
	        foreign ? tw_frame_rules_of(tw_api_catalogue(q->req), tw_api_project(q->req),
	                          q->arena, &rules, &version, err)
	                : tw_oom(err);

	for (uint32_t i = t->names.n_threads; st == TW_OK && foreign && i < t->names.n; i++)
		foreign[i] = !tw_frame_rules_app(rules, t->names.names[i]);
	t->reading.foreign = foreign;
	return st;
}

static enum tw_status pick_thread(
        const struct tw_fleet_question *q, struct tw_fleet_taking *t, struct tw_err *err)
{
	const char *text = tw_api_thread(q->req);

	t->reading.thread = TW_NO_METHOD;
	if (!text || !text[0] || strcmp(text, "all") == 0 || t->names.n == 0)
		return TW_OK;
	for (uint32_t i = 0; i < t->names.n_threads; i++)
		if (tw_str_eq(t->names.names[i], tw_str_of(text)))
			t->reading.thread = i;
	if (t->reading.thread != TW_NO_METHOD)
		return TW_OK;
	return tw_fail(err, TW_NOT_FOUND,
	        "none of these traces has threads called %.60s; the response without thread= lists "
	        "the names, with # for digits, as in pool-#-thread-#",
	        text);
}

static const char *const frames[] = {"all", "app", NULL};

const struct tw_param tw_fleet_taking_params[] = {
        TW_PARAM_ENUM("frames", frames,
                "`app` returns only the app's frames, by the project's rules (/api/v1/frames); the "
                "time of "
                "others belongs to their callers."),
        TW_PARAM_TEXT("thread", 0, "Only threads of that name, with # for digits."),
        TW_PARAM_TEXT("threads", 0, "The same as thread."),
        {0},
};

enum tw_status tw_fleet_take_names(struct tw_fleet_question *q,
        const struct tw_rollup_tree *const *trees, size_t n, struct tw_fleet_taking *ret,
        struct tw_err *err)
{
	struct tw_rollup_naming *namings = NULL;
	uint64_t *ids = NULL;
	size_t n_ids = 0;
	enum tw_status st = tw_fleet_tree_ids(trees, n, q->arena, &ids, &n_ids, err);

	*ret = (struct tw_fleet_taking){.app_only = tw_req_enum(q->req, "frames") == 1};
	if (st == TW_OK)
		st = tw_catalogue_rollup_names(tw_api_catalogue(q->req), tw_api_project(q->req),
		        ids, n_ids, q->arena, &namings, err);
	if (st == TW_OK)
		st = tw_fleet_tree_names(trees, n, namings, n_ids, q->arena, &ret->names, err);
	if (st == TW_OK)
		st = pick_thread(q, ret, err);
	if (st == TW_OK && ret->app_only)
		st = mark_foreign(q, ret, err);
	ret->reading.names = &ret->names;
	return st;
}

const struct tw_param tw_fleet_root_params[] = {
        TW_PARAM_TEXT("root", 0,
                "Methods from the top of the view to the node to start at, with dots between "
                "them."),
        TW_PARAM_OPTIONAL_NUMBER("max_nodes", 1, NODES_MAX,
                "Largest number of nodes in the response. --flame-nodes sets the default."),
        {0},
};

enum tw_status tw_fleet_read_root(
        const struct tw_fleet_question *q, const uint32_t **ret, size_t *ret_n, struct tw_err *err)
{
	const char *text = tw_req_text_or_empty(q->req, "root");
	struct tw_str rest = tw_str_of(text);
	uint32_t *path = tw_arena_alloc(q->arena, ROOT_MAX, sizeof *path);
	size_t n = 0;

	if (!path)
		return tw_oom(err);
	while (rest.len) {
		uint64_t number = 0;

		if (n == ROOT_MAX || !tw_str_u64(tw_str_split(&rest, '.'), UINT32_MAX, &number))
			return tw_fail(err, TW_BAD_REQUEST,
			        "root is method numbers with dots between them, not %.60s", text);
		path[n++] = (uint32_t)number;
	}
	*ret = path;
	*ret_n = n;
	return TW_OK;
}

void tw_fleet_put_names(
        struct tw_fleet_question *q, const struct tw_fleet_names *names, const uint8_t *used)
{
	tw_json_key(&q->j, "names");
	tw_json_open(&q->j, '[');
	for (uint32_t i = 0; i < names->n; i++) {
		if (!used[i])
			continue;
		tw_json_open(&q->j, '{');
		tw_json_key_int(&q->j, "method", i);
		tw_json_key_str(&q->j, "name", names->names[i]);
		tw_fleet_put_text(q, "descriptor", names->descriptors[i]);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

int64_t tw_fleet_omitted_below_ns(const struct tw_rollup_tree *t)
{
	return t->omitted_level ? INT64_C(1) << (t->omitted_level < 63 ? t->omitted_level - 1 : 62)
	                        : 0;
}
