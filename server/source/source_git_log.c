/*
 * source_git_log.c - the history of lines: walks commits back from the newest one, and maps the
 * lines from each commit to its parents.
 *
 * If a parent has the same file, the walk continues only there, as `git log` does; a moved file is
 * followed to its previous path. A merge is listed only if its lines differ from those of all
 * parents.
 */
#include <string.h>

#include <git2/sys/hashsig.h>

#include "server/source/source_git.h"

enum {
	PENDING_MAX = 4096,
	PARENTS_MAX = 8,
	HUNKS_MAX = 4096,
	DELTAS_MAX = 5000,
	RENAMES_MAX = 400, /* deleted files that are compared with a new one */
	SIMILAR = 50,      /* percent, git's default */
	EXACT = 101,
	TEXT_BYTES = 200,
	NEWEST = 5 /* commits listed without a base */
};

/* Lines to follow back from a commit. */
struct lines {
	git_oid commit;
	const char *path;
	struct tw_range at[TW_LOCATION_RANGES];
	size_t n;
};

struct hunk {
	uint32_t old_start, old_lines, new_start, new_lines;
};

struct history {
	const struct tw_source_git *g;
	struct lines *pending;
	size_t n;
	struct hunk *hunks;
	size_t n_hunks;
	json_t *commits;
	uint32_t changed; /* number of lines changed by the current commit */
	size_t most;
	bool more;
	struct tw_err *err;
};

/* --- mapping lines to an older file --- */

static int keep_hunk(const git_diff_delta *delta, const git_diff_hunk *hunk, void *arg)
{
	struct history *h = arg;

	(void)delta;
	if (h->n_hunks == HUNKS_MAX)
		return -1;
	h->hunks[h->n_hunks++] = (struct hunk){(uint32_t)hunk->old_start, (uint32_t)hunk->old_lines,
	        (uint32_t)hunk->new_start, (uint32_t)hunk->new_lines};
	return 0;
}

static bool touches(const struct hunk *k, struct tw_range r)
{
	if (k->new_lines == 0) /* lines were removed after new_start */
		return k->new_start >= r.first && k->new_start < r.last;
	return k->new_start <= r.last && k->new_start + k->new_lines - 1 >= r.first;
}

/* Whether the hunk ends before the line. */
static bool is_before(const struct hunk *k, uint32_t line)
{
	return k->new_lines ? k->new_start + k->new_lines <= line : k->new_start < line;
}

static bool is_at(const struct hunk *k, uint32_t line)
{
	return k->new_lines && k->new_start <= line && line < k->new_start + k->new_lines;
}

static uint32_t moved(uint32_t line, int64_t by)
{
	int64_t to = (int64_t)line + by;

	return to < 0 ? 0 : (uint32_t)to;
}

/* Maps the lines to the file before the hunks; first > last: none remain. Returns whether a hunk
 * touches them. */
static bool map_range(const struct history *h, struct tw_range r, struct tw_range *ret)
{
	int64_t to_first = 0, to_last = 0;
	const struct hunk *first_at = NULL, *last_at = NULL;
	bool touched = false;

	for (size_t i = 0; i < h->n_hunks; i++) {
		const struct hunk *k = &h->hunks[i];
		int64_t grew = (int64_t)k->old_lines - (int64_t)k->new_lines;

		touched = touched || touches(k, r);
		to_first += is_before(k, r.first) ? grew : 0;
		to_last += is_before(k, r.last) ? grew : 0;
		first_at = is_at(k, r.first) ? k : first_at;
		last_at = is_at(k, r.last) ? k : last_at;
	}
	ret->first = first_at ? first_at->old_start + (first_at->old_lines == 0)
	                      : moved(r.first, to_first);
	ret->last = last_at ? last_at->old_start + last_at->old_lines - (last_at->old_lines > 0)
	                    : moved(r.last, to_last);
	return touched;
}

/* The lines of the range that a hunk added or changed; if it only removed lines, the number of
 * those. */
