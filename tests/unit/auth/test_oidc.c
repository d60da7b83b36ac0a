/* Sign-in by a provider, without a network: the roles that a claim grants, the addresses that may
 * be requested, and the account of an identity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/auth/oidc/oidc_claim.h"
#include "server/auth/oidc/oidc_fetch.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

/* --- roles --- */

static enum tw_scope granted(const struct tw_role_rules *r, const char *claim, const char *project)
{
	struct tw_grant grants[TW_ROLE_RULES_MAX];
	json_t *json = json_loads(claim, JSON_DECODE_ANY, NULL);
	size_t n = tw_role_rules_grant(r, json, grants);
	enum tw_scope scope = TW_SCOPE_INGEST; /* no grant */

	for (size_t i = 0; i < n; i++)
		if (strcmp(grants[i].project, project) == 0)
			scope = grants[i].scope;
	json_decref(json);
	return scope;
}

static void test_roles(void **state)
{
	static struct tw_role_rules r;

	(void)state;
	assert_int_equal(
	        tw_role_rules_parse("dev=viewer:shop, cn=a,b=c=editor : the shop", true, &r, NULL),
	        TW_BAD_REQUEST); /* "cn=a" is not a role */
	assert_int_equal(tw_role_rules_parse(" dev=viewer:shop, dev=editor:lib ,ou=x=admin:shop,"
	                                     "root=server-admin,,",
	                         true, &r, NULL),
	        TW_OK);
	assert_int_equal(r.n, 4);
	assert_int_equal(granted(&r, "[\"dev\"]", "shop"), TW_SCOPE_READ);
	assert_int_equal(granted(&r, "[\"dev\"]", "lib"), TW_SCOPE_WRITE);
	assert_int_equal(granted(&r, "[\"ou=x\",\"dev\"]", "shop"), TW_SCOPE_ADMIN);
	assert_int_equal(granted(&r, "\"root\"", ""), TW_SCOPE_SERVER);
	assert_int_equal(granted(&r, "\"root\"", "shop"), TW_SCOPE_PUBLIC);
	assert_int_equal(granted(&r, "null", "shop"), TW_SCOPE_PUBLIC);
	assert_int_equal(granted(&r, "{\"dev\":true}", "shop"), TW_SCOPE_PUBLIC);
	assert_int_equal(
	        granted(&r, "[5,[\"dev\"],\"devs\",\"de\",\"\"]", "shop"), TW_SCOPE_PUBLIC);
	assert_int_equal(granted(&r, "[\"dev\"]", "other"), TW_SCOPE_INGEST);
	assert_int_equal(tw_role_rules_parse("", true, &r, NULL), TW_OK);
	assert_int_equal(r.n, 0);
}

static void test_roles_refused(void **state)
{
	static const char *const wrong[] = {"dev", "=viewer:shop", "dev=", "dev=owner:shop",
	        "dev=viewer", "dev=viewer:", "dev=server-admin:shop", "dev=ingest:shop"};
	static struct tw_role_rules r;
	char many[TW_ROLE_RULES_MAX * 16 + 32] = "";

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(tw_role_rules_parse(wrong[i], true, &r, NULL), TW_BAD_REQUEST);
	for (int i = 0; i <= TW_ROLE_RULES_MAX; i++) {
		assert_int_equal(tw_role_rules_parse(many, true, &r, NULL), TW_OK);
		assert_int_equal(r.n, i);
		(void)snprintf(many + strlen(many), 16, "%sa=viewer:p%d", i ? "," : "", i);
	}
	assert_int_equal(tw_role_rules_parse(many, true, &r, NULL), TW_BAD_REQUEST);
	assert_int_equal(tw_role_rules_parse("viewer:shop", false, &r, NULL), TW_OK);
	assert_int_equal(granted(&r, "null", "shop"), TW_SCOPE_READ);
}

/* --- claims, forms and addresses --- */

static void test_claims(void **state)
{
	json_t *c = json_loads(
	        "{\"a\":\"1\",\"b\":{\"c\":{\"d\":\"2\"}},\"https://x.y/z\":\"3\",\"b.c\":\"4\"}",
	        0, NULL);

	(void)state;
	assert_string_equal(json_string_value(tw_claim_find(c, "a")), "1");
	assert_string_equal(json_string_value(tw_claim_find(c, "b.c.d")), "2");
	assert_string_equal(json_string_value(tw_claim_find(c, "https://x.y/z")), "3");
	assert_string_equal(json_string_value(tw_claim_find(c, "b.c")), "4");
	assert_null(tw_claim_find(c, "b.d"));
	assert_null(tw_claim_find(c, "a.b"));
	assert_null(tw_claim_find(c, "..."));
	json_decref(c);
}

