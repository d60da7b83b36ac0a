#include "server/source/source_rules.h"
#include "server/base/text/json.h"
#include "server/base/text/members.h"
#include "server/catalogue/access/catalogue_setting.h"

#include <stdio.h>
#include <string.h>

enum { PREFIX_BYTES = 200, ROOT_BYTES = 200, REF_BYTES = 200, STARS_MAX = 4 };

/* --- validation --- */

/* Letters, digits and . _ - without a leading dot: a plain folder name. */
static bool is_name(const char *s)
{
	size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return len > 0 && len <= TW_SOURCE_NAME_BYTES && s[len] == '\0' && s[0] != '.';
}

static bool is_text(const char *s, size_t max)
{
	return *s && strlen(s) <= max && !tw_str_has_control(tw_str_of(s));
}

static bool is_prefix(const char *s)
{
	for (const char *p = s; *p; p++)
		if (strchr("/*?$ ", *p) || (*p == '.' && (p == s || p[1] == '.')))
			return false;
	return is_text(s, PREFIX_BYTES);
}

/* A relative path below the repository's root, without "..". */
static bool is_path(const char *s)
{
	unsigned stars = 0;

	for (const char *p = s; *p; p++) {
		bool begins = p == s || p[-1] == '/';

		stars += *p == '*';
		if (begins && (*p == '/' || (p[0] == '.' && (p[1] == '.' || p[1] == '/' || !p[1]))))
			return false;
	}
	return is_text(s, ROOT_BYTES) && s[strlen(s) - 1] != '/' && stars <= STARS_MAX &&
	       !strpbrk(s, "\\?[]");
}

static bool is_file(const char *s)
{
	return is_path(s) && !strchr(s, '*');
}

/* Text with {version} or {build}, and no other braces. */
static bool is_ref(const char *s)
{
	static const char *const placeholders[] = {"{version}", "{build}"};
	bool any = false;

	for (const char *p = s; *p; p++) {
		bool known = false;

		for (size_t i = 0; *p == '{' && i < 2; i++)
			known = known || strncmp(p, placeholders[i], strlen(placeholders[i])) == 0;
		if (*p == '{' && !known)
			return false;
		any = any || known;
	}
	return any && is_text(s, REF_BYTES) && !strpbrk(s, " ~^:?*[\\") && !strstr(s, "..");
}

#define LIST(name_, fits_, form_)                                                                  \
	{                                                                                          \
		.name = (name_), .kind = TW_MEMBER_TEXTS, .max = TW_SOURCE_LIST, .fits = (fits_),  \
		.form = (form_)                                                                    \
	}
static const struct tw_member members[] = {
        {.name = "name", .kind = TW_MEMBER_OTHER},
        LIST("packages", is_prefix, "a prefix of class names, like com.example."),
        {.name = "link", .kind = TW_MEMBER_OTHER},
        {.name = "commit_link", .kind = TW_MEMBER_OTHER},
        LIST("roots", is_path,
                "a folder from the root of the repository, like app/src/main/java; * and ** match "
                "folders"),
        LIST("refs", is_ref,
                "the name of a tag or branch with {version} or {build} in it, like v{version}"),
        {.name = "clone",
                .kind = TW_MEMBER_TEXT,
                .max = TW_SOURCE_NAME_BYTES,
                .fits = is_name,
                .form = "the name of a folder: letters, digits and . _ -, no dot in front"},
        {.name = "owners",
                .kind = TW_MEMBER_TEXT,
                .max = ROOT_BYTES,
                .fits = is_file,
                .form = "the path of a file in the repository, like .github/CODEOWNERS"},
        {.name = "show_emails", .kind = TW_MEMBER_FLAG},
        {0},
};

static enum tw_status check_link(const json_t *r, const char *key, struct tw_err *err)
{
	const json_t *link = json_object_get(r, key);

	if (!link || json_string_length(link) == 0)
		return json_is_string(link) || !link
		               ? TW_OK
		               : tw_fail(err, TW_BAD_REQUEST, "%s must be a text", key);
	return tw_link_check(key, json_string_value(link), strcmp(key, "link") == 0, err);
}

static enum tw_status check_members(const json_t *r, struct tw_err *err)
{
	enum tw_status st = tw_members_known(r, members, err);

	if (st == TW_OK)
		st = tw_members_read(r, members, NULL, err);
	if (st == TW_OK)
		st = check_link(r, "link", err);
	if (st == TW_OK)
		st = check_link(r, "commit_link", err);
	if (st == TW_OK && !*tw_json_text(r, "clone") && !*tw_json_text(r, "link"))
		st = tw_fail(err, TW_BAD_REQUEST, "it has neither link nor clone");
	return st;
}

static enum tw_status check_one(const json_t *all, size_t at, struct tw_err *err)
{
	const json_t *r = json_array_get(all, at);
	const char *name = tw_json_text(r, "name");
	enum tw_status st = TW_OK;

