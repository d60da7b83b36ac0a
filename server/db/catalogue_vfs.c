/*
 * catalogue_vfs.c - the catalogue's VFS: syncs the log in parallel with the files that its rows
 * refer to, and maintains page checksums (catalogue_sums.h).
 *
 * A commit becomes visible once SQLite has synced the write-ahead log.  So files and rows are
 * joined at the log's sync: while it runs, other threads sync the files, and it returns when they
 * are durable too, or fails, and the commit with it.  No row is visible before its files are
 * durable (I1).  After a power failure the log may contain commits that were never visible;
 * jobs_verify.c handles those.
 *
 * Pages get their checksum when they are written to the catalogue's file, which is when the log is
 * checkpointed; the log has its own checksums.  All connections use this VFS, so that no page is
 * written without.
 *
 * All other calls go to SQLite's default VFS.
 */
#include "server/db/catalogue_sqlite.h"
#include "server/db/commit_gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "server/base/file/crash_point.h"
#include "server/base/file/disk.h"
#include "server/db/catalogue_sums.h"

struct shell {
	sqlite3_file base;  /* first member */
	sqlite3_file *real; /* allocated after this struct */
	const char *name;   /* of the database file; NULL: this is the log */
	const char *path;   /* of either; owned by SQLite, until closed */
	bool frames;        /* written since the last sync; restarting a log syncs its header */
	bool sums;          /* its pages have checksums */
};

static sqlite3_vfs *below; /* the system's VFS */
static _Thread_local struct tw_cat_gate *gate;

void tw_cat_set_gate(struct tw_cat_gate *g)
{
	gate = g;
}

static struct shell *shell_of(sqlite3_file *f)
{
	return (struct shell *)(void *)f;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
	return shell_of(f)->real;
}

static int shell_close(sqlite3_file *f)
{
	return real_of(f)->pMethods->xClose(real_of(f));
}

static bool is_page(const struct shell *s, int n, sqlite3_int64 at)
{
	return s->name && s->sums && n == TW_SUMS_PAGE && at % TW_SUMS_PAGE == 0;
}

/* The first page, read when the file is opened, shows whether there are checksums. */
static void check_header(struct shell *s, const void *p, int n, sqlite3_int64 at)
{
	if (s->name && at == 0 && n >= TW_SUMS_HEADER)
		s->sums = tw_sums_are_stored(p);
}

static int shell_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	struct shell *s = shell_of(f);
	int rc = s->real->pMethods->xRead(s->real, to, n, at);

	if (rc != SQLITE_OK)
		return rc;
	check_header(s, to, n, at);
	if (is_page(s, n, at) && !tw_sums_fit(to))
		tw_sums_note(s->name, (uint64_t)(at / TW_SUMS_PAGE) + 1);
	return rc;
}

/* On a full disk, uses the reserve (disk.h). */
static int write_real(struct shell *s, const void *from, int n, sqlite3_int64 at)
{
	int rc = s->real->pMethods->xWrite(s->real, from, n, at);

	while (rc == SQLITE_FULL && (s->name ? tw_reserve_release(s->path) != 0
	                                     : tw_reserve_release_to(s->path, (uint64_t)at)))
		rc = s->real->pMethods->xWrite(s->real, from, n, at);
	return rc;
}

static int shell_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	struct shell *s = shell_of(f);
	uint8_t page[TW_SUMS_PAGE];

	s->frames = s->frames || at > 0;
	check_header(s, from, n, at);
	if (!is_page(s, n, at))
		return write_real(s, from, n, at);
	memcpy(page, from, sizeof page);
	tw_sums_put(page);
	return write_real(s, page, n, at);
}

static int shell_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

bool tw_cat_gate_passes(void)
{
	return !gate || gate->durable(gate->arg);
}