/* Whether the address that comes of both documents is a verified one of firm.example. */
static bool is_of(const char *token, const char *userinfo)
{
	json_t *claims = json_loads(token, 0, NULL), *more = json_loads(userinfo, 0, NULL);
	bool is;

	assert_true(tw_claim_add(claims, more));
	is = tw_claim_is_of(claims, "firm.example");
	assert_string_equal(json_string_value(json_object_get(claims, "sub")), "1");
	json_decref(claims);
	json_decref(more);
	return is;
}

/* An address of one document is not verified by the word of another about another. */
static void test_address_of_one_document(void **state)
{
	(void)state;
	assert_false(
	        is_of("{\"sub\":\"1\",\"email\":\"a@firm.example\"}", "{\"email_verified\":true}"));
	assert_false(
	        is_of("{\"sub\":\"1\",\"email_verified\":true}", "{\"email\":\"a@firm.example\"}"));
	assert_false(is_of("{\"sub\":\"1\",\"email\":\"a@firm.example\"}",
	        "{\"email\":\"a@evil.example\",\"email_verified\":true}"));
	assert_false(is_of("{\"sub\":\"1\",\"email\":\"a@evil.example\",\"email_verified\":true}",
	        "{\"email\":\"a@firm.example\"}"));
	assert_false(is_of("{\"sub\":\"1\",\"email\":\"a@firm.example\",\"email_verified\":false}",
	        "{\"email\":\"a@firm.example\",\"email_verified\":true}"));
	assert_true(is_of("{\"sub\":\"1\",\"email_verified\":false}",
	        "{\"sub\":\"2\",\"email\":\"a@firm.example\",\"email_verified\":true}"));
	assert_true(is_of("{\"sub\":\"1\",\"email\":\"a@evil.example\"}",
	        "{\"email\":\"a@firm.example\",\"email_verified\":true}"));
	assert_true(is_of(
	        "{\"sub\":\"1\",\"email\":\"a@firm.example\",\"email_verified\":true}", "{}"));
	assert_false(is_of("{\"sub\":\"1\"}", "{}"));
}

static void test_domain_of_an_address(void **state)
{
	static const struct {
		const char *claims;
		bool fits;
	} cases[] = {{"{\"email\":\"a@firm.example\",\"email_verified\":true}", true},
	        {"{\"email\":\"b@FIRM.test\",\"email_verified\":true}", true},
	        {"{\"email\":\"c@firm.example\",\"email_verified\":false}", false},
	        {"{\"email\":\"d@firm.example\",\"email_verified\":\"true\"}", false},
	        {"{\"email\":\"e@evil.example\",\"email_verified\":true}", false},
	        {"{\"email\":\"f@firm.example@evil.example\",\"email_verified\":true}", false},
	        {"{\"email\":\"g@sub.firm.example\",\"email_verified\":true}", false},
	        {"{\"email_verified\":true}", false}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *claims = json_loads(cases[i].claims, 0, NULL);

		assert_non_null(claims);
		if (tw_claim_is_of(claims, "firm.example, firm.test") != cases[i].fits)
			fail_msg("%s", cases[i].claims);
		json_decref(claims);
	}
}

static void test_form(void **state)
{
	const struct tw_form_pair pairs[] = {
	        {"a", "b c&d=e%"}, {"left", NULL}, {"f", "\xc3\xa4~-._"}, {NULL, NULL}};
	struct tw_arena *a = tw_arena_new(1 << 20);

	(void)state;
	assert_string_equal(tw_form_text(a, "x?", pairs), "x?a=b%20c%26d%3De%25&f=%C3%A4~-._");
	assert_string_equal(tw_form_escaped(a, "a:b"), "a%3Ab");
	tw_arena_free(a);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *url;
		bool always, here;
	} cases[] = {{"https://id.example/a?b", true, true},
	        {"https://id.example:8443", true, true}, {"https://[::1]/", true, true},
	        {"http://127.0.0.1:80/", false, true}, {"http://127.1.2.3", false, true},
	        {"http://[::1]:5/", false, true}, {"http://localhost/x", false, true},
	        {"http://id.example/", false, false},
	        {"http://127.0.0.1.id.example/", false, false},
	        {"http://localhost.evil/", false, false}, {"http://127.0.0.1@evil/", false, false},
	        {"https://a@b/", false, false}, {"http://[::2]/", false, false},
	        {"file:///etc/passwd", false, false}, {"ftp://127.0.0.1/", false, false},
	        {"https://", false, false}, {"https:///x", false, false},
	        {"https://a b/", false, false}, {"https://a\\b/", false, false}, {"", false, false},
	        {"HTTPS://id.example", false, false}, {"javascript:alert(1)", false, false}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (tw_fetch_allows(cases[i].url, false) != cases[i].always ||
		        tw_fetch_allows(cases[i].url, true) != cases[i].here)
			fail_msg("%s", cases[i].url);
	}
}

