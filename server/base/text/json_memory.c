#include "server/base/text/json_memory.h"

#include "decoder/base/arena.h"

static _Thread_local bool lacked;

static void *watched(size_t n)
{
	void *p = tw_mem_alloc(n, 1);

	if (!p)
		lacked = true;
	return p;
}

void tw_json_watch(void)
{
	json_set_alloc_funcs(watched, tw_mem_free);
}

bool tw_json_oom(void)
{
	bool was = lacked;

	lacked = false;
	return was;
}

char *tw_json_dumps(const json_t *json, size_t flags)
{
	if (tw_json_oom() || !json)
		return NULL;
	return json_dumps(json, flags);
}

json_t *tw_json_complete(json_t *json, int failed)
{
	if (!failed)
		return json;
	json_decref(json);
	return NULL;
}
