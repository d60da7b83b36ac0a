/*
 * plan_retention.h - calls every function of retention (catalogue_retention.c) once, so that
 * its statements are seen.
 */
#ifndef PLAN_RETENTION_H
#define PLAN_RETENTION_H

struct tw_catalogue;

/* `id` is one of the project's two traces, and queued. */
void plan_use_retention(struct tw_catalogue *c, const char *project, const char *id);
/* Creates and deletes a separate project. */
void plan_use_project_delete(struct tw_catalogue *c);

#endif
