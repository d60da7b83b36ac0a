/*
 * fleet_search.h - which calls of which traces took more than a time: out of postings, then in the
 * trace's file.
 *
 * Knows neither HTTP nor SQL.  Rows of postings are handed in; the longest calls
 * are kept.  What postings do not tell, which call it was and what called it, is
 * looked up in the files of those.
 * Thread: one question, one thread.
 */
#ifndef TW_FLEET_SEARCH_H
#define TW_FLEET_SEARCH_H

#include "server/catalogue/fleet/catalogue_post.h"
#include "server/query/query.h"

enum { TW_SEARCH_KEPT = 2000 };

struct tw_search_found { /* the longest call of a method on a thread of a trace, by postings */
	char trace_id[TW_POST_ID + 1];
	char thread[TW_POST_THREAD_BYTES + 1];
	bool is_main;
	uint32_t cell, which; /* indexes: of cells, of methods */
	int64_t max_ns;
};

struct tw_search {
	/* asked for; methods by number */
	const struct tw_rollup_naming *methods;
	size_t n_methods;
	const uint64_t *numbers; /* theirs */
	const char *thread;      /* its name; "main" is the main one too; NULL: any */
	int64_t over_ns;
	struct tw_arena *arena; /* of the cell at hand: its own */
	/* found */
	uint64_t matches;              /* a method on a thread of a trace each */
	struct tw_search_found *found; /* room for 2 * TW_SEARCH_KEPT */
	size_t n;
	/* at hand */
	size_t cell, cell_next; /* 0: none yet */
	struct tw_search_pack *packs;
	size_t n_packs, cap_packs;
	const struct tw_search_pack *pack;
};

/* What tw_post_ask.each calls, with the search as arg. */
enum tw_status tw_search_row(
        void *arg, size_t cell, unsigned slot, const struct tw_post_row *row, struct tw_err *err);
/* The longest first, at most TW_SEARCH_KEPT. */
void tw_search_sort(struct tw_search *s);

/* --- in a file (fleet_search_call.c) --- */

struct tw_search_path { /* what must have called it; methods by number */
	bool wanted;
	const struct tw_rollup_naming *ancestors;
	size_t n;
};
struct tw_search_call {
	bool there; /* false: none is longer than asked for, or time was up */
	uint64_t tid;
	int64_t start_ns, dur_ns;
	uint32_t depth;
};
struct tw_search_ask { /* borrowed */
	const struct tw_rollup_naming *method;
	const struct tw_search_found *found;
	const struct tw_search_path *path;
	int64_t over_ns;
	const struct tw_deadline *deadline;
};
/* The longest call that was found in its file, below one of the ancestors. */
enum tw_status tw_search_find_call(struct tw_trace_file *file, const struct tw_search_ask *ask,
        struct tw_search_call *ret, struct tw_err *err) TW_MUST_USE;

#endif
