#include "server/fleet/store/fleet_open.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/log.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/fleet/catalogue_engine.h"
#include "server/fleet/store/fleet_clickhouse.h"

enum { PATH_BYTES = 1500, CONFIG_BYTES = 1 << 20, PROJECTS_BYTES = 16 << 20 };

/* --- the record --- */

static void path_of(const char *data_dir, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/analytics", data_dir);
}

/* Texts are in the arena; all are "" for the catalogue. */
static enum tw_status read_record(
        const char *data_dir, struct tw_arena *a, struct tw_analytics *ret, struct tw_err *err)
{
	char path[PATH_BYTES];
	struct tw_config config = {.analytics = {"", "", "", ""}};
	enum tw_status st;

	path_of(data_dir, path);
	st = tw_settings_record_read(path, a, &config, err);
	*ret = config.analytics;
	return st;
}

static enum tw_status keep_record(
        const char *data_dir, const struct tw_analytics *at, struct tw_err *err)
{
	const struct tw_setting_line lines[] = {{"analytics", at->url},
	        {"analytics-user", at->user}, {"analytics-password-file", at->password_file},
	        {"analytics-ca-file", at->ca_file}};
	char path[PATH_BYTES];

	path_of(data_dir, path);
	return tw_settings_record_write(path, "written by tracewell: where sums of many traces are",
	        lines, sizeof lines / sizeof *lines, err);
}

/* --- opening --- */

static enum tw_status open_store(struct tw_catalogue *c, const struct tw_analytics *at,
        struct tw_fleet_store **ret, struct tw_err *err)
{
	if (at->url[0])
		return tw_fleet_clickhouse_new(c,
		        &(struct tw_clickhouse_at){
		                at->url, at->user, at->password_file, at->ca_file},
		        ret, err);
	*ret = tw_fleet_embedded_new(c);
	return *ret ? TW_OK : tw_oom(err);
}

/* Sums of deleted traces stay in the former engine. */
static enum tw_status count_again(
        struct tw_fleet_store *s, const struct tw_analytics *at, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(PROJECTS_BYTES);
	struct tw_project_row *projects = NULL;
	uint64_t traces = 0;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_catalogue_projects(s->catalogue, a, &projects, &n, err) : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		struct tw_rollup_reset one;

		st = s->engine->reset(s, projects[i].id, "", &one, err);
		traces += one.traces;
	}
	tw_arena_free(a);
	if (st == TW_OK && traces)
		tw_log(TW_LOG_INFO, "fleet_counted_again",
		        tw_log_text("store", at->url[0] ? at->url : s->engine->name),
		        tw_log_number("traces", (int64_t)traces));
	return st;
}

enum tw_status tw_fleet_open(struct tw_catalogue *c, const char *data_dir,
        const struct tw_analytics *at, struct tw_fleet_store **ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(CONFIG_BYTES);
	struct tw_analytics was;
	enum tw_status st = a ? read_record(data_dir, a, &was, err) : tw_oom(err);

	if (st == TW_OK)
		st = open_store(c, at, ret, err);
	if (st == TW_OK)
		st = tw_catalogue_engine_set(c, at->url[0] ? (*ret)->engine->name : "", err);
	if (st == TW_OK && strcmp(was.url, at->url) != 0)
		st = count_again(*ret, at, err);
	if (st == TW_OK)
		st = keep_record(data_dir, at, err);
	tw_arena_free(a);
	return st;
}

enum tw_status tw_fleet_open_recorded(struct tw_catalogue *c, const char *data_dir,
        struct tw_fleet_store **ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(CONFIG_BYTES);
	struct tw_analytics at;
	enum tw_status st = a ? read_record(data_dir, a, &at, err) : tw_oom(err);

	if (st == TW_OK)
		st = open_store(c, &at, ret, err);
	tw_arena_free(a);
	return st;
}
