/*
 * symbols.c - a small cache of mapping images in memory, by content hash.
 *
 * An image never changes, so a reference stays valid while its blob is deleted or replaced by a
 * newer mapping: the pages live until the last release.  Beyond IMAGES_OPEN the least recently used
 * are closed.
 */
#include "server/trace/symbols.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IMAGES_OPEN = 16 };

struct tw_symbols_ref {
	struct tw_symbols_ref *next;
	char sha256[TW_SHA256_HEX];
	void *data;
	size_t len;
	struct tw_map map; /* one of the three, by the kind of image */
	struct tw_retrace retrace;
	struct tw_native_map native;
	bool is_retrace, is_native;
	unsigned users;
	uint64_t last_use;
};

struct tw_symbols {
	struct tw_blobs *blobs;
	pthread_mutex_t lock;
	struct tw_symbols_ref *refs;
	struct tw_symbols_ref none; /* for traces without a mapping */
	unsigned n;
	uint64_t uses; /* logical clock for last_use */
};

struct tw_symbols *tw_symbols_new(struct tw_blobs *blobs)
{
	struct tw_symbols *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->blobs = blobs;
	(void)pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void drop(struct tw_symbols_ref *r)
{
	if (r->data)
		(void)munmap(r->data, r->len);
	tw_mem_free(r);
}

struct tw_symbols *tw_symbols_free(struct tw_symbols *s)
{
	if (!s)
		return NULL;
	while (s->refs) {
		struct tw_symbols_ref *r = s->refs;

		s->refs = r->next;
		drop(r);
	}
	(void)pthread_mutex_destroy(&s->lock);
	tw_mem_free(s);
	return NULL;
}

static enum tw_status map_file(int fd, struct tw_symbols_ref *r, struct tw_err *err)
{
	struct stat st;
	void *data;

	if (fstat(fd, &st) != 0 || st.st_size <= 0)
		return tw_fail(err, TW_IO, "mapping image %s is empty", r->sha256);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return tw_fail_errno(err, TW_IO, "cannot map %s", r->sha256);
	r->data = data;
	r->len = (size_t)st.st_size;
	r->is_retrace = tw_retrace_open(r->data, r->len, &r->retrace, NULL) == TW_OK;
	r->is_native = tw_native_open(r->data, r->len, &r->native, NULL) == TW_OK;
	if (r->is_retrace || r->is_native)
		return TW_OK;
	return tw_map_open(r->data, r->len, &r->map, err);
}

/* Adds the image open on fd at the front of the list. */
static enum tw_status open_image(
        struct tw_symbols *s, const char *sha256, int fd, struct tw_err *err)
{
	struct tw_symbols_ref *r = tw_mem_zalloc(1, sizeof *r);
	enum tw_status st;

	if (!r)
		return tw_oom(err);
	memcpy(r->sha256, sha256, sizeof r->sha256);
	st = map_file(fd, r, err);
	if (st != TW_OK) {
		drop(r);
		return st;
	}
	r->next = s->refs;
	s->refs = r;
	s->n++;
	return TW_OK;
}

/* Closes the least recently used images beyond IMAGES_OPEN.  Call with the lock held. */
static void trim(struct tw_symbols *s)
{
	while (s->n > IMAGES_OPEN) {
		struct tw_symbols_ref **oldest = NULL;
		struct tw_symbols_ref *evicted;

		for (struct tw_symbols_ref **at = &s->refs; *at; at = &(*at)->next)
			if ((*at)->users == 0 && (!oldest || (*at)->last_use < (*oldest)->last_use))
				oldest = at;
		if (!oldest)
			return;
		evicted = *oldest;
		*oldest = evicted->next;
		drop(evicted);
		s->n--;
	}
}

static struct tw_symbols_ref *find(struct tw_symbols *s, const char *sha256)
{
	struct tw_symbols_ref *r = s->refs;

	while (r && strcmp(r->sha256, sha256) != 0)
		r = r->next;
	return r;
}

/* Call with the lock held; releases it during the access to storage, which may take long. */
static enum tw_status fetch_image(struct tw_symbols *s, const char *sha256, struct tw_err *err)
{
	int fd = -1;
	enum tw_status st;

	(void)pthread_mutex_unlock(&s->lock);
	st = tw_blob_open(s->blobs, sha256, &fd, err);
	(void)pthread_mutex_lock(&s->lock);
	if (st == TW_OK && !find(s, sha256))
		st = open_image(s, sha256, fd, err);
	if (fd >= 0)
		(void)close(fd);
	return st;
}

enum tw_status tw_symbols_acquire(struct tw_symbols *s, const char *image_sha256,
        struct tw_symbols_ref **ret, struct tw_err *err)
{
	struct tw_symbols_ref *r = &s->none;
	enum tw_status st = TW_OK;

	if (*image_sha256 && strlen(image_sha256) != TW_SHA256_HEX - 1)
		return tw_fail(err, TW_BUG, "%.80s is not a content hash", image_sha256);
	(void)pthread_mutex_lock(&s->lock);
	if (*image_sha256) {
		r = find(s, image_sha256);
		if (!r) {
			st = fetch_image(s, image_sha256, err);
			r = find(s, image_sha256);
		}
	}
	if (st == TW_OK && r) {
		r->users++;
		r->last_use = ++s->uses;
		trim(s);
		*ret = r;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return st;
}

void tw_symbols_release(struct tw_symbols *s, struct tw_symbols_ref *r)
{
	if (!r)
		return;
	(void)pthread_mutex_lock(&s->lock);
	r->users--;
	trim(s);
	(void)pthread_mutex_unlock(&s->lock);
}

const struct tw_map *tw_symbols_map(const struct tw_symbols_ref *r)
{
	return r && r->data && !r->is_retrace && !r->is_native ? &r->map : NULL;
}

const struct tw_retrace *tw_symbols_retrace(const struct tw_symbols_ref *r)
{
	return r && r->is_retrace ? &r->retrace : NULL;
}

const struct tw_native_map *tw_symbols_native(const struct tw_symbols_ref *r)
{
	return r && r->is_native ? &r->native : NULL;
}
