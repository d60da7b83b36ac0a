/*
 * plan_anr.h - every function of catalogue_anr_index.h, called once, to see its statements.
 */
#ifndef PLAN_HANG_H
#define PLAN_HANG_H

struct tw_catalogue;

/* `id` is a ready trace of the project's. */
void plan_use_anrs(struct tw_catalogue *c, const char *project, const char *id);

#endif
