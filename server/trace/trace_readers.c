#include "server/trace/trace_readers.h"

#include <pthread.h>

enum { KEPT = 8 }; /* as many as threads use at a time; each has up to 512 KiB of pages */

struct tw_trace_readers {
	pthread_mutex_t lock;
	struct tw_trace_file *kept[KEPT];
	unsigned n;
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
	while (r->n)
		tw_trace_file_close(r->kept[--r->n]);
	(void)pthread_mutex_destroy(&r->lock);
	tw_mem_free(r);
	return NULL;
}

static struct tw_trace_file *take(struct tw_trace_readers *r)
{
	struct tw_trace_file *f;

	(void)pthread_mutex_lock(&r->lock);
	f = r->n ? r->kept[--r->n] : NULL;
	(void)pthread_mutex_unlock(&r->lock);
	return f;
}

/* NULL: none. */
static void keep(struct tw_trace_readers *r, struct tw_trace_file *f)
{
	(void)pthread_mutex_lock(&r->lock);
	if (f && r->n < KEPT) {
		r->kept[r->n++] = f;
		f = NULL;
	}
	(void)pthread_mutex_unlock(&r->lock);
	tw_trace_file_close(f);
}

/* --- opening stored traces --- */

/* *io_used as in tw_trace_file_open_fd; set to NULL when it was passed on. */
static enum tw_status open_once(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **io_used, struct tw_trace_file **ret, struct tw_err *err)
{
	struct tw_trace_file *used = *io_used;
	int fd = -1;
	enum tw_status st = tw_trace_open_by(b, trace_id, until_ms, &fd, err);

	if (st != TW_OK)
		return st;
	*io_used = NULL;
	return tw_trace_file_open_fd(fd, used, ret, err);
}

/* If the local copy is damaged, fetches the stored file again. */
static enum tw_status open_stored(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **io_used, struct tw_trace_file **ret, struct tw_err *err)
{
	enum tw_status st = open_once(b, trace_id, until_ms, io_used, ret, err);

	return st == TW_CORRUPT && tw_trace_forget(b, trace_id)
	               ? open_once(b, trace_id, until_ms, io_used, ret, err)
	               : st;
}

enum tw_status tw_trace_stored_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err)
{
	struct tw_trace_file *none = NULL;

	return open_stored(b, trace_id, until_ms, &none, ret, err);
}

enum tw_status tw_trace_stored_open(
        struct tw_blobs *b, const char *trace_id, struct tw_trace_file **ret, struct tw_err *err)
{
	return tw_trace_stored_open_by(b, trace_id, 0, ret, err);
}

/* --- with kept readers --- */

enum tw_status tw_trace_readers_open(struct tw_trace_readers *r, struct tw_blobs *b,
        const char *trace_id, struct tw_trace_file **ret, struct tw_err *err)
{
	struct tw_trace_file *used = r ? take(r) : NULL;
	enum tw_status st = open_stored(b, trace_id, 0, &used, ret, err);

	if (r)
		keep(r, used); /* if the file could not be opened */
	return st;
}

struct tw_trace_file *tw_trace_readers_close(struct tw_trace_readers *r, struct tw_trace_file *f)
{
	if (!r)
		return tw_trace_file_close(f);
	keep(r, tw_trace_file_reuse(f));
	return NULL;
}
