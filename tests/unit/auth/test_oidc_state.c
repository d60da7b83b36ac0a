/* A sign-in in progress: its browser, valid once and for a time, and its target page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/auth/oidc/oidc_state.h"
#include "tests/unit/unit.h"

struct flow {
	struct tw_oidc_states *states;
	struct tw_arena *arena;
	struct tw_oidc_state begun;
	const char *cookie;
};

static void begin(struct flow *f, const char *user_id, const char *next)
{
	*f = (struct flow){.arena = tw_arena_new(1 << 20)};
	assert_int_equal(tw_oidc_states_new(&f->states, NULL), TW_OK);
	assert_int_equal(
	        tw_oidc_state_begin(f->states, &(struct tw_oidc_purpose){user_id, next, NULL}, 1000,
	                f->arena, &f->begun, &f->cookie, NULL),
	        TW_OK);
}

static void end(struct flow *f)
{
	f->states = tw_oidc_states_free(f->states);
	f->arena = tw_arena_free(f->arena);
}

static enum tw_status take(struct flow *f, const char *cookie, const char *state, int64_t now_ms)
{
	struct tw_oidc_state got;
	enum tw_status st =
	        tw_oidc_state_take(f->states, cookie, state, now_ms, f->arena, &got, NULL);

	if (st == TW_OK) {
		assert_string_equal(got.nonce, f->begun.nonce);
		assert_string_equal(got.verifier, f->begun.verifier);
		assert_string_equal(got.user_id, f->begun.user_id);
		assert_string_equal(got.next, f->begun.next);
	}
	return st;
}

static void test_state_once(void **state)
{
	struct flow f;

	(void)state;
	begin(&f, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "/builds?x=1");
	assert_string_equal(f.begun.next, "/builds?x=1");
	assert_string_not_equal(f.begun.state, f.begun.nonce);
	assert_string_not_equal(f.begun.nonce, f.begun.verifier);
	assert_null(strstr(f.cookie, f.begun.state));
	assert_null(strstr(f.cookie, f.begun.verifier));
	assert_int_equal(take(&f, f.cookie, f.begun.nonce, 2000), TW_NO_TOKEN);
	assert_int_equal(take(&f, f.cookie, "", 2000), TW_NO_TOKEN);
	assert_int_equal(take(&f, "", f.begun.state, 2000), TW_NO_TOKEN);
	assert_int_equal(take(&f, f.cookie, f.begun.state, 2000), TW_OK);
	assert_int_equal(take(&f, f.cookie, f.begun.state, 2000), TW_NO_TOKEN);
	end(&f);
}

static void test_state_ends(void **state)
{
	struct flow f, other;

	(void)state;
	begin(&f, "", "/");
	begin(&other, "", "/");
	assert_int_equal(take(&other, f.cookie, f.begun.state, 2000), TW_NO_TOKEN);
	assert_int_equal(
	        take(&f, f.cookie, f.begun.state, 1000 + TW_OIDC_STATE_S * 1000), TW_NO_TOKEN);
	assert_int_equal(take(&f, f.cookie, f.begun.state, 999 + TW_OIDC_STATE_S * 1000), TW_OK);
	end(&f);
	end(&other);
}

/* Each byte of the cookie counts. */
static void test_state_forged(void **state)
{
	char forged[2048];
	struct flow f;
	size_t n;

	(void)state;
	begin(&f, "", "/a");
	n = strlen(f.cookie);
	assert_true(n < sizeof forged);
	for (size_t i = 0; i < n; i++) {
		memcpy(forged, f.cookie, n + 1);
		forged[i] = forged[i] == 'A' ? 'B' : 'A';
		assert_int_equal(take(&f, forged, f.begun.state, 2000), TW_NO_TOKEN);
	}
	assert_int_equal(take(&f, f.cookie, f.begun.state, 2000), TW_OK);
	end(&f);
}

static const struct tw_oidc_purpose no_purpose = {"", "/", NULL};

