#include "server/stats/rollup_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/base/file/sha256.h"
#include "server/base/secret.h"

enum { HASHED_BYTES = 12 * 1024 };
enum { CUT_DIGITS = 32 };        /* of the hash after a truncated name */
#define CUT_MARK "\xe2\x80\xa6#" /* an ellipsis, which compilers do not use in names */

uint64_t tw_rollup_number(const char *text)
{
	uint64_t n;

	n = tw_secret_bits(text);
	n &= INT64_MAX;
	return n ? n : 1;
}

uint64_t tw_rollup_method_id(const struct tw_rollup_space *in, const char *raw)
{
	char text[HASHED_BYTES];

	(void)snprintf(text, sizeof text, "%s\n%s\n%s\n%s", in->project_id, in->build_id,
	        in->mapping_id, raw);
	return tw_rollup_number(text);
}

/* --- names --- */

bool tw_rollup_bound_name(struct tw_str name, char out[TW_ROLLUP_NAME_BYTES])
{
	const size_t head = TW_ROLLUP_NAME_BYTES - sizeof CUT_MARK - CUT_DIGITS;
	char hex[TW_SHA256_HEX];
	uint8_t hash[32];
	size_t n = tw_utf8_clean(out, TW_ROLLUP_NAME_BYTES, name);

	if (n + 4 < TW_ROLLUP_NAME_BYTES) /* even the longest character would have fitted */
		return false;
	tw_sha256_bytes(name, hash);
	tw_sha256_hex(hash, hex);
	n = tw_utf8_clean(out, head + 1, name);
	(void)snprintf(out + n, TW_ROLLUP_NAME_BYTES - n, "%s%.*s", CUT_MARK, CUT_DIGITS, hex);
	return true;
}

bool tw_rollup_is_cut(const char *name)
{
	size_t len = strlen(name), tail = sizeof CUT_MARK - 1 + CUT_DIGITS;

	return len > tail && memcmp(name + len - tail, CUT_MARK, sizeof CUT_MARK - 1) == 0;
}

void tw_rollup_raw(const struct tw_named *m, char out[TW_ROLLUP_RAW_BYTES])
{
	char *name = out;

	if (m->has_id) {
		(void)snprintf(out, TW_ROLLUP_RAW_BYTES, "#%" PRIu64, m->id);
		return;
	}
	if (m->original)
		*name++ = TW_RAW_EXPANDED;
	(void)tw_rollup_bound_name(m->name, name);
}

struct tw_named tw_rollup_named(const char *raw)
{
	struct tw_named what = {.name = tw_str_of(raw)};

	if (raw[0] == TW_RAW_EXPANDED)
		what.name = tw_str_of(raw + 1);
	else
		what.has_id = raw[0] == '#' && tw_str_u64(tw_str_of(raw + 1), UINT64_MAX, &what.id);
	return what;
}
