/*
 * catalogue_audit.c - the audit log: written with each change, read by admins, deleted after a
 * time.
 */
#include "server/catalogue/access/catalogue_audit.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "server/base/text/json_write.h"
#include "server/catalogue/catalogue_internal.h"

enum { MAX_FACTS_BYTES = 8192, MAX_FACT = 1000, MAX_ENTRIES = 500, EXPIRE_AT_ONCE = 1000 };

static struct tw_str shortened(const char *text)
{
	struct tw_str s = tw_str_of(text);

	if (s.len <= MAX_FACT)
		return s;
	s.len = MAX_FACT;
	while (s.len && ((unsigned char)s.ptr[s.len] & 0xC0) == 0x80)
		s.len--; /* at a character boundary */
	return s;
}

static void put_facts(struct tw_buf *out, const struct tw_change *ch)
{
	struct tw_json j = tw_json_to(out);

	tw_json_open(&j, '{');
	for (size_t i = 0; i < TW_CHANGE_FACTS && ch->facts[i].name; i++)
		if (ch->facts[i].text)
			tw_json_key_str(&j, ch->facts[i].name, shortened(ch->facts[i].text));
	tw_json_close(&j, '}');
	(void)tw_buf_add(out, "", 1);
}

/* PostgreSQL's sequences would advance even if the transaction is rolled back. */
#define WRITTEN "at_ms,project_id,by_kind,by_id,by_name,address,request_id,action,target,facts"
#define VALUES  "?,?,?,?,?,?,?,?,?,?"

enum tw_status tw_cat_audit(struct tw_db *db, const struct tw_change *ch, struct tw_err *err)
{
	const struct tw_actor *from = tw_actor_get();
	const struct tw_actor *by = ch->by ? ch->by : from;
	struct tw_buf facts;
	enum tw_status st;

	tw_buf_init(&facts, MAX_FACTS_BYTES);
	put_facts(&facts, ch);
	st = tw_buf_status(&facts);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        TW_EITHER("INSERT INTO audit(" WRITTEN ") VALUES(" VALUES ")",
		                "WITH n AS (UPDATE audit_last SET entry_id=entry_id+1 RETURNING"
		                " entry_id) INSERT INTO audit(entry_id," WRITTEN
		                ") SELECT n.entry_id," VALUES " FROM n"),
		        "ittttttttt", tw_unix_ms(), ch->project_id, by->kind, by->id, by->name,
		        from->address, from->request_id, ch->action, ch->target,
		        (const char *)facts.data);
	else
		st = tw_fail(err, st, "no memory to note a change");
	tw_buf_done(&facts);
	return st;
}

enum tw_status tw_cat_end_audited(struct tw_catalogue *c, struct tw_db *w, enum tw_status st,
        const struct tw_change *ch, struct tw_err *err)
{
	if (st == TW_OK && !c->unrecorded)
		st = tw_cat_audit(w, ch, err);
	return tw_cat_end(c, w, st, err);
}

const char *tw_cat_number(int64_t n, char out[TW_NUMBER_BYTES])
{
	(void)snprintf(out, TW_NUMBER_BYTES, "%lld", (long long)n);
	return out;
}

/* --- reading --- */

#define ACTOR(member, column, json) TW_FIELD(struct tw_actor, member, column, json)
static const struct tw_field actor_fields[] = {
        ACTOR(kind, "by_kind", "kind"), ACTOR(id, "by_id", "id"), ACTOR(name, "by_name", "name")};
static const struct tw_fields fields_of_actor = TW_FIELDS(actor_fields);

#define ENTRY(member, column, json, ...)                                                           \
	TW_FIELD(struct tw_audit_entry, member, column, json, __VA_ARGS__)
static const struct tw_field entry_fields[] = {
        ENTRY(id, "entry_id", "id"),
        ENTRY(at_ms, "at_ms", "at_ms"),
        ENTRY(project_id, "project_id", "project"),
        TW_FIELD_OF_GROUP(struct tw_audit_entry, by, &fields_of_actor, "actor"),
        ENTRY(by.address, "address", "address"),
        ENTRY(by.request_id, "request_id", "request"),
        ENTRY(action, "action", "action"),
        ENTRY(target, "target", "target"),
        ENTRY(facts, "facts", "facts", .shape = TW_SHAPE_OBJECT),
};
const struct tw_fields tw_audit_fields = TW_FIELDS(entry_fields);

#define AUDIT(of_project)                                                                          \
	"SELECT {columns} FROM audit WHERE " of_project                                            \
	" AND entry_id<?2 AND (?3='' OR action=?3 OR substr(action,1,length(?3)+1)=?3||'.')"       \
	" AND (?4='' OR by_name=?4 OR by_id=?4 OR"                                                 \
	" substr(by_name,1,length(?4)+4)=?4||' as ') AND (?5='' OR target=?5)"                     \
	" ORDER BY entry_id DESC LIMIT ?6"

enum tw_status tw_catalogue_audit(struct tw_catalogue *c, const struct tw_audit_query *of,
        struct tw_arena *a, struct tw_audit_entry **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list *l = TW_CAT_LIST(a, MAX_ENTRIES, &tw_audit_fields, ret, ret_n);
	const int64_t before = of->before ? of->before : INT64_MAX;
	const int64_t limit = of->limit < MAX_ENTRIES ? of->limit : MAX_ENTRIES;

	/* audit_by_project, or the primary key for all projects; the rest is filtered */
	if (of->project_id)
		return tw_cat_list(c, l, err, AUDIT("project_id=?1"), "tittti", of->project_id,
		        before, of->action, of->by, of->target, limit);
	return tw_cat_list(c, l, err, AUDIT("?1=''"), "tittti", "", before, of->action, of->by,
	        of->target, limit);
}

enum tw_status tw_catalogue_audit_expire(
        struct tw_catalogue *c, int64_t before_ms, bool *ret_more, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char count[TW_NUMBER_BYTES];
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(w, &changed, err, /* audit_by_age */
	        "DELETE FROM audit WHERE " TW_CAT_SOME(
	                "entry_id", "audit WHERE at_ms<?1 ORDER BY at_ms LIMIT ?2"),
	        "ii", before_ms, (int64_t)EXPIRE_AT_ONCE);
	if (st == TW_OK && changed)
		st = tw_cat_audit(w,
		        &(struct tw_change){"audit.expire", "", "",
		                .facts = {{"entries", tw_cat_number(changed, count)}}},
		        err);
	st = tw_cat_end(c, w, st, err);
	if (st == TW_OK)
		*ret_more = changed == EXPIRE_AT_ONCE;
	return st;
}
