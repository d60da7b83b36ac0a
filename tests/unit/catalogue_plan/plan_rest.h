/*
 * plan_rest.h - calls functions of alerts, the inbox, tickets, groups of jobs, and the start of a
 * server, so that their statements are seen.
 */
#ifndef PLAN_REST_H
#define PLAN_REST_H

struct tw_catalogue;

/* `id` is one of the project's traces. */
void plan_use_rest(struct tw_catalogue *c, const char *project, const char *id);

#endif
