#include "server/ingest/tus/resume_clean.h"

#include <stdatomic.h>
#include <stdio.h>

#include "decoder/base/arena.h"
#include "server/base/log.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/traces/catalogue_resumable.h"
#include "server/storage/blob_piece.h"

enum {
	EVERY_S = 5,
	BATCH = 100,      /* uploads per run */
	LEASE_MS = 30000, /* then another attempt may begin, by this or another server */
	ARENA = 16 << 20
};

struct tw_resume_cleaner {
	struct tw_resume_parts parts;
	struct tw_periodic *thread;
	uint64_t runs; /* runs of the thread */
	_Atomic uint64_t expired;
};

static enum tw_status remove_pieces(struct tw_resume_cleaner *c, struct tw_periodic *p,
        const struct tw_resumable_hold *h, struct tw_arena *a, struct tw_err *err)
{
	struct tw_resumable_piece *pieces = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_resumable_pieces(
	        c->parts.catalogue, h->project_id, h->id, a, &pieces, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_periodic_stopping(p)
		             ? tw_fail(err, TW_BUSY, "the server is shutting down")
		             : tw_piece_remove(c->parts.blobs, pieces[i].object, err);
	return st == TW_OK ? tw_catalogue_resumable_cleaned(c->parts.catalogue, h, err) : st;
}

/* TW_NOT_FOUND: there is nothing to clean. */
static enum tw_status clean_one(
        struct tw_resume_cleaner *c, struct tw_periodic *p, struct tw_err *err)
{
	struct tw_resumable_hold h = {.id = ""};
	struct tw_arena *a = tw_arena_new(ARENA);
	bool expired = false;
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	(void)snprintf(h.owner, sizeof h.owner, "%s-clean-%llu", c->parts.node,
	        (unsigned long long)++c->runs);
	st = tw_catalogue_resumable_clean(c->parts.catalogue, &h, LEASE_MS, &expired, err);
	if (st == TW_OK) {
		(void)atomic_fetch_add(&c->expired, expired);
		st = remove_pieces(c, p, &h, a, err);
	}
	(void)tw_arena_free(a);
	return st == TW_LOCKED ? TW_OK : st;
}

static void clean(struct tw_periodic *p, void *arg)
{
	struct tw_resume_cleaner *c = arg;
	struct tw_err err = {.msg = ""};
	enum tw_status st = tw_blobs_ready(c->parts.blobs, NULL);

	for (int i = 0; st == TW_OK && i < BATCH && !tw_periodic_stopping(p); i++)
		st = clean_one(c, p, &err);
	if (st != TW_OK && st != TW_NOT_FOUND && st != TW_BUSY && !tw_periodic_stopping(p))
		tw_log_err(TW_LOG_WARN, "pieces_not_removed", c->parts.node, &err);
}

enum tw_status tw_resume_cleaner_start(
        const struct tw_resume_parts *p, struct tw_resume_cleaner **ret, struct tw_err *err)
{
	struct tw_resume_cleaner *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	c->parts = *p;
	st = tw_periodic_start(&(struct tw_periodic_task){"uploads_expiry", clean, EVERY_S * 1000},
	        c, &c->thread, err);
	if (st == TW_OK)
		*ret = c;
	else
		tw_mem_free(c);
	return st;
}

struct tw_resume_cleaner *tw_resume_cleaner_stop(struct tw_resume_cleaner *c)
{
	if (!c)
		return NULL;
	(void)tw_periodic_stop(c->thread);
	tw_mem_free(c);
	return NULL;
}

void tw_resume_cleaner_wake(struct tw_resume_cleaner *c)
{
	if (c)
		tw_periodic_wake(c->thread);
}

uint64_t tw_resume_cleaner_expired(struct tw_resume_cleaner *c)
{
	return c ? atomic_load(&c->expired) : 0;
}
