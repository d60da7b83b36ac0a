#include "decoder/formats/repairs.h"

#include <string.h>

#define WORD_NOTE   "note"
#define WORD_REPAIR "repair"
#define WORD_LOSS   "loss"

static const struct tw_repair_info infos[TW_REPAIR_COUNT] = {
#define REPAIR(name, kind, meaning) {#name, TW_REPAIR_##kind, WORD_##kind, meaning},
#include "decoder/formats/repairs.def"
#undef REPAIR
};

const struct tw_repair_info *tw_repair_info(enum tw_repair what)
{
	return &infos[what];
}

enum tw_repair tw_repair_of_name(const char *name)
{
	for (int i = 0; i < TW_REPAIR_COUNT; i++)
		if (strcmp(infos[i].name, name) == 0)
			return (enum tw_repair)i;
	return TW_REPAIR_COUNT;
}