static uint32_t changed_lines(const struct hunk *k, struct tw_range r)
{
	uint32_t first = k->new_start > r.first ? k->new_start : r.first;
	uint32_t end = k->new_start + k->new_lines;

	if (!touches(k, r))
		return 0;
	if (k->new_lines == 0)
		return k->old_lines;
	return (end <= r.last ? end : r.last + 1) - first;
}

static uint32_t changed_by_all(const struct history *h, const struct lines *l)
{
	uint32_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < h->n_hunks; k++)
			n += changed_lines(&h->hunks[k], l->at[i]);
	return n;
}

static uint32_t count_lines(const struct lines *l)
{
	uint32_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->at[i].last - l->at[i].first + 1;
	return n;
}

static bool map_ranges(const struct history *h, const struct lines *from, struct lines *to)
{
	bool touched = false;

	to->n = 0;
	for (size_t i = 0; i < from->n; i++) {
		struct tw_range r;

		touched = map_range(h, from->at[i], &r) || touched;
		if (r.first && r.first <= r.last)
			to->at[to->n++] = r;
	}
	return touched;
}

/* --- commits to visit --- */

/* Adds lines that a commit shares with another child: overlapping ranges become one. */
static void add_range(struct lines *io, struct tw_range r)
{
	for (size_t i = 0; i < io->n; i++) {
		struct tw_range *at = &io->at[i];

		if (at->last < r.first || r.last < at->first)
			continue;
		at->first = at->first < r.first ? at->first : r.first;
		at->last = at->last > r.last ? at->last : r.last;
		return;
	}
	if (io->n < TW_LOCATION_RANGES)
		io->at[io->n++] = r;
}

static struct lines *find_pending(const struct history *h, const git_oid *commit)
{
	for (size_t i = 0; i < h->n; i++)
		if (git_oid_equal(&h->pending[i].commit, commit))
			return &h->pending[i];
	return NULL;
}

static enum tw_status add_pending(struct history *h, const struct lines *l)
{
	struct lines *pending = find_pending(h, &l->commit);

	if (l->n == 0)
		return TW_OK;
	if (!pending && h->n == PENDING_MAX)
		return tw_fail(h->err, TW_TOO_LARGE,
		        "the history branches too often to follow these lines");
	if (!pending)
		h->pending[h->n++] = *l;
	for (size_t i = 0; pending && i < l->n; i++)
		add_range(pending, l->at[i]);
	return TW_OK;
}

static bool take_pending(struct history *h, const git_oid *commit, struct lines *ret)
{
	struct lines *pending = find_pending(h, commit);

	if (pending) {
		*ret = *pending;
		*pending = h->pending[--h->n];
	}
	return pending != NULL;
}

/* --- one commit and one parent --- */

static bool blob_at(const git_commit *c, const char *path, git_oid *ret)
{
	git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	bool there = git_commit_tree(&tree, c) == 0 &&
	             git_tree_entry_bypath(&entry, tree, path) == 0 &&
	             git_tree_entry_type(entry) == GIT_OBJECT_BLOB;

	if (there)
		git_oid_cpy(ret, git_tree_entry_id(entry));
	git_tree_entry_free(entry);
	git_tree_free(tree);
	return there;
}

/* SIZE_MAX: unknown. */
static size_t size_of(const struct tw_source_git *g, const git_oid *id)
{
	git_odb *odb = NULL;
	git_object_t type;
	size_t len = SIZE_MAX;

	if (git_repository_odb(&odb, g->repo) == 0 &&
	        git_odb_read_header(&len, &type, odb, id) != 0)
		len = SIZE_MAX;
	git_odb_free(odb);
	return len;
}

static bool is_small(const struct history *h, const git_oid *id)
{
	return size_of(h->g, id) <= TW_SOURCE_FILE_BYTES;
}

/* --- renames --- */

/* The most similar file among those that the commit deleted. */
struct origin {
	const struct history *h;
	git_oid id;
	size_t len;
	git_hashsig *signature; /* NULL: empty, too large or unreadable */
	const char *best;
	int score;
};

