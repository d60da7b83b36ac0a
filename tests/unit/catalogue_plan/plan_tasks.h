/*
 * plan_tasks.h - calls functions of alerts, the inbox, tickets, groups of jobs, and the start of a
 * server, so that their statements are seen.
 */
#ifndef PLAN_TASKS_H
#define PLAN_TASKS_H

struct tw_catalogue;

/* `id` is one of the project's traces. */
void plan_use_tasks(struct tw_catalogue *c, const char *project, const char *id);

#endif
