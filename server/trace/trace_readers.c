#include "server/trace/trace_readers.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READERS = 64 };

struct kept {
	struct tw_trace_file *file; /* NULL: none */
	struct stat as;             /* its stored file after the last use */
};

struct tw_trace_readers {
	pthread_mutex_t lock;
	struct kept kept[READERS];
	unsigned next; /* the longest unused */
};

struct tw_trace_readers *tw_trace_readers_new(void)
{
	struct tw_trace_readers *r = tw_mem_zalloc(1, sizeof *r);

	if (r)
		(void)pthread_mutex_init(&r->lock, NULL);
	return r;
}

struct tw_trace_readers *tw_trace_readers_free(struct tw_trace_readers *r)
{
	if (!r)
		return NULL;
	for (unsigned i = 0; i < READERS; i++)
		tw_trace_file_close(r->kept[i].file);
	(void)pthread_mutex_destroy(&r->lock);
	tw_mem_free(r);
	return NULL;
}

/* The number of an open file is not used again.  Its time changes when it is written in place. */
static bool is_same(const struct kept *k, const struct stat *now)
{
	return k->file && k->as.st_dev == now->st_dev && k->as.st_ino == now->st_ino &&
	       k->as.st_size == now->st_size && k->as.st_mtim.tv_sec == now->st_mtim.tv_sec &&
	       k->as.st_mtim.tv_nsec == now->st_mtim.tv_nsec;
}

static struct tw_trace_file *take(struct tw_trace_readers *r, const struct stat *of)
{
	struct tw_trace_file *f = NULL;

	(void)pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < READERS && !f; i++)
		if (is_same(&r->kept[i], of)) {
			f = r->kept[i].file;
			r->kept[i].file = NULL;
		}
	(void)pthread_mutex_unlock(&r->lock);
	return f;
}

enum tw_status tw_trace_readers_open(struct tw_trace_readers *r, struct tw_blobs *b,
        const char *trace_id, struct tw_trace_file **ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	struct tw_trace_file *f = NULL;
	struct stat of;
	int fd = -1;

	if (r)
		st = tw_trace_open(b, trace_id, &fd, err);
	if (st != TW_OK && st != TW_CORRUPT) /* a store that does not respond is not tried twice */
		return st;
	if (fd >= 0) {
		f = fstat(fd, &of) == 0 ? take(r, &of) : NULL;
		(void)close(fd);
	}
	if (!f)
		return tw_trace_stored_open(b, trace_id, ret, err);
	*ret = f;
	return TW_OK;
}

struct tw_trace_file *tw_trace_readers_close(struct tw_trace_readers *r, struct tw_trace_file *f)
{
	struct kept used = {.file = f}, before;

	if (!r || !f || !tw_trace_file_is_small(f) || tw_trace_file_is_inlined(f) ||
	        tw_trace_file_is_damaged(f) || fstat(tw_trace_file_fd(f), &used.as) != 0)
		return tw_trace_file_close(f);
	(void)pthread_mutex_lock(&r->lock);
	before = r->kept[r->next];
	r->kept[r->next] = used;
	r->next = (r->next + 1) % READERS;
	(void)pthread_mutex_unlock(&r->lock);
	return tw_trace_file_close(before.file);
}

/* --- opening stored traces --- */

static enum tw_status open_once(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err)
{
	int fd = -1;
	enum tw_status st = tw_trace_open_by(b, trace_id, until_ms, &fd, err);

	return st == TW_OK ? tw_trace_file_open_fd(fd, ret, err) : st;
}

/* If the local copy is damaged, fetches the stored file again. */
enum tw_status tw_trace_stored_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err)
{
	enum tw_status st = open_once(b, trace_id, until_ms, ret, err);

	return st == TW_CORRUPT && tw_trace_forget(b, trace_id)
	               ? open_once(b, trace_id, until_ms, ret, err)
	               : st;
}

enum tw_status tw_trace_stored_open(
        struct tw_blobs *b, const char *trace_id, struct tw_trace_file **ret, struct tw_err *err)
{
	return tw_trace_stored_open_by(b, trace_id, 0, ret, err);
}
