/*
 * plan_rollup.h - every function of catalogue_rollup.h, called once, so that its statements are
 * seen.
 */
#ifndef PLAN_ROLLUP_H
#define PLAN_ROLLUP_H

struct tw_catalogue;

/* `id` is a trace of the project's; it is made ready.  dir: the catalogue's folder. */
void plan_use_rollups(struct tw_catalogue *c, const char *dir, const char *project, const char *id);

#endif
