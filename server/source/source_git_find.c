/*
 * source_git_find.c - finds the file of a class: at its package's path, then in files next to it
 * that declare the class, then in any file of that name with that package statement.
 */
#include <string.h>

#include "server/source/source_git.h"
#include "server/source/source_owners.h"

enum { SIBLINGS_MAX = 300, ELSEWHERE_MAX = 64, SCAN_BYTES = 192 << 20 };

struct seek {
	const struct tw_source_git *g;
	const git_tree *tree;
	const struct tw_source_want *want;
	struct tw_source_found *to;
	struct tw_arena *scratch;
	unsigned entries;
	/* state of a walk through the tree */
	const char *folders[ELSEWHERE_MAX], *files[ELSEWHERE_MAX];
	size_t n_folders, n_files;
	enum tw_status st;
	struct tw_err *err;
};

static bool ends_with(const char *s, const char *end)
{
	return tw_str_ends(tw_str_of(s), tw_str_of(end));
}

static bool is_kotlin(const char *path)
{
	return ends_with(path, ".kt");
}

static bool is_source(const char *path)
{
	return is_kotlin(path) || ends_with(path, ".java");
}

/* --- checking a file --- */

static void check_file(struct seek *s, const char *path)
{
	struct tw_source_location location;
	struct tw_decls decls;
	struct tw_str text;

	if (s->st != TW_OK || s->to->location.is_method)
		return;
	s->st = tw_source_git_late(s->g, s->err);
	if (s->st == TW_OK)
		s->st = tw_source_git_text(s->g, s->tree, path, s->scratch, &text, s->err);
	if (s->st == TW_OK)
		s->st = tw_source_scan(text, is_kotlin(path), s->scratch, &decls, s->err);
	if (s->st == TW_NOT_FOUND)
		s->st = TW_OK; /* tries the next name */
	else if (s->st == TW_OK) {
		tw_source_location(&decls, s->want->name, s->want->line, &location);
		if (location.n && (location.is_method || s->to->location.n == 0)) {
			s->to->location = location;
			s->to->path = path;
		}
	}
	tw_arena_reset(s->scratch);
}

static const char *joined(struct seek *s, const char *a, const char *b)
{
	const char *path = tw_arena_printf(s->g->a, "%s%s%s", a, *a && *b ? "/" : "", b);

	if (!path)
		s->st = tw_oom(s->err);
	return path ? path : "";
}

static void check_path(struct seek *s, const char *folder, const char *name, const char *ending)
{
	const char *file = tw_arena_printf(s->g->a, "%s%s", name, ending);

	if (file && *name)
		check_file(s, joined(s, folder, file));
}

/* Tries the names that the class's file should have. */
static void try_names(struct seek *s, const char *folder)
{
	const struct tw_source_name *n = s->want->name;

	if (is_source(s->want->file))
		check_path(s, folder, s->want->file, "");
	check_path(s, folder, n->file, ".kt");
	check_path(s, folder, n->file, ".java");
	if (strcmp(n->file, n->outer) != 0) {
		check_path(s, folder, n->outer, ".kt");
		check_path(s, folder, n->outer, ".java");
	}
}

/* Tries all source files in the folder. */
static void try_folder(struct seek *s, const char *folder)
{
	git_tree_entry *entry = NULL;
	git_tree *inside = NULL;
	size_t looked = 0;

	if (s->to->location.n || s->st != TW_OK || !*folder)
		return;
	if (git_tree_entry_bypath(&entry, s->tree, folder) == 0 &&
	        git_tree_entry_type(entry) == GIT_OBJECT_TREE)
		(void)git_tree_lookup(&inside, s->g->repo, git_tree_entry_id(entry));
	git_tree_entry_free(entry);
	for (size_t i = 0; inside && i < git_tree_entrycount(inside) && looked < SIBLINGS_MAX;
	        i++) {
		const char *name = git_tree_entry_name(git_tree_entry_byindex(inside, i));

		if (!is_source(name) || s->to->location.n)
			continue;
		looked++;
		check_file(s, joined(s, folder, name));
	}
	git_tree_free(inside);
}

/* --- locations --- */

static bool in_roots(const struct seek *s, struct tw_str folder)
{
	const json_t *root;
	size_t i;
	char pattern[TW_OWNERS_PATH_BYTES];

	json_array_foreach((json_t *)(uintptr_t)s->want->roots, i, root)
	{
		size_t len = json_string_length(root);

		if (len + 1 >= sizeof pattern)
			continue;
		pattern[0] = '/';
		memcpy(pattern + 1, json_string_value(root), len);
		if (tw_owners_fits((struct tw_str){pattern, len + 1}, folder))
			return true;
	}
	return json_array_size(s->want->roots) == 0;
}

