/*
 * api_source.c - a method's source: link, lines, owners and last change; and the repository
 * settings that they depend on.
 *
 * If a part is unavailable (no clone, no such tag, too large), the response says why and has the
 * remaining parts, above all the link.
 */
#include "server/api/api_shared.h"

#include <string.h>

#include "server/api/api.h"
#include "server/base/text/json.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/source/source_query.h"
#include "server/source/source_rules.h"

enum { TEXT_BYTES = 200 };

struct query {
	struct tw_req *r;
	json_t *doc;
	const json_t *repository; /* a member of doc; NULL: none */
	struct tw_source_name name;
	const char *method, *file, *app;
	const char *version, *build; /* of the newer side */
	const char *base, *base_build;
	const char *commit, *base_commit; /* stated by their builds; "": none */
	int64_t line;
	bool log;
	bool emails;      /* also for repositories that hide them */
	json_t *response; /* the child's response; NULL: none */
	json_t *answer;   /* the response to the client */
};

/* --- the settings --- */

/* Release *ret with json_decref. */
static enum tw_status load(
        struct tw_req *r, json_t **ret, int64_t *ret_changed_ms, struct tw_err *err)
{
	enum tw_status st = tw_setting_load(tw_api_catalogue(r), tw_api_project(r),
	        &tw_source_setting, ret, ret_changed_ms, err);

	if (st == TW_OK && !*ret)
		*ret = json_pack("{s:[]}", "repositories");
	return st == TW_OK && !*ret ? tw_oom(err) : st;
}

static enum tw_status project_name(struct tw_req *r, const char **ret, struct tw_err *err)
{
	struct tw_project_row *rows;
	size_t n;
	enum tw_status st =
	        tw_catalogue_projects(tw_api_catalogue(r), tw_req_arena(r), &rows, &n, err);

	*ret = "";
	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (strcmp(rows[i].id, tw_api_project(r)) == 0)
			*ret = tw_sources_is_folder(rows[i].name) ? rows[i].name : rows[i].id;
	return st;
}

static enum tw_status get_repositories(struct tw_req *r, struct tw_err *err)
{
	json_t *doc = NULL;
	const char *folder = "";
	int64_t changed_ms = 0;
	enum tw_status st = load(r, &doc, &changed_ms, err);

	if (st == TW_OK)
		st = project_name(r, &folder, err);
	if (st != TW_OK) {
		json_decref(doc);
		return st;
	}
	(void)json_object_set_new(doc, "updated_ms", json_integer(changed_ms));
	(void)json_object_set_new(doc, "clones_folder",
	        *tw_api_of(r)->config->repositories ? json_string(folder) : json_null());
	return tw_req_reply_json(r, 200, doc, err);
}

static enum tw_status store(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	enum tw_status st = tw_source_rules_check(body, err);
	json_t *doc = st == TW_OK ? json_pack("{s:O}", "repositories",
	                                    json_object_get(body, "repositories"))
	                          : NULL;

	if (st == TW_OK)
		st = tw_api_store_setting(r, TW_SETTING_SOURCE, doc, err);
	json_decref(doc);
	return st == TW_OK ? get_repositories(r, err) : st;
}

/* --- the request --- */

/* A file's name without a path. */
static enum tw_status check_file(const char *file, struct tw_err *err)
{
	if (strpbrk(file, "/\\") || file[0] == '.')
		return tw_fail(
		        err, TW_BAD_REQUEST, "file is the name of a source file, like Feed.kt");
	return TW_OK;
}

static enum tw_status read_texts(struct query *q, struct tw_err *err)
{
	const struct {
		const char *name;
		const char **at;
	} texts[] = {{"file", &q->file}, {"app", &q->app},
	        {q->log ? "head" : "version", &q->version},
	        {q->log ? "head_build" : "build", &q->build}, {"base", &q->base},
	        {"base_build", &q->base_build}};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < sizeof texts / sizeof *texts; i++) {
		*texts[i].at = tw_req_text_or_empty(q->r, texts[i].name);
		st = tw_check_text(texts[i].name, *texts[i].at, err);
	}
	return st == TW_OK ? check_file(q->file, err) : st;
}

