#include "server/catalogue/storage/catalogue_files.h"

enum { PAGE = 256, PAGE_ARENA = 4 << 20 };

static enum tw_status do_page(struct tw_stored_file *rows, size_t n, tw_stored_fn one, void *arg,
        struct tw_arena *a, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = one(arg, &rows[i], a, err);
	return st;
}

enum tw_status tw_stored_each(struct tw_catalogue *c, tw_stored_page_fn page, tw_stored_fn one,
        void *arg, struct tw_err *err)
{
	struct tw_arena *a = NULL;
	struct tw_stored_file *rows = NULL;
	enum tw_status st;
	size_t n = 0;

	do { /* a page stays valid until the next one was read from its last row on */
		struct tw_arena *next = tw_arena_new(PAGE_ARENA);

		st = next ? page(c, n ? &rows[n - 1] : NULL, PAGE, next, &rows, &n, err)
		          : tw_oom(err);
		tw_arena_free(a);
		a = next;
		if (st == TW_OK)
			st = do_page(rows, n, one, arg, a, err);
	} while (st == TW_OK && n);
	tw_arena_free(a);
	return st;
}

static enum tw_status count_one(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	(void)f;
	(void)a;
	(void)err;
	++*(uint64_t *)arg;
	return TW_OK;
}

uint64_t tw_stored_count(struct tw_catalogue *c, tw_stored_page_fn page)
{
	uint64_t n = 0;

	return tw_stored_each(c, page, count_one, &n, NULL) == TW_OK ? n : 0;
}
