/* Untrusted files of a clone: the first byte selects Java, Kotlin or a code owners
 * file. For any content, lines are within the file and in order, and returned texts are part of the
 * text. */
#include <string.h>

#include "fuzz.h"
#include "server/source/source_name.h"
#include "server/source/source_owners.h"

enum { INPUT_BYTES = 64 << 10, ARENA_BYTES = 512 << 20 };

static uint32_t lines_of(struct tw_str s)
{
	uint32_t n = 1;

	for (size_t i = 0; i < s.len; i++)
		n += s.ptr[i] == '\n';
	return n;
}

static bool is_within(struct tw_str part, struct tw_str all)
{
	return part.len == 0 || (part.ptr >= all.ptr && part.ptr + part.len <= all.ptr + all.len);
}

static void place(const struct tw_decls *d, const char *method, struct tw_arena *a, uint32_t lines)
{
	struct tw_source_name name;
	struct tw_source_location p;

	FUZZ_CHECK(tw_source_name_read(method, a, &name, NULL) == TW_OK);
	tw_source_location(d, &name, 3, &p);
	FUZZ_CHECK(p.n <= TW_LOCATION_RANGES && (p.n || !p.is_method));
	for (size_t i = 0; i < p.n; i++)
		FUZZ_CHECK(p.at[i].first && p.at[i].first <= p.at[i].last && p.at[i].last <= lines);
}

static void scan(struct tw_str text, bool kotlin)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	uint32_t lines = lines_of(text);
	struct tw_decls d;
	struct tw_err err = {.msg = ""};

	FUZZ_CHECK(a);
	if (tw_source_scan(text, kotlin, a, &d, &err) != TW_OK) {
		FUZZ_CHECK(err.msg[0]);
	} else {
		for (size_t i = 0; i < d.n; i++) {
			FUZZ_CHECK(d.at[i].first && d.at[i].first <= d.at[i].last &&
			           d.at[i].last <= lines);
			FUZZ_CHECK(d.at[i].head <= lines && d.at[i].in);
		}
		place(&d, "A.f", a, lines);
		place(&d, "AKt.f", a, lines);
		place(&d, "A$1.run", a, lines);
		place(&d, "A.<init>", a, lines);
	}
	(void)tw_arena_free(a);
}

static void own(struct tw_str text)
{
	struct tw_owners_hit hits[TW_OWNERS_SECTIONS];
	struct tw_str all = text;
	struct tw_str path = tw_str_split(&text, '\n');
	size_t n = tw_owners_find(text, path, hits);

	FUZZ_CHECK(n <= TW_OWNERS_SECTIONS);
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(hits[i].line && is_within(hits[i].owners, all));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_str text = {(const char *)data + 1, size ? size - 1 : 0};

	if (size == 0 || size > INPUT_BYTES)
		return 0;
	if (data[0] % 3 == 2)
		own(text);
	else
		scan(text, data[0] % 3 == 1);
	return 0;
}