/* For repositories that use builds, a version means its newest build. */
static enum tw_status fill_build(
        const struct query *q, const char *version, const char **io_build, struct tw_err *err)
{
	const json_t *ref;
	bool needs_build = false;
	size_t i;

	json_array_foreach(json_object_get(q->repository, "refs"), i, ref)
	{
		needs_build = needs_build || strstr(json_string_value(ref), "{build}");
	}
	if (!needs_build || !*version || **io_build)
		return TW_OK;
	return tw_catalogue_build_of(tw_api_catalogue(q->r), tw_api_project(q->r),
	        &(struct tw_release){q->app, version, ""}, tw_req_arena(q->r), io_build, err);
}

/* Fills in the known properties of a side's build. */
static enum tw_status fill_side(const struct query *q, const char *version, const char **io_build,
        const char **ret_commit, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	*ret_commit = "";
	if (*version || **io_build)
		st = tw_catalogue_commit_of(tw_api_catalogue(q->r), tw_api_project(q->r),
		        &(struct tw_release){q->app, version, *io_build}, tw_req_arena(q->r),
		        ret_commit, err);
	return st == TW_OK ? fill_build(q, version, io_build, err) : st;
}

static enum tw_status read_query(struct query *q, struct tw_err *err)
{
	enum tw_status st = read_texts(q, err);

	q->method = tw_req_text_or_empty(q->r, "method");
	q->line = tw_req_number_or(q->r, "line", 0);
	return st;
}

/* Repository, builds and commits of the request. */
static enum tw_status fill_query(struct query *q, struct tw_err *err)
{
	enum tw_status st = tw_source_name_read(q->method, tw_req_arena(q->r), &q->name, err);
	int64_t changed_ms;

	if (st == TW_OK)
		st = load(q->r, &q->doc, &changed_ms, err);
	if (st == TW_OK)
		q->repository = tw_source_rules_pick(q->doc, &q->name);
	if (st == TW_OK)
		st = fill_side(q, q->version, &q->build, &q->commit, err);
	return st == TW_OK ? fill_side(q, q->base, &q->base_build, &q->base_commit, err) : st;
}

/* --- the clone --- */

/* []: the newest commit; null: no ref can have this name. A commit stated by the build is the only
 * candidate, because a tag of the version may point to another one. */
static json_t *names_of(
        const struct query *q, const char *version, const char *build, const char *commit)
{
	json_t *names = *commit ? json_pack("[s]", commit)
	                        : tw_source_rules_refs(q->repository, version, build, "");

	if (json_array_size(names) || !(*version || *build))
		return names;
	json_decref(names);
	return json_null();
}

static json_t *task_of(const struct query *q)
{
	json_t *roots = json_object_get(q->repository, "roots");
	json_t *head = names_of(q, q->version, q->build, q->commit);
	json_t *base = names_of(q, q->base, q->base_build, q->base_commit);

	return json_pack("{s:o, s:s, s:s, s:s, s:I, s:o, s:o, s:b}", "roots",
	        roots ? json_incref(roots) : json_array(), "owners",
	        tw_json_text(q->repository, "owners"), "method", q->method, "file", q->file, "line",
	        (json_int_t)q->line, "head", head, "base", base, "log", q->log);
}

static void put_reason(struct query *q, const char *why)
{
	(void)json_object_set_new(q->answer, "reason", json_string(why));
}

/* TW_BUSY and internal failures are errors; a problem of the clone is a response. */
static bool is_answer(enum tw_status st)
{
	return st == TW_NOT_FOUND || st == TW_DEADLINE || st == TW_CORRUPT || st == TW_TOO_LARGE;
}

static enum tw_status read_clone(struct query *q, struct tw_err *err)
{
	struct tw_source_request request = {
	        .clone = tw_json_text(q->repository, "clone"), .ms = tw_req_ms_left(q->r)};
	enum tw_status st;

	if (!*request.clone) {
		put_reason(q,
		        "the repository has no clone on the server: the link is made of package "
		        "and class alone");
		return TW_OK;
	}
	st = project_name(q->r, &request.project, err);
	request.task = st == TW_OK ? task_of(q) : NULL;
	if (st == TW_OK && !request.task)
		st = tw_oom(err);
	if (st == TW_OK)
		st = tw_sources_query(tw_api_of(q->r)->sources, &request, &q->response, err);
	json_decref(request.task);
	if (!is_answer(st))
		return st;
	put_reason(q, err->msg);
	return TW_OK;
}

