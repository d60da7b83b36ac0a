/*
 * plan_hook.h - the statements of webhooks and digests, run for the test of query plans.
 */
#ifndef TW_PLAN_HOOK_H
#define TW_PLAN_HOOK_H

struct tw_catalogue;

void plan_use_hooks(struct tw_catalogue *c, const char *project);

#endif
