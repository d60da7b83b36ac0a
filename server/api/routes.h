/*
 * routes.h - all routes in matching order: the areas of routes.def, one after the other.
 *
 * Each area is `const struct tw_route tw_routes_<area>[]` in its api_*.c, ending with an element
 * without method.  Thread: any.
 */
#ifndef TW_ROUTES_H
#define TW_ROUTES_H

#include <stddef.h>

struct tw_route;
const struct tw_route *tw_routes(size_t *ret_n);

#endif