/* --- the response --- */

static const char *child_text(const struct query *q, const char *key)
{
	return tw_json_text(q->response, key);
}

static uint32_t child_line(const struct query *q, size_t which)
{
	const json_t *first = json_array_get(json_object_get(q->response, "lines"), 0);

	return (uint32_t)json_integer_value(json_array_get(first, which));
}

/* The commit, or the ref of the version; "": unknown, which does not mean the newest. */
static const char *commit_of(const struct query *q)
{
	json_t *names;
	const char *name = child_text(q, "commit");

	if (*name)
		return name;
	names = names_of(q, q->version, q->build, q->commit);
	name = json_string_value(json_array_get(names, 0));
	if (!name)
		name = json_is_null(names) ? "" : "HEAD";
	name = tw_arena_str(tw_req_arena(q->r), tw_str_of(name));
	json_decref(names);
	return name ? name : "";
}

/* The source of a side's commit. */
static const char *known_from(const char *version, const char *build, const char *commit)
{
	return *commit ? "build" : *version || *build ? "name" : "newest";
}

static void add_commits_from(struct query *q)
{
	(void)json_object_set_new(
	        q->answer, "commit_from", json_string(known_from(q->version, q->build, q->commit)));
	if (q->log && (*q->base || *q->base_build))
		(void)json_object_set_new(q->answer, "base_commit_from",
		        json_string(known_from(q->base, q->base_build, q->base_commit)));
}

/* No link if it needs a commit and the commit is unknown. */
static bool has_link(struct query *q, const char *commit)
{
	const char *link = tw_json_text(q->repository, "link");

	if (*link && !*commit && strstr(link, "{commit}"))
		put_reason(q, "that version or build cannot be the name of a tag or branch: set "
		              "how versions are named, or which commit the build is made of");
	return *link && (*commit || !strstr(link, "{commit}"));
}

static enum tw_status add_link(struct query *q, struct tw_err *err)
{
	struct tw_arena *a = tw_req_arena(q->r);
	bool found = *child_text(q, "path");
	const char *path = found ? child_text(q, "path")
	                         : tw_source_rules_path(q->repository, &q->name, q->file, a);
	const struct tw_link_values values = {commit_of(q), path, q->version,
	        found ? child_line(q, 0) : (uint32_t)q->line, found ? child_line(q, 1) : 0};
	const char *made = "";

	if (path && has_link(q, values.commit))
		made = tw_link_make(tw_json_text(q->repository, "link"), &values, a);
	if (!path || !made)
		return tw_oom(err);
	(void)json_object_set_new(q->answer, "path", json_string(path));
	(void)json_object_set_new(q->answer, "link", *made ? json_string(made) : json_null());
	(void)json_object_set_new(q->answer, "found", json_boolean(found));
	add_commits_from(q);
	return TW_OK;
}

static void add_commits(struct query *q)
{
	const char *link = tw_json_text(q->repository, "commit_link");
	bool emails = q->emails || json_is_true(json_object_get(q->repository, "show_emails"));
	json_t *c;
	size_t i;

	json_array_foreach(json_object_get(q->response, "commits"), i, c)
	{
		const struct tw_link_values values = {
		        json_string_value(json_object_get(c, "id")), "", q->version, 0, 0};
		const char *made = *link && values.commit
		                           ? tw_link_make(link, &values, tw_req_arena(q->r))
		                           : NULL;

		if (!emails)
			(void)json_object_del(c, "email");
		(void)json_object_set_new(
		        c, "link", made && *made ? json_string(made) : json_null());
	}
}

static void add_rest(struct query *q)
{
	static const char *const keys[] = {"commit", "base_commit", "base_note", "lines",
	        "is_method", "note", "owners", "owners_file", "owners_error", "newest_ms",
	        "commits", "more", "reason"};

	add_commits(q);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		json_t *v = json_object_get(q->response, keys[i]);

		if (v)
			(void)json_object_set(q->answer, keys[i], v);
	}
}

