/*
 * plan_commit.h - every function of builds' revisions, called once, so that its statements are
 * seen.
 */
#ifndef PLAN_COMMIT_H
#define PLAN_COMMIT_H

struct tw_catalogue;

void plan_use_commits(struct tw_catalogue *c, const char *project);

#endif