/* NULL: empty, too large or unreadable. */
static git_hashsig *signature_of(const struct history *h, const git_oid *id)
{
	git_hashsig *signature = NULL;
	git_blob *blob = NULL;

	if (is_small(h, id) && git_blob_lookup(&blob, h->g->repo, id) == 0 &&
	        git_hashsig_create(&signature, git_blob_rawcontent(blob),
	                (size_t)git_blob_rawsize(blob),
	                GIT_HASHSIG_NORMAL | GIT_HASHSIG_ALLOW_SMALL_FILES) != 0)
		signature = NULL;
	git_blob_free(blob);
	return signature;
}

/* If the lengths differ by more than a factor of two, the files cannot be similar enough. */
static bool may_be_similar(const struct origin *o, const git_oid *id)
{
	size_t len = size_of(o->h->g, id);

	return len <= TW_SOURCE_FILE_BYTES && len / 2 <= o->len && o->len / 2 <= len;
}

static void compare_signature(struct origin *o, const git_diff_file *old)
{
	git_hashsig *signature;
	int score = 0;

	if (git_oid_equal(&old->id, &o->id)) {
		score = EXACT;
	} else if (o->signature && may_be_similar(o, &old->id)) {
		signature = signature_of(o->h, &old->id);
		score = signature ? git_hashsig_compare(signature, o->signature) : 0;
		git_hashsig_free(signature);
	}
	if (score < SIMILAR || score <= o->score)
		return;
	o->score = score;
	o->best = old->path;
}

/* Called for each different file, because the diff of a large commit may exceed the time limit. */
static int stop_when_late(
        const git_diff *so_far, const git_diff_delta *delta, const char *matched, void *arg)
{
	const struct history *h = arg;

	(void)so_far;
	(void)delta;
	(void)matched;
	return tw_source_git_late(h->g, NULL) == TW_OK ? 0 : -1;
}

static void compare_deleted(struct origin *o, const git_diff *diff)
{
	size_t n = git_diff_num_deltas(diff), compared = 0;

	for (size_t i = 0; i < n && compared < RENAMES_MAX && o->score < EXACT; i++) {
		const git_diff_delta *d = git_diff_get_delta(diff, i);

		if (d->status != GIT_DELTA_DELETED)
			continue;
		if (tw_source_git_late(o->h->g, NULL) != TW_OK)
			return;
		compared++;
		compare_signature(o, &d->old_file);
	}
}

/* NULL: none is similar enough. */
static const char *most_similar(struct origin *o, const git_diff *diff)
{
	const char *best = NULL;

	o->len = size_of(o->h->g, &o->id);
	o->signature = signature_of(o->h, &o->id);
	compare_deleted(o, diff);
	git_hashsig_free(o->signature);
	if (o->best)
		best = tw_arena_str(o->h->g->a, tw_str_of(o->best));
	return best;
}

/* The file's previous path if the commit moved it; NULL: the commit created it. */
static const char *path_before(
        const struct history *h, const git_commit *parent, const git_commit *c, const char *path)
{
	struct origin o = {.h = h};
	git_diff_options opts = GIT_DIFF_OPTIONS_INIT;
	git_tree *from = NULL, *to = NULL;
	git_diff *diff = NULL;
	const char *old = NULL;

	opts.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
	opts.notify_cb = stop_when_late;
	opts.payload = (void *)(uintptr_t)h;
	if (blob_at(c, path, &o.id) && git_commit_tree(&from, parent) == 0 &&
	        git_commit_tree(&to, c) == 0 &&
	        git_diff_tree_to_tree(&diff, h->g->repo, from, to, &opts) == 0 &&
	        git_diff_num_deltas(diff) <= DELTAS_MAX)
		old = most_similar(&o, diff);
	git_diff_free(diff);
	git_tree_free(from);
	git_tree_free(to);
	return old;
}

/* --- lines in the parent --- */