/* Whether the path is the package's folder below a root. */
static bool is_package(const struct seek *s, const char *path)
{
	const char *folder = s->want->name->folder;
	size_t n = strlen(path), m = strlen(folder);

	if (n == m || !ends_with(path, folder))
		return n == m && strcmp(path, folder) == 0 && in_roots(s, TW_STR(""));
	return path[n - m - 1] == '/' && in_roots(s, (struct tw_str){path, n - m - 1});
}

static bool is_its_name(const struct seek *s, const char *name)
{
	const struct tw_source_name *n = s->want->name;
	size_t len = strlen(n->file);

	return strncmp(name, n->file, len) == 0 &&
	       (strcmp(name + len, ".kt") == 0 || strcmp(name + len, ".java") == 0);
}

static void keep(const char **to, size_t *n, const char *path)
{
	if (*n < ELSEWHERE_MAX)
		to[(*n)++] = path;
}

static int visit(const char *root, const git_tree_entry *entry, void *arg)
{
	struct seek *s = arg;
	const char *name = git_tree_entry_name(entry);
	bool folder = git_tree_entry_type(entry) == GIT_OBJECT_TREE;
	const char *path;

	if (++s->entries > TW_SOURCE_ENTRIES)
		s->st = tw_fail(s->err, TW_TOO_LARGE,
		        "the repository has more than %d files: set the folders that contain "
		        "sources",
		        TW_SOURCE_ENTRIES);
	else if (s->entries % 256 == 0)
		s->st = tw_source_git_late(s->g, s->err);
	if (s->st != TW_OK)
		return -1;
	if (!folder && !is_its_name(s, name))
		return 0;
	if (folder && !ends_with(s->want->name->folder, name))
		return 0;
	path = tw_arena_printf(s->g->a, "%s%s", root, name);
	if (!path)
		return -1;
	if (folder && is_package(s, path))
		keep(s->folders, &s->n_folders, path);
	else if (!folder && in_roots(s, (struct tw_str){path, strlen(path)}))
		keep(s->files, &s->n_files, path);
	return 0;
}

static bool is_plain(const char *root)
{
	return !strpbrk(root, "*?\\");
}

/* Tries the configured roots that are plain folders, without a walk. */
static void try_roots(struct seek *s)
{
	const json_t *root;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)s->want->roots, i, root)
	{
		if (is_plain(json_string_value(root)))
			try_names(s, joined(s, json_string_value(root), s->want->name->folder));
	}
}

/* Whether a line begins with "package com.example". */
static bool has_package(struct seek *s, const char *path)
{
	const char *package = s->want->name->package;
	struct tw_str text, line;

	tw_arena_reset(s->scratch);
	if (tw_source_git_text(s->g, s->tree, path, s->scratch, &text, NULL) != TW_OK)
		return false;
	while (text.len) {
		line = tw_str_trim(tw_str_split(&text, '\n'));
		if (!tw_str_starts(line, TW_STR("package ")))
			continue;
		line = tw_str_trim(tw_str_from(line, 8));
		if (line.len && line.ptr[line.len - 1] == ';')
			line.len--;
		return tw_str_eq(tw_str_trim(line), tw_str_of(package));
	}
	return !*package;
}

static void walk_tree(struct seek *s)
{
	if (git_tree_walk(s->tree, GIT_TREEWALK_PRE, visit, s) != 0 && s->st == TW_OK)
		s->st = tw_fail(s->err, TW_CORRUPT,
		        "the clone cannot be read: a folder of that commit is missing or broken");
	for (size_t i = 0; i < s->n_folders; i++)
		try_names(s, s->folders[i]);
	for (size_t i = 0; i < s->n_folders; i++)
		try_folder(s, s->folders[i]);
	for (size_t i = 0; i < s->n_files && !s->to->location.n; i++)
		if (s->st == TW_OK && has_package(s, s->files[i]))
			check_file(s, s->files[i]);
}

enum tw_status tw_source_git_find(const struct tw_source_git *g, const git_tree *tree,
        const struct tw_source_want *want, struct tw_source_found *ret, struct tw_err *err)
{
	struct seek s = {.g = g, .tree = tree, .want = want, .to = ret, .err = err};

	*ret = (struct tw_source_found){0};
	s.scratch = tw_arena_new(SCAN_BYTES);
	if (!s.scratch)
		return tw_oom(err);
	try_roots(&s);
	if (s.st == TW_OK && !ret->location.n)
		walk_tree(&s);
	(void)tw_arena_free(s.scratch);
	if (s.st != TW_OK)
		return s.st;
	if (ret->location.n)
		return TW_OK;
	return tw_fail(err, TW_NOT_FOUND,
	        "no file of that commit declares %.60s%s%.80s in the folders of sources",
	        want->name->package, *want->name->package ? "." : "", want->name->outer);
}
