#include "decoder/base/granule.h"

#include <string.h>

bool tw_granules_next(
        struct tw_granules *g, const uint8_t **p, size_t *n, const uint8_t **ret, size_t *ret_n)
{
	size_t missing = TW_GRANULE - (size_t)(g->at % TW_GRANULE);
	size_t take = *n < missing ? *n : missing;
	bool whole = take == missing;

	if (g->n_held == 0 && whole) {
		*ret = *p;
		*ret_n = take;
	} else {
		if (take)
			memcpy(g->held + g->n_held, *p, take);
		g->n_held += take;
		*ret = g->held;
		*ret_n = g->n_held;
		if (whole)
			g->n_held = 0;
	}
	g->at += take;
	*p += take;
	*n -= take;
	return whole;
}

size_t tw_granules_rest(struct tw_granules *g)
{
	size_t n = g->n_held;

	g->n_held = 0;
	return n;
}
