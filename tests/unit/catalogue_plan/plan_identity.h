/* plan_identity.h - runs each statement about people at a provider and their sessions, for
 * test_catalogue_plan.c. */
#ifndef TW_PLAN_IDENTITY_H
#define TW_PLAN_IDENTITY_H

struct tw_catalogue;

/* There is a project "p". */
void use_identities(struct tw_catalogue *c, const char *user_id);
/* There is that key in the project. */
void plan_use_sessions(
        struct tw_catalogue *c, const char *project_id, const char *user_id, const char *key_id);

#endif
