#include "server/base/text/find.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { NEAR_MOST = 3 };

enum tw_status tw_find_read(const char *text, struct tw_find *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);

	*ret = (struct tw_find){.n = 0};
	if (rest.len > TW_FIND_BYTES)
		return tw_fail_at(err, TW_BAD_REQUEST, TW_FIND_BYTES,
		        "the search text is longer than %d bytes", TW_FIND_BYTES);
	while (rest.len) {
		struct tw_str word = tw_str_split(&rest, ' ');

		if (word.len == 0)
			continue;
		if (ret->n == TW_FIND_WORDS)
			return tw_fail(err, TW_BAD_REQUEST,
			        "the search text has more than %d words", TW_FIND_WORDS);
		ret->words[ret->n++] = word;
	}
	return TW_OK;
}

static bool is_at(struct tw_str name, size_t at, struct tw_str piece)
{
	return at + piece.len <= name.len && strncasecmp(name.ptr + at, piece.ptr, piece.len) == 0;
}

/* A part of a name begins after a separator, and at a hump of camelCase. */
static bool is_begin(struct tw_str name, size_t at)
{
	unsigned char before, here;

	if (at == 0)
		return true;
	before = (unsigned char)name.ptr[at - 1];
	here = (unsigned char)name.ptr[at];
	return (!isalnum(before) && before < 0x80) || (islower(before) && isupper(here)) ||
	       !(isalnum(here) || here >= 0x80);
}

static size_t end_of(struct tw_str name)
{
	const char *parameters = memchr(name.ptr, '(', name.len);

	return parameters && parameters > name.ptr ? (size_t)(parameters - name.ptr) : name.len;
}

static enum tw_find_rank rank_plain(struct tw_str word, struct tw_str name)
{
	const size_t end = end_of(name);
	enum tw_find_rank best = TW_FIND_NOT;

	for (size_t at = 0; at + word.len <= name.len; at++) {
		enum tw_find_rank here = TW_FIND_WITHIN;

		if (!is_at(name, at, word))
			continue;
		if (is_begin(name, at))
			here = at + word.len == end || at + word.len == name.len ? TW_FIND_END
			                                                         : TW_FIND_BEGIN;
		if (here == TW_FIND_END && at == 0)
			here = TW_FIND_WHOLE;
		best = here > best ? here : best;
	}
	return best;
}

/* The first position from `at` on; name.len + 1: none. */
static size_t next_at(struct tw_str name, size_t at, struct tw_str piece, bool begins)
{
	for (; at + piece.len <= name.len; at++)
		if (is_at(name, at, piece) && (!begins || is_begin(name, at)))
			return at;
	return name.len + 1;
}

static enum tw_find_rank rank_stars(struct tw_str word, struct tw_str name)
{
	const struct tw_str bare = {name.ptr, end_of(name)};
	struct tw_str rest = word;
	size_t at = 0;
	bool first = true;

	while (rest.len) {
		const bool is_last = !memchr(rest.ptr, '*', rest.len);
		struct tw_str piece = tw_str_split(&rest, '*');

		if (is_last) /* the word does not end with a star */
			return bare.len >= at + piece.len &&
			                       is_at(bare, bare.len - piece.len, piece)
			               ? TW_FIND_END
			               : TW_FIND_NOT;
		at = next_at(bare, at, piece, first && piece.len > 0);
		if (at > bare.len)
			return TW_FIND_NOT;
		at += piece.len;
		first = false;
	}
	return TW_FIND_BEGIN;
}

enum tw_find_rank tw_find_rank(const struct tw_find *f, struct tw_str name)
{
	enum tw_find_rank worst = f->n ? TW_FIND_WHOLE : TW_FIND_NOT;

	for (size_t i = 0; i < f->n && worst != TW_FIND_NOT; i++) {
		const struct tw_str word = f->words[i];
		const enum tw_find_rank one = memchr(word.ptr, '*', word.len)
		                                      ? rank_stars(word, name)
		                                      : rank_plain(word, name);

		worst = one < worst ? one : worst;
	}
	return worst;
}

/* --- typing errors --- */

static unsigned errors_of(size_t letters)
{
	return letters < 4 ? 0 : letters < 6 ? 1 : letters < 12 ? 2 : 3;
}

static void read_near(struct tw_str word, struct tw_find_near_word *ret)
{
	*ret = (struct tw_find_near_word){.len = (unsigned)word.len, .errors = errors_of(word.len)};
	for (size_t i = 0; i < word.len; i++) {
		const unsigned char c = (unsigned char)word.ptr[i];

		ret->at[tolower(c)] |= UINT64_C(1) << i;
		ret->at[toupper(c)] |= UINT64_C(1) << i;
	}
}

void tw_find_near_read(const struct tw_find *f, struct tw_find_near *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < f->n; i++) {
		const struct tw_str word = f->words[i];

		if (word.len > TW_FIND_LETTERS || memchr(word.ptr, '*', word.len)) {
			ret->n = 0;
			return;
		}
		read_near(word, &ret->words[ret->n++]);
	}
}

/* Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (2003): bits
 * are the column of the dynamic program at one letter of the name, as differences (plus, minus) of
 * neighbouring rows.  `within`: the word may begin and end anywhere in the name. */
static unsigned distance(const struct tw_find_near_word *w, struct tw_str name, bool within)
{
	const uint64_t last = UINT64_C(1) << (w->len - 1);
	uint64_t plus = UINT64_MAX, minus = 0, diagonal = 0, before = 0;
	unsigned here = w->len, best = w->len;

	for (size_t i = 0; i < name.len; i++) {
		const uint64_t same = w->at[(unsigned char)name.ptr[i]];
		const uint64_t swapped = ((~diagonal & same) << 1) & before;
		uint64_t right_plus, right_minus;

		diagonal = (((same & plus) + plus) ^ plus) | same | minus | swapped;
		right_plus = minus | ~(diagonal | plus);
		right_minus = diagonal & plus;
		here += (right_plus & last) != 0;
		here -= (right_minus & last) != 0;
		best = here < best ? here : best;
		right_plus = right_plus << 1 | !within;
		plus = right_minus << 1 | ~(diagonal | right_plus);
		minus = right_plus & diagonal;
		before = same;
	}
	return within ? best : here;
}

unsigned tw_find_errors(const struct tw_find_near *f, struct tw_str name)
{
	const struct tw_str bare = {name.ptr, end_of(name)};
	unsigned sum = f->n ? 0 : TW_FIND_FAR;

	for (size_t i = 0; i < f->n && sum < TW_FIND_FAR; i++) {
		const unsigned errors = distance(&f->words[i], bare, true);

		sum += errors <= f->words[i].errors ? errors : TW_FIND_FAR;
	}
	return sum < TW_FIND_FAR ? sum : TW_FIND_FAR;
}

unsigned tw_near_distance(const char *word, const char *name)
{
	const struct tw_str text = tw_str_of(word);
	struct tw_find_near_word w;

	if (text.len == 0 || text.len > TW_FIND_LETTERS)
		return TW_FIND_FAR;
	read_near(text, &w);
	return distance(&w, tw_str_of(name), false);
}

void tw_near_match_try(struct tw_near_match *n, const char *word, const char *name)
{
	size_t len = strlen(word);
	unsigned d = tw_near_distance(word, name);

	if (len >= 2 && strncmp(word, name, len) == 0)
		d = 1;
	if (d > NEAR_MOST || d > (len + 2) / 3 || (n->best && d >= n->distance))
		return;
	n->best = name;
	n->distance = d;
}