/* Collects the hunks between two blobs. */
static enum tw_status compare(struct history *h, const git_oid *old, const git_oid *new)
{
	git_diff_options opts = GIT_DIFF_OPTIONS_INIT;
	git_blob *a = NULL, *b = NULL;
	int rc = -1;

	h->n_hunks = 0;
	opts.context_lines = 0;
	opts.flags = GIT_DIFF_FORCE_TEXT;
	if (is_small(h, old) && is_small(h, new) && git_blob_lookup(&a, h->g->repo, old) == 0 &&
	        git_blob_lookup(&b, h->g->repo, new) == 0)
		rc = git_diff_blobs(a, NULL, b, NULL, &opts, NULL, NULL, keep_hunk, NULL, h);
	git_blob_free(a);
	git_blob_free(b);
	if (rc == 0)
		return TW_OK;
	return tw_fail(h->err, TW_CORRUPT,
	        "the history of the file cannot be followed: a version of it is broken or too "
	        "large");
}

/* Maps the commit's lines to a parent: *ret_touched if they changed, and the lines to follow
 * there. */
static enum tw_status follow_parent(struct history *h, const git_commit *c,
        const git_commit *parent, const struct lines *l, bool *ret_touched)
{
	struct lines older = {.path = l->path};
	git_oid old, new;
	enum tw_status st;

	*ret_touched = true;
	h->changed = count_lines(l); /* unless the parent has the file */
	git_oid_cpy(&older.commit, git_commit_id(parent));
	if (!blob_at(parent, older.path, &old)) {
		older.path = path_before(h, parent, c, l->path);
		if (!older.path || !blob_at(parent, older.path, &old))
			return TW_OK; /* the commit created the file */
	}
	if (!blob_at(c, l->path, &new))
		return TW_OK;
	st = compare(h, &old, &new);
	if (st != TW_OK)
		return st;
	*ret_touched = map_ranges(h, l, &older);
	h->changed = changed_by_all(h, l);
	return add_pending(h, &older);
}

/* --- one commit --- */

static json_t *clean(const char *text)
{
	char out[TEXT_BYTES];

	(void)tw_utf8_clean(out, sizeof out, tw_str_of(text ? text : ""));
	return json_string(out);
}

static void report(struct history *h, const git_commit *c)
{
	const git_signature *who = git_commit_author(c);
	char id[GIT_OID_HEXSZ + 1];
	const json_int_t at = (json_int_t)tw_source_git_time(c) * 1000;
	const char *summary = git_commit_summary((git_commit *)(uintptr_t)c);

	h->more = json_array_size(h->commits) == h->most;
	if (h->more)
		return;
	(void)git_oid_tostr(id, sizeof id, git_commit_id(c));
	(void)json_array_append_new(h->commits,
	        json_pack("{s:s,s:o,s:o,s:I,s:o,s:I}", "id", id, "author",
	                clean(who ? who->name : ""), "email", clean(who ? who->email : ""),
	                "time_ms", at, "summary", clean(summary), "lines", (json_int_t)h->changed));
}

/* In a shallow clone, libgit2 1.5 reports the oldest commits as broken. */
static enum tw_status fail_incomplete(const struct history *h)
{
	const bool shallow = git_repository_is_shallow(h->g->repo) == 1;

	return tw_fail(h->err, TW_CORRUPT,
	        shallow ? "the clone is shallow and lacks older commits: run git fetch --unshallow"
	                : "the clone is broken, older commits cannot be read: run git fsck on it");
}

/* If a parent has the same file, all lines came from there. */
static bool skip_unchanged(
        struct history *h, const git_commit *c, const struct lines *l, enum tw_status *ret)
{
	git_oid here, there;
	unsigned n = git_commit_parentcount(c);
	struct lines older = *l;

	if (!blob_at(c, l->path, &here))
		return false;
	for (unsigned i = 0; i < n; i++) {
		git_commit *parent = NULL;
		bool same = git_commit_parent(&parent, c, i) == 0 &&
		            blob_at(parent, l->path, &there) && git_oid_equal(&here, &there);

		git_commit_free(parent);
		if (!same)
			continue;
		git_oid_cpy(&older.commit, git_commit_parent_id(c, i));
		*ret = add_pending(h, &older);
		return true;
	}
	return false;
}

