#include "tests/unit/catalogue_plan/plan_identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_user.h"

static void enter(struct tw_catalogue *c, const struct tw_identity *who, uint8_t cookie)
{
	const uint8_t hash[32] = {cookie};
	const struct tw_session session = {
	        hash, NULL, "", "", "", 100000, tw_unix_ms() + 100000, "oidc"};
	enum tw_identity_end end;

	assert_int_equal(tw_catalogue_identity_sign_in(c, who, &session, &end, NULL), TW_OK);
}

void use_identities(struct tw_catalogue *c, const char *user_id)
{
	struct tw_grant grants[] = {{"p", TW_SCOPE_WRITE}, {"", TW_SCOPE_SERVER}};
	struct tw_identity who = {.issuer = "i",
	        .subject = "1",
	        .name = "new",
	        .user_id = user_id,
	        .may_be_new = true,
	        .grants = grants,
	        .n_grants = 2};
	const uint8_t asker[32] = {9};
	const struct tw_session session = {
	        asker, NULL, user_id, "", "", 100000, tw_unix_ms() + 100000, "password"};
	bool has;

	assert_int_equal(tw_catalogue_identity_set(c, user_id, "i", "2", NULL), TW_OK);
	assert_int_equal(tw_catalogue_identity_drop(c, user_id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_identity_set(c, user_id, "i", "", NULL), TW_OK);
	assert_int_equal(tw_catalogue_identity_has(c, user_id, "i", &has, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_add(c, &session, NULL), TW_OK);
	who.requested_by = asker;
	enter(c, &who, 6);
	grants[0].scope = grants[1].scope = TW_SCOPE_PUBLIC;
	enter(c, &who, 7);
	who.user_id = "";
	who.subject = "3";
	enter(c, &who, 8);
}

void plan_use_sessions(
        struct tw_catalogue *c, const char *project_id, const char *user_id, const char *key_id)
{
	const uint8_t link[32] = {2}, cookie[32] = {3}, by_key[32] = {4}, by_name[32] = {5};
	struct tw_session one = {cookie, cookie, "", "", "", 100000, tw_unix_ms() + 100000};
	struct tw_caller found;

	assert_int_equal(tw_catalogue_link_add(c, link, INT64_MAX, NULL), TW_OK);
	assert_int_equal(tw_catalogue_link_use(c, link, &one, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_find(c, cookie, "", &found, NULL), TW_OK);
	one = (struct tw_session){
	        by_key, NULL, "", project_id, key_id, 100000, tw_unix_ms() + 100000};
	assert_int_equal(tw_catalogue_session_add(c, &one, NULL), TW_OK);
	one = (struct tw_session){by_name, NULL, user_id, "", "", 100000, tw_unix_ms() + 100000};
	assert_int_equal(tw_catalogue_session_add(c, &one, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_find(c, by_key, "", &found, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_find(c, by_name, "", &found, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_end(c, cookie, NULL), TW_OK);
	assert_int_equal(tw_catalogue_sessions_end(c, user_id, NULL), TW_OK);
}
