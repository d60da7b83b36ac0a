/*
 * plan_hook.h - the statements of webhooks and digests, run for the test of query plans.
 */
#ifndef TW_PLAN_HOOK_H
#define TW_PLAN_HOOK_H

#include "server/catalogue/catalogue.h"

void plan_use_hooks(struct tw_catalogue *c, const char *project);

#endif
