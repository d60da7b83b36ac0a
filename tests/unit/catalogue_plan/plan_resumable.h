/* plan_resumable.h - every statement of uploads in pieces, for the test of plans. */
#ifndef PLAN_RESUMABLE_H
#define PLAN_RESUMABLE_H

struct tw_catalogue;

void plan_use_resumables(struct tw_catalogue *c, const char *project);

#endif