/* A sign-in that is begun and used at that time, which must be fine. */
static void pass(struct tw_oidc_states *states, int64_t at_ms)
{
	struct tw_arena *a = tw_arena_new(1 << 16);
	struct tw_oidc_state s, got;
	const char *cookie = NULL;

	assert_int_equal(
	        tw_oidc_state_begin(states, &no_purpose, at_ms, a, &s, &cookie, NULL), TW_OK);
	assert_int_equal(tw_oidc_state_take(states, cookie, s.state, at_ms, a, &got, NULL), TW_OK);
	tw_arena_free(a);
}

/* Any number of concurrent sign-ins is accepted: only the oldest one is forgotten. */
static void test_states_full(void **state)
{
	struct tw_oidc_state s;
	const char *cookie = NULL;
	struct flow f;

	(void)state;
	begin(&f, "", "/");
	assert_int_equal(take(&f, f.cookie, f.begun.state, 1000), TW_OK);
	assert_int_equal(
	        tw_oidc_state_begin(f.states, &no_purpose, 1001, f.arena, &s, &cookie, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_oidc_state_take(f.states, cookie, s.state, 1001, f.arena, &f.begun, NULL),
	        TW_OK);
	for (int i = 0; i < TW_OIDC_STATES_USED - 2; i++)
		pass(f.states, 1002 + i);
	assert_int_equal(
	        tw_oidc_state_take(f.states, cookie, s.state, 9000, f.arena, &f.begun, NULL),
	        TW_NO_TOKEN);
	pass(f.states, 9000); /* forgets the first, of 1000 */
	assert_int_equal(
	        tw_oidc_state_take(f.states, cookie, s.state, 9000, f.arena, &f.begun, NULL),
	        TW_NO_TOKEN);
	pass(f.states, 9000); /* and this one the second */
	assert_int_equal(
	        tw_oidc_state_take(f.states, cookie, s.state, 9000, f.arena, &f.begun, NULL),
	        TW_OK);
	end(&f);
}

/* The session that the browser had goes along, and nothing of it is mixed up with where to go on.
 */
static void test_state_before(void **state)
{
	static const char *const nexts[] = {"/", "/account", "/x?y=%2F"};
	struct tw_oidc_state s, got;
	uint8_t before[32];
	const char *cookie;
	struct flow f;

	(void)state;
	begin(&f, "", "/");
	for (size_t i = 0; i < 3 * 256; i++) {
		const struct tw_oidc_purpose p = {"", nexts[i % 3], before};

		memset(before, (int)(i & 255), sizeof before);
		assert_int_equal(
		        tw_oidc_state_begin(f.states, &p, 1000, f.arena, &s, &cookie, NULL), TW_OK);
		assert_int_equal(
		        tw_oidc_state_take(f.states, cookie, s.state, 1000, f.arena, &got, NULL),
		        TW_OK);
		assert_true(got.has_before);
		assert_memory_equal(got.before, before, sizeof before);
		assert_string_equal(got.next, nexts[i % 3]);
	}
	assert_false(f.begun.has_before);
	end(&f);
}

static void test_next(void **state)
{
	static const char *const not_ours[] = {
	        "", "x", "//x", "/\\x", "https://x", "/a b", "/a\n", "/\xc3\xa4", "/a\x7f"};
	char longest[TW_OIDC_NEXT_MAX + 2];
	struct flow f;

	(void)state;
	for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++) {
		begin(&f, "", not_ours[i]);
		assert_string_equal(f.begun.next, "/");
		end(&f);
	}
	memset(longest, '/', sizeof longest);
	longest[1] = 'a';
	longest[TW_OIDC_NEXT_MAX + 1] = '\0';
	begin(&f, "", longest);
	assert_string_equal(f.begun.next, "/");
	end(&f);
	longest[TW_OIDC_NEXT_MAX] = '\0';
	begin(&f, "", longest);
	assert_string_equal(f.begun.next, longest);
	end(&f);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state_once),
        cmocka_unit_test(test_state_ends),
        cmocka_unit_test(test_state_forged),
        cmocka_unit_test(test_states_full),
        cmocka_unit_test(test_state_before),
        cmocka_unit_test(test_next),
};

UNIT_TESTS("oidc_state", tests)
