#include "server/query/detect/frame_rules.h"

#include <string.h>

#include "server/base/text/members.h"
#include "server/catalogue/access/catalogue_setting.h"

static const struct {
	const char *id, *title, *prefixes;
} presets[] = {
#define FRAME_PRESET(id, title, prefixes) {#id, title, prefixes},
#include "server/query/detect/frame_rules.def"
#undef FRAME_PRESET
};

enum { N_PRESETS = sizeof presets / sizeof *presets, PRESET_RULES = 16 };

struct rule {
	struct tw_str beginning;
	bool app;
};

struct tw_frame_rules {
	size_t n;
	struct rule rules[N_PRESETS * PRESET_RULES + 2 * TW_FRAME_RULES_MAX];
};

static const char *const lists[] = {"framework", "app"};

bool tw_frame_begins(struct tw_str name, struct tw_str beginning)
{
	bool open = beginning.len && beginning.ptr[beginning.len - 1] == '*';
	size_t n = beginning.len - open;

	if (name.len < n || (n && memcmp(name.ptr, beginning.ptr, n) != 0))
		return false;
	return open || name.len == n || (n && beginning.ptr[n - 1] == '.') || name.ptr[n] == '.' ||
	       name.ptr[n] == '$' || name.ptr[n] == '(';
}

bool tw_frame_rules_app(const struct tw_frame_rules *r, struct tw_str name)
{
	const struct rule *best = NULL;

	for (size_t i = 0; i < r->n; i++)
		if ((!best || r->rules[i].beginning.len > best->beginning.len) &&
		        tw_frame_begins(name, r->rules[i].beginning))
			best = &r->rules[i];
	return !best || best->app;
}

static bool is_off(const json_t *project, const char *id)
{
	const json_t *off = json_object_get(project, "off");
	const json_t *name;
	size_t i;

	json_array_foreach(off, i, name) if (strcmp(json_string_value(name), id) == 0) return true;
	return false;
}

static void add_presets(struct tw_frame_rules *r, const json_t *project)
{
	for (size_t i = 0; i < N_PRESETS; i++) {
		struct tw_str rest = tw_str_of(presets[i].prefixes);

		while (rest.len && !is_off(project, presets[i].id))
			r->rules[r->n++] = (struct rule){tw_str_split(&rest, ' '), false};
	}
}

static bool is_prefix(const char *text)
{
	return *text && strlen(text) <= TW_FRAME_RULE_BYTES;
}

#define LIST(name_)                                                                                \
	{                                                                                          \
		.name = (name_), .kind = TW_MEMBER_TEXTS, .max = TW_FRAME_RULES_MAX,               \
		.fits = is_prefix, .form = "a text of 1 to 200 bytes"                              \
	}
static const struct tw_member members[] = {LIST("off"), LIST("framework"), LIST("app"), {0}};

static enum tw_status check(const json_t *project, struct tw_err *err)
{
	enum tw_status st = project ? tw_members_known(project, members, err) : TW_OK;

	return st == TW_OK ? tw_members_read(project, members, NULL, err) : st;
}

const struct tw_setting tw_frame_setting = {TW_SETTING_FRAMES, check};

static bool add_list(struct tw_frame_rules *r, const json_t *list, bool app, struct tw_arena *a)
{
	const json_t *text;
	size_t i;

	json_array_foreach(list, i, text)
	{
		struct tw_str s = {json_string_value(text), json_string_length(text)};
		const char *copy = tw_arena_str(a, s);

		if (!copy)
			return false;
		r->rules[r->n++] = (struct rule){{copy, s.len}, app};
	}
	return true;
}

enum tw_status tw_frame_rules_new(const json_t *project, struct tw_arena *a,
        const struct tw_frame_rules **ret, struct tw_err *err)
{
	struct tw_frame_rules *r;
	enum tw_status st = check(project, err);

	if (st != TW_OK)
		return st;
	r = tw_arena_zalloc(a, 1, sizeof *r);
	if (!r)
		return tw_oom(err);
	/* a project's rule takes precedence over a preset of the same length */
	for (size_t i = 2; i-- > 0;)
		if (!add_list(r, json_object_get(project, lists[i]), i == 1, a))
			return tw_oom(err);
	add_presets(r, project);
	*ret = r;
	return TW_OK;
}

enum tw_status tw_frame_rules_of(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        const struct tw_frame_rules **ret, int64_t *ret_version, struct tw_err *err)
{
	json_t *project;
	enum tw_status st =
	        tw_setting_load(c, project_id, &tw_frame_setting, &project, ret_version, err);

	if (st == TW_OK)
		st = tw_frame_rules_new(project, a, ret, err);
	json_decref(project);
	return st;
}

static json_t *preset_json(size_t i, bool on)
{
	struct tw_str rest = tw_str_of(presets[i].prefixes);
	json_t *prefixes = json_array();

	while (rest.len) {
		struct tw_str one = tw_str_split(&rest, ' ');

		(void)json_array_append_new(prefixes, json_stringn(one.ptr, one.len));
	}
	return json_pack("{ss ss so sb}", "id", presets[i].id, "title", presets[i].title,
	        "prefixes", prefixes, "enabled", on);
}

json_t *tw_frame_rules_json(const json_t *project)
{
	json_t *all = json_array();
	json_t *ret;

	for (size_t i = 0; i < N_PRESETS; i++)
		(void)json_array_append_new(all, preset_json(i, !is_off(project, presets[i].id)));
	ret = json_pack("{so}", "presets", all);
	for (size_t i = 0; ret && i < 2; i++) {
		json_t *list = json_object_get(project, lists[i]);

		(void)json_object_set_new(
		        ret, lists[i], list ? json_deep_copy(list) : json_array());
	}
	return ret;
}
