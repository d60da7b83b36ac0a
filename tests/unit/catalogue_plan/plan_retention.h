/*
 * plan_retention.h - every function of what is kept (catalogue_retention.c), called once, so that
 * its statements are seen.
 */
#ifndef PLAN_RETENTION_H
#define PLAN_RETENTION_H

struct tw_catalogue;

/* `id` is one of the project's two traces, and queued. */
void plan_use_retention(struct tw_catalogue *c, const char *project, const char *id);

#endif
