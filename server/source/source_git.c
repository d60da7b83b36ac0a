#include "server/source/source_git.h"

#include <string.h>

#include "server/base/clock.h"

enum {
	CUT_ID = 7,
	FILES_OPEN = 16,
	REFS_MAX = 5000,
	NEWEST_MS = 300,
	WINDOW_BYTES = 32 << 20,
	MAPPED_BYTES = 512 << 20,
	CACHE_BYTES = 64 << 20
};
#define LAST_S ((int64_t)253402300799) /* the end of the year 9999 */

void tw_source_git_begin(void)
{
	static const int levels[] = {GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_GLOBAL,
	        GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_PROGRAMDATA};

	(void)git_libgit2_init();
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		(void)git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
	/* the folder's owner does not matter, because nothing from it is executed */
	(void)git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	(void)git_libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, (size_t)WINDOW_BYTES);
	(void)git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, (size_t)MAPPED_BYTES);
	(void)git_libgit2_opts(GIT_OPT_SET_MWINDOW_FILE_LIMIT, (size_t)FILES_OPEN);
	(void)git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, (ssize_t)CACHE_BYTES);
}

/* The library's error for a clone that cannot be read. */
static enum tw_status broken(const char *doing, struct tw_err *err)
{
	const git_error *e = git_error_last();

	return tw_fail(err, TW_CORRUPT, "the clone cannot be read: %s: %.100s", doing,
	        e && e->message ? e->message : "no reason given");
}

enum tw_status tw_source_git_open(
        struct tw_source_git *g, struct tw_arena *a, int64_t deadline_ms, struct tw_err *err)
{
	*g = (struct tw_source_git){.a = a, .deadline_ms = deadline_ms};
	if (git_repository_open_ext(&g->repo, ".", GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0)
		return TW_OK;
	return tw_fail(err, TW_NOT_FOUND,
	        "the clone's folder is not a readable git repository (clones with alternates are "
	        "not supported)");
}

void tw_source_git_close(struct tw_source_git *g)
{
	git_repository_free(g->repo);
	g->repo = NULL;
}

enum tw_status tw_source_git_late(const struct tw_source_git *g, struct tw_err *err)
{
	if (tw_monotonic_ms() < g->deadline_ms)
		return TW_OK;
	return tw_fail(err, TW_DEADLINE,
	        "the repository is too large for the time limit: select versions that are closer");
}

/* --- commits --- */

/* The length of a full or abbreviated commit id; 0: not one. */
static size_t id_length(const char *name)
{
	size_t len = strlen(name);

	return len >= CUT_ID && len <= GIT_OID_HEXSZ && strspn(name, "0123456789abcdef") == len
	               ? len
	               : 0;
}

static bool commit_of_ref(
        const struct tw_source_git *g, const char *name, bool whole, git_commit **ret)
{
	git_reference *ref = NULL;
	git_object *commit = NULL;
	int rc = whole ? git_reference_lookup(&ref, g->repo, name)
	               : git_reference_dwim(&ref, g->repo, name);

	if (rc == 0)
		rc = git_reference_peel(&commit, ref, GIT_OBJECT_COMMIT);
	git_reference_free(ref);
	*ret = (git_commit *)commit;
	return rc == 0;
}

static bool commit_of_name(const struct tw_source_git *g, const char *name, git_commit **ret)
{
	size_t len = id_length(name);
	git_oid id;

	if (len < GIT_OID_HEXSZ && commit_of_ref(g, name, false, ret))
		return true;
	return len && git_oid_fromstrn(&id, name, len) == 0 &&
	       git_commit_lookup_prefix(ret, g->repo, &id, len) == 0;
}

/* The newest commit: of the remote's default branch, otherwise HEAD. */
static enum tw_status commit_of_tip(
        const struct tw_source_git *g, git_commit **ret, struct tw_err *err)
{
	if (commit_of_ref(g, "refs/remotes/origin/HEAD", true, ret) ||
	        commit_of_ref(g, "HEAD", true, ret))
		return TW_OK;
	return broken("its newest commit", err);
}

enum tw_status tw_source_git_commit(
        const struct tw_source_git *g, const json_t *names, git_commit **ret, struct tw_err *err)
{
	const char *first = json_string_value(json_array_get(names, 0));

	if (json_is_null(names))
		return tw_fail(err, TW_NOT_FOUND,
		        "that version or build cannot be the name of a tag or branch: set how "
		        "versions are named");
	if (!first)
		return commit_of_tip(g, ret, err);
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (name && commit_of_name(g, name, ret))
			return TW_OK;
	}
	return tw_fail(err, TW_NOT_FOUND,
	        "the clone has no tag, branch or commit %.80s%s: fetch it, or set how versions are "
	        "named",
	        first, json_array_size(names) > 1 ? " (or any other form of the name)" : "");
}

