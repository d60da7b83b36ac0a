#include "decoder/symbols/map_text.h"

static enum tw_map_text kind_of_line(struct tw_str line)
{
	struct tw_str rest = line;
	struct tw_str id = tw_str_split(&rest, ',');
	struct tw_str access = tw_str_split(&rest, ',');
	uint64_t number;

	if (line.ptr[line.len - 1] == ':' && tw_str_find(line, TW_STR(" -> ")) < line.len)
		return TW_MAP_TEXT_RETRACE;
	if (tw_str_u64(id, UINT32_MAX, &number) && tw_str_u64(access, UINT32_MAX, &number) &&
	        rest.len)
		return TW_MAP_TEXT_METHODS;
	return TW_MAP_TEXT_NONE;
}

enum tw_map_text tw_map_text_of(struct tw_str head)
{
	if (tw_str_starts(head, TW_STR("\xEF\xBB\xBF")))
		head = tw_str_from(head, 3);
	while (head.len) {
		struct tw_str line = tw_str_trim(tw_str_split(&head, '\n'));

		if (line.len && line.ptr[0] != '#')
			return kind_of_line(line);
	}
	return TW_MAP_TEXT_NONE;
}

const char *tw_map_text_belongs(enum tw_map_text kind)
{
	switch (kind) {
	case TW_MAP_TEXT_METHODS:
		return "it looks like methodMapping.txt, which belongs to "
		       "PUT /api/v1/builds/{build_id}/methods";
	case TW_MAP_TEXT_RETRACE:
		return "it looks like R8's mapping.txt, which belongs to "
		       "PUT /api/v1/builds/{build_id}/retrace";
	case TW_MAP_TEXT_NONE:
	default:
		return NULL;
	}
}