static enum tw_status make_answer(struct query *q, struct tw_err *err)
{
	enum tw_status st;

	q->answer = json_pack("{s:s, s:s?}", "method", q->method, "repository",
	        q->repository ? tw_json_text(q->repository, "name") : NULL);
	if (!q->answer)
		return tw_oom(err);
	if (!q->repository) {
		put_reason(q, json_array_size(json_object_get(q->doc, "repositories"))
		                      ? "no repository of this project has classes of that package"
		                      : "this project has no repository yet");
		return TW_OK;
	}
	st = read_clone(q, err);
	if (st == TW_OK)
		st = add_link(q, err);
	if (st == TW_OK)
		add_rest(q);
	return st;
}

/* On failure q->answer is NULL. */
static enum tw_status find_answer(struct query *q, struct tw_err *err)
{
	enum tw_status st = fill_query(q, err);

	if (st == TW_OK)
		st = make_answer(q, err);
	json_decref(q->response);
	json_decref(q->doc);
	if (st != TW_OK) {
		json_decref(q->answer);
		q->answer = NULL;
	}
	return st;
}

static enum tw_status answer(struct query *q, struct tw_err *err)
{
	enum tw_status st = read_query(q, err);

	if (st == TW_OK)
		st = find_answer(q, err);
	return st == TW_OK ? tw_req_reply_json(q->r, 200, q->answer, err) : st;
}

enum tw_status tw_api_blame(
        struct tw_req *r, const struct tw_blame_query *query, json_t **ret, struct tw_err *err)
{
	struct query q = {.r = r,
	        .log = true,
	        .emails = true,
	        .method = query->method,
	        .file = "",
	        .app = query->app,
	        .version = query->head,
	        .build = "",
	        .base = query->base,
	        .base_build = ""};
	enum tw_status st = find_answer(&q, err);

	*ret = q.answer;
	return st;
}

static enum tw_status get_source(struct tw_req *r, struct tw_err *err)
{
	return answer(&(struct query){.r = r}, err);
}

static enum tw_status get_blame(struct tw_req *r, struct tw_err *err)
{
	return answer(&(struct query){.r = r, .log = true}, err);
}

static const struct tw_param method_params[] = {
        TW_PARAM_REQUIRED("method", 0,
                "Name of the method as in traces, com.example.Feed.load; a signature after it is "
                "ignored."),
        TW_PARAM_TEXT("file", TEXT_BYTES, "Name of the source file, if a mapping has it."),
        TW_PARAM_NUMBER("line", 0, 0, 10000000,
                "A line of the method, which selects one of several overloads."),
        TW_PARAM_TEXT("app", TEXT_BYTES,
                "The app that the version belongs to, if the project has several."),
        {0},
};
static const struct tw_param version_params[] = {
        TW_PARAM_TEXT("version", TEXT_BYTES, "The app's version; absent: the newest commit."),
        TW_PARAM_TEXT("build", TEXT_BYTES, "The build."),
        {0},
};
static const struct tw_param versions_params[] = {
        TW_PARAM_TEXT("base", TEXT_BYTES, "The earlier version."),
        TW_PARAM_TEXT("head", TEXT_BYTES, "The later version; absent: the newest commit."),
        TW_PARAM_TEXT("base_build", TEXT_BYTES, "The earlier build."),
        TW_PARAM_TEXT("head_build", TEXT_BYTES, "The later build."),
        {0},
};

const struct tw_route tw_routes_source[] = {
        TW_ROUTE("GET", "/api/v1/source", TW_NEED_READ, "Source location and owners of a method",
                .params = TW_PARAMS(method_params, version_params), .by_child = true,
                .end = get_source),
        TW_ROUTE("GET", "/api/v1/source/blame", TW_NEED_READ,
                "Commits that changed a method's lines between two versions",
                .params = TW_PARAMS(method_params, versions_params), .by_child = true,
                .end = get_blame),
        TW_ROUTE("GET", "/api/v1/source/repositories", TW_NEED_READ,
                "The project's source repositories", .end = get_repositories),
        TW_ROUTE("PUT", "/api/v1/source/repositories", TW_NEED_ADMIN,
                "Sets the project's source repositories", .json = store),
        {0},
};
