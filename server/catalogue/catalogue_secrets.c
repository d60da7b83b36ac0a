/* catalogue_secrets.c - encrypts secrets of webhooks that are stored in plain text. */
#include "server/base/secret.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_hook.h"

enum { ROWS_MOST = 100000 };

struct secret {
	const char *project_id, *hook_id, *text;
};

static const struct tw_fields secret_fields =
        TW_FIELDS_OF(TW_FIELD(struct secret, project_id, "project_id", NULL),
                TW_FIELD(struct secret, hook_id, "hook_id", NULL),
                TW_FIELD(struct secret, text, "secret", NULL));

static enum tw_status seal_one(struct tw_db *db, const struct tw_secret_key *by,
        const struct secret *s, uint64_t *io_lost, struct tw_err *err)
{
	char sealed[TW_SECRET_TEXT_BYTES], plain[TW_SECRET_PLAIN_MAX + 1];
	enum tw_status st;

	if (tw_secret_is_encrypted(s->text) || tw_secret_key_lost(by)) {
		*io_lost += tw_secret_key_read(by, s->project_id, s->text, plain, NULL) != TW_OK;
		return TW_OK;
	}
	st = tw_secret_encrypt(by, s->project_id, s->text, sealed, err);
	if (st != TW_OK)
		return st;
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE webhook SET secret=? WHERE project_id=? AND hook_id=?", "ttt", sealed,
	        s->project_id, s->hook_id);
}

enum tw_status tw_catalogue_hooks_encrypted(struct tw_catalogue *c, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_select_int(c, &n, err, /* full scan: at most a few per project */
	        "SELECT (SELECT count(*) FROM webhook WHERE secret LIKE 'sealed:%') + (SELECT"
	        " count(*) FROM project_setting WHERE value LIKE 'sealed:%')",
	        "");

	*ret = n > 0;
	return st;
}

static bool any_plain(const struct tw_cat_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!tw_secret_is_encrypted(((const struct secret *)l->rows)[i].text))
			return true;
	return false;
}

static enum tw_status seal_all(struct tw_catalogue *c, const struct tw_secret_key *by,
        const struct tw_cat_list *l, uint64_t *io_lost, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_NOTIFY, "", &w, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < l->n; i++)
		st = seal_one(w, by, &((const struct secret *)l->rows)[i], io_lost, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_hooks_encrypt(struct tw_catalogue *c, const struct tw_secret_key *by,
        struct tw_arena *a, uint64_t *ret_lost, struct tw_err *err)
{
	bool wipe;
	struct tw_cat_list l = {a, ROWS_MOST, sizeof(struct secret), NULL, NULL, 0, &secret_fields};
	enum tw_status st = tw_cat_list(c, &l, err, /* full scan: at most a few per project */
	        "SELECT {columns} FROM webhook ORDER BY project_id, hook_id LIMIT ?", "i",
	        (int64_t)ROWS_MOST);

	*ret_lost = 0;
	wipe = st == TW_OK && !tw_secret_key_lost(by) && any_plain(&l);
	if (wipe) /* removes the plain text from its cell, and from the log; applies to this run of
	           * the server only */
		st = tw_db_run(c->writers[0].db, "PRAGMA secure_delete=ON", err);
	if (st == TW_OK)
		st = seal_all(c, by, &l, ret_lost, err);
	if (st == TW_OK && wipe)
		st = tw_db_run(c->writers[0].db, "PRAGMA wal_checkpoint(TRUNCATE)", err);
	return st;
}
