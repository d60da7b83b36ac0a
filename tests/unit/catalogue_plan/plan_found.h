/*
 * plan_found.h - every function of catalogue_found.h, called once, so that its statements are seen.
 */
#ifndef PLAN_FOUND_H
#define PLAN_FOUND_H

struct tw_catalogue;

/* `id` is a ready, unprocessed trace of the project. */
void plan_use_found(struct tw_catalogue *c, const char *project, const char *id);

#endif
