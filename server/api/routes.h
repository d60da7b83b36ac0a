/*
 * routes.h - all routes in matching order, one area after the other.
 *
 * Each area is `const struct tw_route tw_routes_<area>[]` in its api_*.c, ending with an element
 * without method, and is listed in routes.c.  A route states everything about itself (struct
 * tw_route in http.h); schema/openapi.py copies it to schema/openapi.json.  Thread: any.
 */
#ifndef TW_ROUTES_H
#define TW_ROUTES_H

#include <stddef.h>

struct tw_route;
const struct tw_route *tw_routes(size_t *ret_n);

#endif
