/*
 * parameters.h - which query parameters the API's routes take, as schema/openapi.json
 * describes them (made by schema/parameters.py).
 */
#ifndef TW_PARAMETERS_H
#define TW_PARAMETERS_H

struct tw_parameters {
	const char *method, *path; /* as the route has them */
	const char *const *names;  /* by the alphabet, ended by NULL */
};
/* Terminated by an element without path. */
extern const struct tw_parameters tw_parameters[];

#endif
