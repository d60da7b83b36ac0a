#include "decoder/formats/format.h"

#define FORMAT(name) extern const struct tw_format tw_format_##name;
#include "decoder/formats/formats.def"
#undef FORMAT

static const struct tw_format *const formats[] = {
#define FORMAT(name) &tw_format_##name,
#include "decoder/formats/formats.def"
#undef FORMAT
};

enum { /* NOLINTNEXTLINE(bugprone-sizeof-expression) an array of pointers */
	FORMAT_COUNT = sizeof formats / sizeof *formats
};

const struct tw_format *const *tw_formats(size_t *ret_n)
{
	*ret_n = FORMAT_COUNT;
	return formats;
}

const struct tw_format *tw_format_by_name(struct tw_str name)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (tw_str_eq(tw_str_of(formats[i]->name), name))
			return formats[i];
	return NULL;
}

const struct tw_format *tw_format_probe(const uint8_t *head, size_t len)
{
	const struct tw_format *best = NULL;
	int best_score = 0;

	for (size_t i = 0; i < FORMAT_COUNT; i++) {
		int score = formats[i]->probe(head, len);

		if (score > best_score) {
			best = formats[i];
			best_score = score;
		}
	}
	return best;
}

bool tw_format_fits(const struct tw_format *f, const char *part)
{
	struct tw_str rest = tw_str_of(f->part);

	while (part && rest.len)
		if (tw_str_eq(tw_str_split(&rest, ' '), tw_str_of(part)))
			return true;
	return part == NULL;
}
