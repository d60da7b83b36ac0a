/* Tickets open only with the key that signed them and before they expire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/ticket.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { ENDS_MS = 5000 };

struct sealed {
	uint8_t key[TW_TICKET_KEY_BYTES];
	struct tw_arena *arena;
	const char *text;
};

static struct tw_ticket ticket_of(const char *target)
{
	struct tw_ticket t = {.expires_ms = ENDS_MS, .target = target};

	memcpy(t.project_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV", sizeof t.project_id);
	return t;
}

static void seal(struct sealed *s, const char *target)
{
	const struct tw_ticket t = ticket_of(target);

	*s = (struct sealed){.arena = tw_arena_new(1 << 24)};
	randombytes_buf(s->key, sizeof s->key);
	assert_int_equal(tw_ticket_sign(s->key, &t, s->arena, &s->text, NULL), TW_OK);
}

static enum tw_status use(
        const struct sealed *s, const char *text, int64_t now_ms, struct tw_ticket *ret)
{
	return tw_ticket_open(s->key, text, now_ms, s->arena, ret, NULL);
}

/* Any length of target, as each ends differently within three bytes. */
static void test_round(void **state)
{
	char target[200];

	(void)state;
	for (size_t n = 0; n < sizeof target; n++) {
		struct tw_ticket got = {0};
		struct sealed s;

		memset(target, 'a' + (int)(n % 26), n);
		target[n ? n - 1 : 0] = '\0';
		seal(&s, target);
		assert_true(strspn(s.text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		                           "0123456789-_") == strlen(s.text));
		assert_int_equal(use(&s, s.text, 0, &got), TW_OK);
		assert_string_equal(got.target, target);
		assert_string_equal(got.project_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
		assert_int_equal(got.expires_ms, ENDS_MS);
		tw_arena_free(s.arena);
	}
}

static void test_ends(void **state)
{
	struct tw_ticket got = {.target = "untouched"};
	struct sealed s;

	(void)state;
	seal(&s, "/api/v1/traces/x/perfetto");
	assert_int_equal(use(&s, s.text, ENDS_MS - 1, &got), TW_OK);
	got = (struct tw_ticket){.target = "untouched"};
	assert_int_equal(use(&s, s.text, ENDS_MS, &got), TW_NO_TOKEN);
	assert_int_equal(use(&s, s.text, INT64_MAX, &got), TW_NO_TOKEN);
	assert_string_equal(got.target, "untouched");
	tw_arena_free(s.arena);
}

/* Each bit of the bytes, and each letter of the text, counts. */
static void test_changed(void **state)
{
	static const char letters[] = "ABab01-_+/=. \n%";
	struct tw_ticket got = {.target = "untouched"};
	struct sealed s;
	size_t n;
	char *text;

	(void)state;
	seal(&s, "/api/v1/traces/x/perfetto");
	n = strlen(s.text);
	text = tw_arena_str(s.arena, tw_str_of(s.text));
	for (size_t at = 0; at < n; at++)
		for (size_t k = 0; k < sizeof letters - 1; k++) {
			if (text[at] == letters[k])
				continue;
			text[at] = letters[k];
			assert_int_equal(use(&s, text, 0, &got), TW_NO_TOKEN);
			text[at] = s.text[at];
		}
	for (size_t len = 0; len < n; len++) {
		char *cut = tw_arena_str(s.arena, (struct tw_str){s.text, len});

		assert_int_equal(use(&s, cut, 0, &got), TW_NO_TOKEN);
	}
	for (size_t k = 0; k < sizeof letters - 1; k++) {
		char *more = tw_arena_printf(s.arena, "%s%c", s.text, letters[k]);

		assert_int_equal(use(&s, more, 0, &got), TW_NO_TOKEN);
	}
	assert_string_equal(got.target, "untouched");
	tw_arena_free(s.arena);
}

/* A key differs from the next, and each bit of it matters. */
static void test_other_key(void **state)
{
	struct tw_ticket got;
	struct sealed s, other;

	(void)state;
	seal(&s, "/x");
	seal(&other, "/x");
	assert_memory_not_equal(s.key, other.key, sizeof s.key);
	assert_int_equal(use(&other, s.text, 0, &got), TW_NO_TOKEN);
	for (size_t bit = 0; bit < 8 * sizeof s.key; bit++) {
		s.key[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(use(&s, s.text, 0, &got), TW_NO_TOKEN);
		s.key[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(use(&s, s.text, 0, &got), TW_OK);
	tw_arena_free(s.arena);
	tw_arena_free(other.arena);
}

static void test_length(void **state)
{
	char *target = malloc(TW_TICKET_TARGET_MAX + 2);
	char *endless = malloc(1 << 20);
	const char *text = NULL;
	struct tw_ticket t, got;
	struct sealed s;

	(void)state;
	assert_true(target && endless);
	memset(target, 'x', TW_TICKET_TARGET_MAX + 1);
	target[TW_TICKET_TARGET_MAX] = '\0';
	seal(&s, target);
	assert_int_equal(use(&s, s.text, 0, &got), TW_OK);
	assert_int_equal(strlen(got.target), TW_TICKET_TARGET_MAX);
	target[TW_TICKET_TARGET_MAX] = 'x';
	target[TW_TICKET_TARGET_MAX + 1] = '\0';
	t = ticket_of(target);
	assert_int_equal(tw_ticket_sign(s.key, &t, s.arena, &text, NULL), TW_BAD_REQUEST);
	assert_null(text);
	memset(endless, 'A', (1 << 20) - 1);
	endless[(1 << 20) - 1] = '\0';
	assert_int_equal(use(&s, endless, 0, &got), TW_NO_TOKEN);
	assert_int_equal(use(&s, "", 0, &got), TW_NO_TOKEN);
	tw_arena_free(s.arena);
	free(target);
	free(endless);
}

static void test_no_memory(void **state)
{
	const struct tw_ticket t = ticket_of("/x");
	struct sealed s;

	(void)state;
	seal(&s, "/x");
	for (uint64_t n = 1;; n++) {
		struct tw_arena *a = tw_arena_new(1 << 20);
		const char *text = NULL;
		struct tw_ticket got;
		enum tw_status sealed, opened;

		assert_non_null(a);
		tw_mem_fail_at(n);
		sealed = tw_ticket_sign(s.key, &t, a, &text, NULL);
		opened = tw_ticket_open(s.key, s.text, 0, a, &got, NULL);
		tw_mem_fail_at(0);
		assert_true(sealed == TW_OK || (sealed == TW_NOMEM && !text));
		assert_true(opened == TW_OK || opened == TW_NOMEM);
		tw_arena_free(a);
		if (sealed == TW_OK && opened == TW_OK)
			break;
	}
	tw_arena_free(s.arena);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_other_key),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("ticket", tests)
