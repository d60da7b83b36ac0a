/*
 * worker_source.c - the child that reads the commits and lines of a method from one clone.
 *
 *   task   {"kind":"source","limits":{…},"ms","roots":[…],"owners":"","method","file","line",
 *           "head":[names],"base":[names],"log":bool}
 *   first  a line with the answer's members that are known before the history is read
 *   answer {"newest_ms","commit","path","lines":[[first,last]…],"is_method","note","owners":[…],
 *           "owners_file","owners_error","base_commit","base_note","commits":[…],"more"}; after
 * an error with "reason" and "status", and the members that were found before.
 */
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/text/json.h"
#include "server/decode/worker_internal.h"
#include "server/source/source_git.h"
#include "server/source/source_owners.h"

enum { ARENA_BYTES = 512 << 20, OWNERS_SHOWN = 20, OWNER_BYTES = 200, DAY_S = 86400 };

struct job {
	const json_t *task;
	struct tw_source_git git;
	struct tw_source_name name;
	json_t *answer;
};

enum tw_status tw_worker_source_begin(struct tw_err *err)
{
	tw_source_git_begin();
	if (fchdir(TW_WORKER_INPUT) == 0)
		return TW_OK;
	return tw_fail(err, TW_IO, "the folder of the clone cannot be entered");
}

static const char *word(const struct job *j, const char *key)
{
	return tw_json_text(j->task, key);
}

static void put(struct job *j, const char *key, json_t *value)
{
	(void)json_object_set_new(j->answer, key, value);
}

static void put_commit(struct job *j, const char *key, const git_commit *c)
{
	char id[GIT_OID_HEXSZ + 1];

	(void)git_oid_tostr(id, sizeof id, git_commit_id(c));
	put(j, key, json_string(id));
}

static json_t *clean(struct tw_str s)
{
	char out[OWNER_BYTES];

	(void)tw_utf8_clean(out, sizeof out, s);
	return json_string(out);
}

/* --- owners --- */

static json_t *owners_json(const struct tw_owners_hit *hit)
{
	struct tw_str rest = hit->owners;
	json_t *names = json_array();

	while (rest.len && json_array_size(names) < OWNERS_SHOWN) {
		struct tw_str name = tw_str_trim(tw_str_split(&rest, ' '));

		if (name.len)
			(void)json_array_append_new(names, clean(name));
	}
	return json_pack("{s:o,s:o,s:I}", "section", clean(hit->section), "names", names, "line",
	        (json_int_t)hit->line);
}

/* Owners are read from the current file, because they are responsible now. */
static void put_owners(struct job *j, const git_tree *tree, const char *path)
{
	static const char *const usual[] = {
	        ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"};
	const char *named = word(j, "owners");
	struct tw_owners_hit hits[TW_OWNERS_SECTIONS];
	json_t *all = json_array();
	struct tw_str text;
	struct tw_err why;
	enum tw_status st;
	size_t n = 0;

	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		const char *at = *named ? named : usual[i];

		st = tw_source_git_text(&j->git, tree, at, j->git.a, &text, &why);
		if (st == TW_NOT_FOUND)
			continue;
		if (st != TW_OK) { /* another file would list other owners */
			put(j, "owners_error", clean(tw_str_of(why.msg)));
			break;
		}
		n = tw_owners_find(text, tw_str_of(path), hits);
		put(j, "owners_file", json_string(at));
		break;
	}
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, owners_json(&hits[i]));
	put(j, "owners", all);
}

static void add_owners(struct job *j, const char *path)
{
	git_commit *tip = NULL;
	git_tree *tree = NULL;

	if (tw_source_git_commit(&j->git, NULL, &tip, NULL) == TW_OK &&
	        git_commit_tree(&tree, tip) == 0)
		put_owners(j, tree, path);
	git_tree_free(tree);
	git_commit_free(tip);
}

/* --- the method --- */

static void add_location(struct job *j, const struct tw_source_found *f)
{
	json_t *lines = json_array();

	for (size_t i = 0; i < f->location.n; i++)
		(void)json_array_append_new(
		        lines, json_pack("[I,I]", (json_int_t)f->location.at[i].first,
		                       (json_int_t)f->location.at[i].last));
	put(j, "path", clean(tw_str_of(f->path)));
	put(j, "lines", lines);
	put(j, "is_method", json_boolean(f->location.is_method));
	if (f->location.note)
		put(j, "note", json_string(f->location.note));
}