static int shell_sync(sqlite3_file *f, int flags)
{
	struct shell *s = shell_of(f);
	int rc = s->real->pMethods->xSync(s->real, flags);

	if (rc != SQLITE_OK || s->name || !gate || !s->frames)
		return rc;
	s->frames = false;
	tw_crash_point("log_synced");
	return gate->durable(gate->arg) ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

static int shell_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int shell_lock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int shell_unlock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int shell_reserved(sqlite3_file *f, int *ret)
{
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int shell_control(sqlite3_file *f, int op, void *arg)
{
	return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int shell_sector(sqlite3_file *f)
{
	return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int shell_traits(sqlite3_file *f)
{
	return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

/* SQLite writes one byte per page of the log's index, which allocates one block of the page.  A
 * write to another block of it later would be SIGBUS on a full disk.  The complete page is
 * allocated if mapped memory is written. */
static void allocate_pages(void volatile *at, int bytes)
{
	for (int i = 0; i < bytes; i += TW_SUMS_PAGE)
		(void)atomic_fetch_or((_Atomic uint32_t volatile *)((char volatile *)at + i), 0);
}

static int shell_map_shared(sqlite3_file *f, int region, int bytes, int extend, void volatile **ret)
{
	struct shell *s = shell_of(f);
	int rc;

	if (extend)
		tw_reserve_ensure(s->path, 2 * (uint64_t)bytes);
	rc = s->real->pMethods->xShmMap(s->real, region, bytes, extend, ret);
	if (rc == SQLITE_OK && extend && *ret)
		allocate_pages(*ret, bytes);
	return rc;
}

static int shell_lock_shared(sqlite3_file *f, int from, int n, int flags)
{
	return real_of(f)->pMethods->xShmLock(real_of(f), from, n, flags);
}

static void shell_order_shared(sqlite3_file *f)
{
	real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int shell_unmap_shared(sqlite3_file *f, int remove)
{
	return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

/* Version 2: without memory-mapped pages, whose checksums would not be verified. */
static const sqlite3_io_methods shell_methods = {
        .iVersion = 2,
        .xClose = shell_close,
        .xRead = shell_read,
        .xWrite = shell_write,
        .xTruncate = shell_truncate,
        .xSync = shell_sync,
        .xFileSize = shell_size,
        .xLock = shell_lock,
        .xUnlock = shell_unlock,
        .xCheckReservedLock = shell_reserved,
        .xFileControl = shell_control,
        .xSectorSize = shell_sector,
        .xDeviceCharacteristics = shell_traits,
        .xShmMap = shell_map_shared,
        .xShmLock = shell_lock_shared,
        .xShmBarrier = shell_order_shared,
        .xShmUnmap = shell_unmap_shared,
};

/* A catalogue created with this VFS has the reserved bytes set (catalogue.c). */
static bool is_empty(sqlite3_file *real)
{
	sqlite3_int64 size = 0;

	return real->pMethods->xFileSize(real, &size) == SQLITE_OK && size == 0;
}

static int open_file(
        sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct shell *s = shell_of(file);
	int rc;

	(void)vfs;
	if (!(flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)))
		return below->xOpen(below, name, file, flags, ret_flags);
	*s = (struct shell){.name = flags & SQLITE_OPEN_MAIN_DB ? name : NULL, .path = name};
	s->real = (sqlite3_file *)(void *)(s + 1);
	do
		rc = below->xOpen(below, name, s->real, flags, ret_flags);
	while (rc != SQLITE_OK && errno == ENOSPC && tw_reserve_release(name));
	if (rc != SQLITE_OK)
		return rc;
	s->sums = s->name && is_empty(s->real);
	s->base.pMethods = &shell_methods;
	return rc;
}

static void make_vfs(void)
{
	static sqlite3_vfs ours;

	below = sqlite3_vfs_find(NULL);
	if (!below)
		return;
	ours = *below;
	ours.zName = TW_CAT_VFS;
	ours.szOsFile += (int)sizeof(struct shell);
	ours.xOpen = open_file;
	ours.pNext = NULL;
	(void)sqlite3_vfs_register(&ours, 0);
}

void tw_cat_need_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_vfs);
}
