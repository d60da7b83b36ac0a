/* plan_identity.h - runs each statement about people at a provider, for test_catalogue_plan.c. */
#ifndef TW_PLAN_IDENTITY_H
#define TW_PLAN_IDENTITY_H

struct tw_catalogue;

/* There is a project "p". */
void use_identities(struct tw_catalogue *c, const char *user_id);

#endif