static enum tw_status visit(struct history *h, const git_commit *c, const struct lines *l)
{
	unsigned n = git_commit_parentcount(c);
	bool by_all = true;
	enum tw_status st = TW_OK;

	h->changed = count_lines(l); /* of a root commit */
	if (skip_unchanged(h, c, l, &st))
		return st;
	for (unsigned i = 0; st == TW_OK && i < n && i < PARENTS_MAX; i++) {
		git_commit *parent = NULL;
		bool touched = false;

		if (git_commit_parent(&parent, c, i) != 0)
			return fail_incomplete(h);
		st = follow_parent(h, c, parent, l, &touched);
		by_all = by_all && touched;
		git_commit_free(parent);
	}
	if (st == TW_OK && by_all)
		report(h, c);
	return st;
}

static enum tw_status find_commit(struct history *h, const git_oid *id, const struct lines *l)
{
	git_commit *c = NULL;
	enum tw_status st =
	        git_commit_lookup(&c, h->g->repo, id) == 0 ? visit(h, c, l) : fail_incomplete(h);

	git_commit_free(c);
	return st;
}

static enum tw_status walk(struct history *h, git_revwalk *w)
{
	enum tw_status st = TW_OK;
	git_oid id;

	for (unsigned i = 0; st == TW_OK && h->n && !h->more; i++) {
		int rc = git_revwalk_next(&id, w);
		struct lines l;

		if (rc == GIT_ITEROVER)
			return TW_OK;
		if (rc != 0)
			return fail_incomplete(h);
		if (i == TW_SOURCE_COMMITS)
			return tw_fail(h->err, TW_TOO_LARGE,
			        "there are more than %d commits between these versions",
			        TW_SOURCE_COMMITS);
		st = tw_source_git_late(h->g, h->err);
		if (st == TW_OK && take_pending(h, &id, &l))
			st = find_commit(h, &id, &l);
	}
	return st;
}

static enum tw_status begin(
        struct history *h, const git_commit *head, const struct tw_source_found *of)
{
	struct lines l = {.path = of->path, .n = of->location.n};

	h->pending = tw_arena_alloc(h->g->a, PENDING_MAX, sizeof *h->pending);
	h->hunks = tw_arena_alloc(h->g->a, HUNKS_MAX, sizeof *h->hunks);
	h->commits = json_array();
	if (!h->pending || !h->hunks || !h->commits)
		return tw_oom(h->err);
	memcpy(l.at, of->location.at, sizeof l.at);
	git_oid_cpy(&l.commit, git_commit_id(head));
	return add_pending(h, &l);
}

enum tw_status tw_source_git_log(const struct tw_source_git *g, const git_commit *head,
        const git_commit *base, const struct tw_source_found *of, json_t **ret, bool *ret_more,
        struct tw_err *err)
{
	struct history h = {.g = g, .most = base ? TW_SOURCE_LISTED : NEWEST, .err = err};
	git_revwalk *w = NULL;
	enum tw_status st = begin(&h, head, of);
	int rc = st == TW_OK ? git_revwalk_new(&w, g->repo) : -1;

	if (rc == 0)
		rc = git_revwalk_sorting(
		        w, base ? GIT_SORT_TOPOLOGICAL | GIT_SORT_TIME : GIT_SORT_TIME);
	if (rc == 0)
		rc = git_revwalk_push(w, git_commit_id(head));
	if (rc == 0 && base)
		rc = git_revwalk_hide(w, git_commit_id(base));
	if (st == TW_OK && rc != 0)
		st = tw_fail(err, TW_CORRUPT, "the clone cannot be read: its history is broken");
	if (st == TW_OK)
		st = walk(&h, w);
	git_revwalk_free(w);
	*ret = h.commits;
	/* commits of base are never reached; without a base, none should remain */
	*ret_more = st != TW_OK || h.more || (!base && h.n);
	return st;
}