const char *tw_source_git_between(
        const struct tw_source_git *g, const git_commit *base, const git_commit *head)
{
	const git_oid *a = git_commit_id(base), *b = git_commit_id(head);
	git_oid common;
	int rc;

	if (git_oid_equal(a, b))
		return "both are the same commit";
	rc = git_merge_base(&common, g->repo, a, b);
	if (rc == GIT_ENOTFOUND)
		return "the two commits have no common history: all commits of the newer side are "
		       "shown";
	if (rc != 0 || git_oid_equal(&common, a))
		return NULL;
	if (git_oid_equal(&common, b))
		return "the base is newer than the compared version: it contains all commits "
		       "between them";
	return "the base is not an ancestor of the compared version: commits of the base's branch "
	       "are not shown";
}

int64_t tw_source_git_time(const git_commit *c)
{
	int64_t at = git_commit_time(c);

	return at < 0 ? 0 : at > LAST_S ? LAST_S : at;
}

static int64_t time_of_ref(const git_reference *ref)
{
	git_object *o = NULL;
	int64_t at = 0;

	if (git_reference_peel(&o, ref, GIT_OBJECT_COMMIT) == 0)
		at = tw_source_git_time((const git_commit *)o);
	git_object_free(o);
	return at;
}

/* Other refs, such as merge requests, are not versions. */
static bool is_of_version(const git_reference *ref)
{
	static const char *const folders[] = {"refs/heads/", "refs/tags/", "refs/remotes/origin/"};
	bool any = false;

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		any = any || strncmp(git_reference_name(ref), folders[i], strlen(folders[i])) == 0;
	return any;
}

static int64_t newest_of(git_reference_iterator *all, int64_t newest, int64_t until_ms)
{
	git_reference *ref = NULL;
	unsigned inspected = 0;
	int rc;

	while ((rc = git_reference_next(&ref, all)) == 0) {
		const bool over = inspected == REFS_MAX || tw_monotonic_ms() >= until_ms;
		int64_t at = !over && is_of_version(ref) ? time_of_ref(ref) : 0;

		inspected += at > 0;
		newest = at > newest ? at : newest;
		git_reference_free(ref);
		if (over)
			return 0;
	}
	return rc == GIT_ITEROVER ? newest : 0;
}

int64_t tw_source_git_newest(const struct tw_source_git *g)
{
	const int64_t moment = tw_monotonic_ms() + NEWEST_MS;
	git_reference_iterator *all = NULL;
	git_commit *tip = NULL;
	int64_t newest = 0;

	if (commit_of_tip(g, &tip, NULL) == TW_OK)
		newest = tw_source_git_time(tip);
	git_commit_free(tip);
	if (git_reference_iterator_new(&all, g->repo) != 0)
		return 0;
	newest = newest_of(all, newest, moment < g->deadline_ms ? moment : g->deadline_ms);
	git_reference_iterator_free(all);
	return newest;
}

/* --- files --- */

static enum tw_status read_blob(const struct tw_source_git *g, const git_tree_entry *entry,
        const char *path, struct tw_arena *a, struct tw_str *ret, struct tw_err *err)
{
	const git_oid *id = git_tree_entry_id(entry);
	git_odb *odb = NULL;
	git_blob *blob = NULL;
	git_object_t type;
	size_t len = 0;
	char *copy = NULL;
	int rc = git_repository_odb(&odb, g->repo);

	if (rc == 0)
		rc = git_odb_read_header(&len, &type, odb, id);
	git_odb_free(odb);
	if (rc == 0 && len > TW_SOURCE_FILE_BYTES)
		return tw_fail(
		        err, TW_TOO_LARGE, "%.120s is larger than 2 MiB and is not read", path);
	if (rc == 0)
		rc = git_blob_lookup(&blob, g->repo, id);
	if (rc != 0)
		return broken("a file", err);
	copy = tw_arena_str(
	        a, (struct tw_str){git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)});
	ret->ptr = copy;
	ret->len = (size_t)git_blob_rawsize(blob);
	git_blob_free(blob);
	return copy ? TW_OK : tw_oom(err);
}

enum tw_status tw_source_git_text(const struct tw_source_git *g, const git_tree *tree,
        const char *path, struct tw_arena *a, struct tw_str *ret, struct tw_err *err)
{
	git_tree_entry *entry = NULL;
	enum tw_status st;

	if (git_tree_entry_bypath(&entry, tree, path) != 0 ||
	        git_tree_entry_type(entry) != GIT_OBJECT_BLOB) {
		git_tree_entry_free(entry);
		return tw_fail(err, TW_NOT_FOUND, "no file %.120s", path);
	}
	st = read_blob(g, entry, path, a, ret, err);
	git_tree_entry_free(entry);
	return st;
}
