/* Request targets: refused with a message, or parsed into pieces and pairs that, escaped again,
 * parse to the same; templates match them without reading out of bounds. */
#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "fuzz.h"
#include "server/http/http_int.h"

static void escape(struct tw_buf *out, const char *text)
{
	for (const char *p = text; *p; p++)
		(void)tw_buf_printf(out, "%%%02x", (unsigned char)*p);
}

static void spell(const struct tw_target *t, struct tw_buf *out)
{
	for (size_t i = 0; i < t->n_pieces; i++) {
		(void)tw_buf_add(out, "/", 1);
		escape(out, t->pieces[i]);
	}
	if (t->n_pieces == 0)
		(void)tw_buf_add(out, "/", 1);
	for (size_t i = 0; i < t->n_pairs; i++) {
		(void)tw_buf_add(out, i ? "&" : "?", 1);
		escape(out, t->pairs[i].name);
		(void)tw_buf_add(out, "=", 1);
		escape(out, t->pairs[i].value);
	}
	FUZZ_CHECK(tw_buf_add(out, "", 1) == TW_OK);
}

static void check_same(const struct tw_target *a, const struct tw_target *b)
{
	FUZZ_CHECK(a->n_pieces == b->n_pieces && a->n_pairs == b->n_pairs);
	for (size_t i = 0; i < a->n_pieces; i++)
		FUZZ_CHECK(strcmp(a->pieces[i], b->pieces[i]) == 0);
	for (size_t i = 0; i < a->n_pairs; i++)
		FUZZ_CHECK(strcmp(a->pairs[i].name, b->pairs[i].name) == 0 &&
		           strcmp(a->pairs[i].value, b->pairs[i].value) == 0);
}

static void match(const struct tw_target *t, struct tw_arena *arena)
{
	static const char *const templates[] = {"/", "/{*}", "/api/v1/traces/{id}",
	        "/api/v1/traces/{id}/slices/{chunk}", "/a/{x}/{*}"};

	for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
		if (!tw_target_matches(t, templates[i]))
			continue;
		(void)tw_target_piece(t, templates[i], "id", arena);
		(void)tw_target_piece(t, templates[i], "*", arena);
		FUZZ_CHECK(i != 2 || *tw_target_piece(t, templates[i], "id", arena));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_arena *arena = tw_arena_new(4 << 20);
	struct tw_target t, again;
	struct tw_err err = {0};
	struct tw_buf text;
	char *raw = arena && size < 65536 ? tw_arena_alloc(arena, size + 1, 1) : NULL;

	tw_buf_init(&text, 1 << 20);
	if (raw) {
		memcpy(raw, data, size);
		raw[size] = '\0';
	}
	if (raw && tw_target_parse(arena, raw, &t, &err) != TW_OK) {
		FUZZ_CHECK(err.msg[0]);
	} else if (raw) {
		match(&t, arena);
		spell(&t, &text);
		FUZZ_CHECK(tw_target_parse(arena, (const char *)text.data, &again, &err) == TW_OK);
		check_same(&t, &again);
	}
	tw_buf_done(&text);
	tw_arena_free(arena);
	return 0;
}