	if (!is_name(name))
		return tw_fail(err, TW_BAD_REQUEST,
		        "repository %zu: a name has 1 to 64 letters, digits and . _ -", at + 1);
	for (size_t i = 0; st == TW_OK && i < at; i++)
		if (strcmp(tw_json_text(json_array_get(all, i), "name"), name) == 0)
			st = tw_fail(err, TW_BAD_REQUEST, "the name is used twice");
	if (st == TW_OK)
		st = check_members(r, err);
	return tw_fail_within(st, err, "repository %.64s", name);
}

enum tw_status tw_source_rules_check(const json_t *doc, struct tw_err *err)
{
	const json_t *all = json_object_get(doc, "repositories");
	enum tw_status st = TW_OK;

	if (!json_is_array(all) || json_array_size(all) > TW_SOURCE_REPOSITORIES)
		return tw_fail(err, TW_BAD_REQUEST, "repositories must be a list of at most %d",
		        TW_SOURCE_REPOSITORIES);
	for (size_t i = 0; st == TW_OK && i < json_array_size(all); i++)
		st = check_one(all, i, err);
	return st;
}

const struct tw_setting tw_source_setting = {TW_SETTING_SOURCE, tw_source_rules_check};

/* --- the repository of a class --- */

/* The length of the matching prefix; -1: no match. */
static int fits(const char *prefix, const struct tw_source_name *name)
{
	char cls[TW_SOURCE_METHOD_BYTES + 1];
	size_t n = strlen(prefix);

	(void)snprintf(
	        cls, sizeof cls, "%s%s%s", name->package, *name->package ? "." : "", name->outer);
	if (strncmp(cls, prefix, n) != 0)
		return -1;
	return prefix[n - 1] == '.' || cls[n] == '.' || cls[n] == '\0' ? (int)n : -1;
}

const json_t *tw_source_rules_pick(const json_t *doc, const struct tw_source_name *name)
{
	const json_t *best = NULL, *r, *p;
	int longest = -1;
	size_t i, k;

	json_array_foreach(json_object_get(doc, "repositories"), i, r)
	{
		const json_t *packages = json_object_get(r, "packages");

		if (json_array_size(packages) == 0 && longest < 0) {
			best = r; /* the repository without prefixes, for all other classes */
			longest = 0;
		}
		json_array_foreach((json_t *)(uintptr_t)packages, k, p)
		{
			int n = fits(json_string_value(p), name);

			if (n > longest) {
				best = r;
				longest = n;
			}
		}
	}
	return best;
}

/* --- refs of a version --- */

/* Git's rules for ref names; an invalid name is not looked up. */
static bool is_ref_name(const char *s)
{
	size_t n = strlen(s);

	return n && n <= REF_BYTES && !tw_str_has_control(tw_str_of(s)) &&
	       !strpbrk(s, " ~^:?*[\\") && !strstr(s, "..") && !strstr(s, "//") &&
	       !strstr(s, "@{") && !strchr("/.-", s[0]) && !strchr("/.", s[n - 1]);
}

/* False: a placeholder has no value, or the text is too long. */
static bool expand(
        const char *text, const char *version, const char *build, char out[REF_BYTES + 2])
{
	size_t n = 0;

	while (*text && n < REF_BYTES) {
		bool of_version = strncmp(text, "{version}", 9) == 0;
		bool of_build = strncmp(text, "{build}", 7) == 0;
		const char *value = of_version ? version : of_build ? build : NULL;

		if (!value) {
			out[n++] = *text++;
			continue;
		}
		if (!*value || n + strlen(value) > REF_BYTES)
			return false;
		memcpy(out + n, value, strlen(value));
		n += strlen(value);
		text += of_version ? 9 : 7;
	}
	out[n] = '\0';
	return *text == '\0';
}

json_t *tw_source_rules_refs(
        const json_t *repository, const char *version, const char *build, const char *commit)
{
	static const char *const usual[] = {"v{version}", "{version}"};
	const json_t *given = json_object_get(repository, "refs");
	size_t n = json_array_size(given);
	json_t *names = json_array();

	if (*commit)
		(void)json_array_append_new(names, json_string(commit));
	for (size_t i = 0; i < (n ? n : 2); i++) {
		const char *text = n ? json_string_value(json_array_get(given, i)) : usual[i];
		char name[REF_BYTES + 2];

		if (expand(text, version, build, name) && is_ref_name(name))
			(void)json_array_append_new(names, json_string(name));
	}
	return names;
}

/* --- the expected path --- */

static const char *ending(const char *root, const struct tw_source_name *name)
{
	bool of_file = strcmp(name->outer, name->file) != 0; /* FeedKt */

	return of_file || strstr(root, "kotlin") ? ".kt" : ".java";
}

const char *tw_source_rules_path(const json_t *repository, const struct tw_source_name *name,
        const char *file, struct tw_arena *a)
{
	const json_t *roots = json_object_get(repository, "roots");
	const char *root = json_string_value(json_array_get(roots, 0));

	for (size_t i = 0; root && strchr(root, '*') && i < json_array_size(roots); i++)
		root = json_string_value(json_array_get(roots, i));
	if (!root || strchr(root, '*'))
		root = "";
	return tw_arena_printf(a, "%s%s%s%s%s%s", root, *root ? "/" : "", name->folder,
	        *name->folder ? "/" : "", *file ? file : name->file,
	        *file ? "" : ending(root, name));
}
