#include "server/ops/migrate.h"

#include <string.h>

#include "server/base/file/crash_point.h"
#include "server/catalogue/catalogue.h"
#include "server/ops/migrate_seen.h"

/* Up to LOST_FEW missing files are reported and skipped. The migration stops if more are missing
 * and they are over a tenth of all. */
enum { LOST_FEW = 16, LOST_SHARE = 10 };

static bool is_alike(const struct tw_migrate_table *t)
{
	return t->differ == 0 && t->from.rows == t->to.rows &&
	       strcmp(t->from.sha256, t->to.sha256) == 0;
}

static enum tw_status compare_rows(
        struct tw_migrate *m, enum tw_migrate_state *ret_state, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_compare(&m->rows, err);

	for (size_t i = 0; st == TW_OK && i < m->rows.n; i++) {
		const struct tw_migrate_table *t = &m->rows.tables[i];

		if (is_alike(t))
			continue;
		*ret_state = TW_MIGRATE_DIFFERENT;
		st = tw_fail(err, TW_CORRUPT,
		        "table %s differs: %llu rows in the source, %llu in the target, %llu "
		        "differ, "
		        "the first is %s",
		        t->name, (unsigned long long)t->from.rows, (unsigned long long)t->to.rows,
		        (unsigned long long)t->differ, t->first);
	}
	return st;
}

/* If the commit's response was lost, the commit may have succeeded: check before failing. */
static enum tw_status unmark(struct tw_catalogue *to, struct tw_err *err)
{
	bool migrating = true;
	enum tw_status st = tw_catalogue_end_migration(to, err);

	if (st != TW_OK && tw_catalogue_migrating(to, &migrating, NULL) == TW_OK && !migrating)
		return TW_OK;
	return st;
}

/* An unmounted volume looks like many missing files. */
static enum tw_status check_lost(const struct tw_migrate_files *f, struct tw_err *err)
{
	if (f->lost <= LOST_FEW || f->lost <= f->files / LOST_SHARE)
		return TW_OK;
	return tw_fail(err, TW_CORRUPT,
	        "%llu of the source's %llu files are missing: is everything mounted? `tracewell "
	        "check` lists them; delete these traces to continue without them",
	        (unsigned long long)f->lost, (unsigned long long)f->files);
}

/* Called while nothing can write to the source. */
static enum tw_status finish(struct tw_migrate *m, struct tw_migrate_files *files,
        enum tw_migrate_state *ret_state, struct tw_err *err)
{
	enum tw_status st = tw_migrate_files(m, files, err);

	if (st == TW_OK)
		st = check_lost(files, err);
	if (st == TW_OK)
		st = tw_catalogue_copy_rows(&m->rows, err);
	if (st == TW_OK)
		tw_crash_point("migrate_brought");
	if (st == TW_OK)
		st = compare_rows(m, ret_state, err);
	if (st == TW_OK)
		st = tw_catalogue_still_held(m->rows.from, err);
	if (st == TW_OK)
		st = unmark(m->rows.to, err);
	if (st == TW_OK)
		*ret_state = TW_MIGRATE_DONE;
	if (st == TW_OK && m->held)
		m->held(m->arg);
	return st;
}

static enum tw_status finish_while_blocked(struct tw_migrate *m, struct tw_migrate_files *files,
        enum tw_migrate_state *ret_state, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_block_writers(m->rows.from, err);
	enum tw_status released;

	if (st != TW_OK)
		return st;
	st = finish(m, files, ret_state, err);
	released = tw_catalogue_unblock_writers(m->rows.from, st == TW_OK ? err : NULL);
	return st == TW_OK ? released : st;
}

static enum tw_status copy_while_served(
        struct tw_migrate *m, struct tw_migrate_files *files, struct tw_err *err)
{
	enum tw_status st;

	m->source_changes = true;
	st = tw_migrate_files(m, files, err);
	m->source_changes = false;
	return st == TW_OK ? tw_catalogue_copy_rows(&m->rows, err) : st;
}

enum tw_status tw_migrate_begin(struct tw_migrate *m, struct tw_err *err)
{
	char source[TW_SOURCE_ID];
	enum tw_status st = tw_catalogue_source_id(m->rows.from, source, err);

	return st == TW_OK ? tw_catalogue_begin_migration(m->rows.to, source, err) : st;
}

static enum tw_status compare_only(struct tw_migrate *m, struct tw_migrate_files *files,
        enum tw_migrate_state *ret_state, struct tw_err *err)
{
	enum tw_status st = compare_rows(m, ret_state, err);

	if (st == TW_OK)
		st = tw_migrate_compare_files(m, files, err);
	if (st == TW_OK)
		*ret_state = TW_MIGRATE_COMPARED;
	return st;
}

enum tw_status tw_migrate_run(struct tw_migrate *m, struct tw_migrate_files *ret,
        enum tw_migrate_state *ret_state, struct tw_err *err)
{
	enum tw_status st;

	*ret_state = TW_MIGRATE_COPIED;
	*ret = (struct tw_migrate_files){0};
	if (m->only_compare)
		return compare_only(m, ret, ret_state, err);
	st = tw_catalogue_note_migration(m->rows.from, tw_catalogue_engine(m->rows.to), err);
	if (st == TW_OK && m->served) {
		m->seen = m->hold ? tw_migrate_seen_new() : NULL;
		st = copy_while_served(m, ret, err);
	}
	if (st == TW_OK && (!m->served || m->hold))
		st = finish_while_blocked(m, ret, ret_state, err);
	m->seen = tw_migrate_seen_free(m->seen);
	return st;
}