static enum tw_status find(
        struct job *j, const git_commit *head, struct tw_source_found *ret, struct tw_err *err)
{
	const struct tw_source_want want = {json_object_get(j->task, "roots"), &j->name,
	        word(j, "file"), (uint32_t)json_integer_value(json_object_get(j->task, "line"))};
	git_tree *tree = NULL;
	enum tw_status st;

	if (git_commit_tree(&tree, head) != 0)
		return tw_fail(err, TW_CORRUPT, "the clone cannot be read: a commit has no files");
	st = tw_source_git_find(&j->git, tree, &want, ret, err);
	git_tree_free(tree);
	if (st != TW_OK)
		return st;
	add_location(j, ret);
	add_owners(j, ret->path);
	return TW_OK;
}

/* Writes the result so far: reading the history may exceed this child's time. */
static void send_early(const struct job *j)
{
	json_t *o = json_pack("{s:b,s:O}", "ok", 1, "summary", j->answer);

	if (o)
		(void)tw_worker_send_line(o);
	json_decref(o);
}

static void put_base(struct job *j, const git_commit *base, const git_commit *head)
{
	const char *note = tw_source_git_between(&j->git, base, head);

	put_commit(j, "base_commit", base);
	if (note)
		put(j, "base_note", json_string(note));
}

static enum tw_status add_history(
        struct job *j, const git_commit *head, const struct tw_source_found *f, struct tw_err *err)
{
	const json_t *names = json_object_get(j->task, "base");
	git_commit *base = NULL;
	json_t *commits = NULL;
	bool more = false;
	enum tw_status st = TW_OK;

	if (!f->location.is_method)
		return tw_fail(err, TW_NOT_FOUND, "%s declares no method %.100s in that version",
		        f->path, j->name.method);
	if (json_is_null(names) || json_array_size(names))
		st = tw_source_git_commit(&j->git, names, &base, err);
	if (st == TW_OK && base)
		put_base(j, base, head);
	if (st == TW_OK)
		send_early(j);
	if (st == TW_OK)
		st = tw_worker_fault("TRACEWELL_SOURCE_FAULT", err);
	if (st == TW_OK)
		st = tw_source_git_log(&j->git, head, base, f, &commits, &more, err);
	git_commit_free(base);
	if (!commits)
		return st;
	put(j, "commits", commits);
	put(j, "more", json_boolean(more));
	return st;
}

/* A time in the future does not show how old the clone is. */
static void add_newest(struct job *j)
{
	const int64_t newest = tw_source_git_newest(&j->git);

	if (newest > 0 && newest <= tw_unix_ms() / 1000 + DAY_S)
		put(j, "newest_ms", json_integer((json_int_t)newest * 1000));
}

static enum tw_status run_request(struct job *j, struct tw_err *err)
{
	struct tw_source_found found = {0};
	git_commit *head = NULL;
	enum tw_status st;

	st = tw_source_git_commit(&j->git, json_object_get(j->task, "head"), &head, err);
	if (st == TW_OK)
		put_commit(j, "commit", head);
	if (st == TW_OK)
		st = find(j, head, &found, err);
	if (st == TW_OK && json_is_true(json_object_get(j->task, "log")))
		st = add_history(j, head, &found, err);
	git_commit_free(head);
	return st;
}

enum tw_status tw_worker_source(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct job j = {.task = task, .answer = json_object()};
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	int64_t ms = json_integer_value(json_object_get(task, "ms"));
	struct tw_err why = {0};
	enum tw_status st = a && j.answer ? TW_OK : tw_oom(&why);

	if (st == TW_OK)
		st = tw_source_name_read(word(&j, "method"), a, &j.name, &why);
	if (st == TW_OK)
		st = tw_source_git_open(&j.git, a, tw_monotonic_ms() + ms, &why);
	if (st == TW_OK)
		st = run_request(&j, &why);
	if (j.git.repo)
		add_newest(&j);
	if (st != TW_OK) {
		put(&j, "reason", clean(tw_str_of(why.msg)));
		put(&j, "status", json_string(tw_status_name(st)));
	}
	tw_source_git_close(&j.git);
	(void)tw_arena_free(a);
	*ret = j.answer;
	return j.answer ? TW_OK : tw_oom(err);
}