/* --- accounts --- */

struct people {
	char dir[64];
	struct tw_catalogue *c;
	char one[TW_ID_BYTES], ann[TW_ID_BYTES];
	uint8_t next_hash;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct people p;
	bool is_new;

	p = (struct people){.next_hash = 1};
	memcpy(p.dir, "/tmp/tw-oidc-XXXXXX", sizeof "/tmp/tw-oidc-XXXXXX");
	assert_non_null(mkdtemp(p.dir));
	p.c = catalogue_in(p.dir);
	assert_int_equal(tw_catalogue_project(p.c, "one", p.one, &is_new, NULL), TW_OK);
	assert_int_equal(tw_catalogue_user_add(p.c, "ann", "hash", false, p.ann, NULL), TW_OK);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct people *p = *state;

	p->c = tw_catalogue_close(p->c);
	(void)nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static const uint8_t asker[32] = {250};

/* A session of that account, in which a link is requested. */
static void ask_as(struct people *p, const char *user_id, int64_t life_ms)
{
	const struct tw_session s = {
	        asker, asker, user_id, "", "", 100000, tw_unix_ms() + life_ms, "password"};

	assert_int_equal(tw_catalogue_session_add(p->c, &s, NULL), TW_OK);
}

/* The outcome; if an account was signed in, its id in *ret. */
static enum tw_identity_end sign_in(
        struct people *p, const struct tw_identity *who, struct tw_caller *ret)
{
	uint8_t hash[32] = {p->next_hash++};
	const struct tw_session s = {hash, NULL, "", "", "", 100000, tw_unix_ms() + 100000, "oidc"};
	enum tw_identity_end end;
	enum tw_status st = tw_catalogue_identity_sign_in(p->c, who, &s, &end, NULL);

	assert_true((st == TW_OK) == (end == TW_IDENTITY_SIGNED_IN));
	memset(ret, 0, sizeof *ret);
	if (st == TW_OK)
		assert_int_equal(tw_catalogue_session_find(p->c, hash, "", ret, NULL), TW_OK);
	else
		assert_int_equal(tw_catalogue_session_find(p->c, hash, "", ret, NULL), TW_NO_TOKEN);
	return end;
}

static void test_account_made(void **state)
{
	const struct tw_grant viewer = {"one", TW_SCOPE_READ}, gone = {"no such", TW_SCOPE_READ};
	const struct tw_grant first[] = {viewer, gone};
	struct tw_identity who = {
	        .issuer = "https://id", .subject = "1", .name = "bob", .user_id = ""};
	struct tw_caller caller;

	assert_int_equal(sign_in(*state, &who, &caller), TW_IDENTITY_UNKNOWN);
	who.may_be_new = true;
	who.first = first;
	who.n_first = 2;
	who.name = "";
	assert_int_equal(sign_in(*state, &who, &caller), TW_IDENTITY_NO_NAME);
	who.name = "ann";
	assert_int_equal(sign_in(*state, &who, &caller), TW_IDENTITY_NAME_TAKEN);
	who.name = "bob";
	assert_int_equal(sign_in(*state, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_string_equal(caller.name, "bob");
	assert_int_equal(caller.scope, TW_SCOPE_READ);
	who.name = "ann"; /* a name changed at the provider has no effect */
	assert_int_equal(sign_in(*state, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_string_equal(caller.name, "bob");
	who.issuer = "https://other"; /* another provider's "1" is another user */
	assert_int_equal(sign_in(*state, &who, &caller), TW_IDENTITY_NAME_TAKEN);
}

static void test_account_linked(void **state)
{
	struct people *p = *state;
	struct tw_identity who = {
	        .issuer = "https://id", .subject = "1", .name = "x", .user_id = p->ann};
	struct tw_caller caller;
	char bob[TW_ID_BYTES];
	bool has = true;

	assert_int_equal(tw_catalogue_user_add(p->c, "bob", "", false, bob, NULL), TW_OK);
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_OVER);
	who.requested_by = asker;
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_OVER);
	ask_as(p, bob, 100000);
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_OVER);
	ask_as(p, p->ann, 0);
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_OVER);
	ask_as(p, p->ann, 100000);
	assert_int_equal(tw_catalogue_identity_has(p->c, p->ann, "https://id", &has, NULL), TW_OK);
	assert_false(has);
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_string_equal(caller.name, "ann");
	assert_int_equal(tw_catalogue_identity_has(p->c, p->ann, "https://id", &has, NULL), TW_OK);
	assert_true(has);
	who.user_id = bob;
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_LINKED);
	who.user_id = p->ann;
	who.subject = "2";
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_LINKED);
	who.user_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_UNKNOWN);

	assert_int_equal(
	        tw_catalogue_identity_set(p->c, bob, "https://id", "1", NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_identity_set(p->c, bob, "https://id", "2", NULL), TW_OK);
	who.user_id = "";
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_string_equal(caller.name, "bob");
	assert_int_equal(tw_catalogue_identity_set(p->c, bob, "https://id", "", NULL), TW_OK);
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_UNKNOWN);
	assert_int_equal(tw_catalogue_identity_drop(p->c, bob, NULL), TW_NOT_FOUND);
	ask_as(p, p->ann, 100000);
	assert_int_equal(tw_catalogue_identity_drop(p->c, p->ann, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_find(p->c, asker, "", &caller, NULL), TW_NO_TOKEN);
	who.subject = "1";
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_UNKNOWN);
	assert_int_equal(tw_catalogue_identity_set(p->c, p->ann, "https://id", "1", NULL), TW_OK);
	assert_int_equal(tw_catalogue_identity_set(
	                         p->c, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "https://id", "9", NULL),
	        TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_user_remove(p->c, p->ann, NULL), TW_OK);
	who.subject = "1";
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_UNKNOWN);
}

static void test_account_disabled(void **state)
{
	struct people *p = *state;
	struct tw_identity who = {
	        .issuer = "https://id", .subject = "1", .name = "x", .user_id = p->ann};
	struct tw_user_change off = {.sets_disabled = true, .is_disabled = true};
	const uint8_t hash[32] = {200};
	const struct tw_session s = {
	        hash, NULL, p->ann, "", "", 100000, tw_unix_ms() + 100000, "password"};
	struct tw_caller caller;
	bool has = true;

	assert_int_equal(tw_catalogue_session_add(p->c, &s, NULL), TW_OK);
	assert_int_equal(tw_catalogue_user_change(p->c, p->ann, &off, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_find(p->c, hash, "", &caller, NULL), TW_NO_TOKEN);
	assert_int_equal(tw_catalogue_user_caller(p->c, "ann", "", &caller, NULL), TW_DENIED);
	/* nor does a session that was written in between grant access */
	assert_int_equal(tw_catalogue_session_add(p->c, &s, NULL), TW_OK);
	assert_int_equal(tw_catalogue_session_find(p->c, hash, "", &caller, NULL), TW_NO_TOKEN);
	who.requested_by = hash;
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_DISABLED);
	assert_int_equal(tw_catalogue_identity_has(p->c, p->ann, "https://id", &has, NULL), TW_OK);
	assert_false(has); /* all of it or nothing */
	off.is_disabled = false;
	assert_int_equal(tw_catalogue_user_change(p->c, p->ann, &off, NULL), TW_OK);
	ask_as(p, p->ann, 100000);
	who.requested_by = asker;
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_SIGNED_IN);
}

static void test_account_roles(void **state)
{
	struct people *p = *state;
	struct tw_grant grants[] = {{"one", TW_SCOPE_WRITE}, {"", TW_SCOPE_PUBLIC}};
	struct tw_identity who = {.issuer = "https://id",
	        .subject = "1",
	        .name = "x",
	        .user_id = p->ann,
	        .requested_by = asker,
	        .grants = grants,
	        .n_grants = 2};
	struct tw_caller caller;

	ask_as(p, p->ann, 100000);
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_int_equal(caller.scope, TW_SCOPE_WRITE);
	grants[0].scope = TW_SCOPE_READ;
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_int_equal(caller.scope, TW_SCOPE_READ);
	grants[1].scope = TW_SCOPE_SERVER;
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_int_equal(caller.scope, TW_SCOPE_SERVER);
	grants[0].scope = TW_SCOPE_PUBLIC;
	grants[1].scope = TW_SCOPE_PUBLIC;
	assert_int_equal(sign_in(p, &who, &caller), TW_IDENTITY_SIGNED_IN);
	assert_int_equal(caller.scope, TW_SCOPE_PUBLIC);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_roles_refused),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_address_of_one_document),
        cmocka_unit_test(test_domain_of_an_address),
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test_setup_teardown(test_account_made, setup, teardown),
        cmocka_unit_test_setup_teardown(test_account_linked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_account_disabled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_account_roles, setup, teardown),
};

UNIT_TESTS("oidc", tests)
