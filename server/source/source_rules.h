/*
 * source_rules.h - a project's repositories: which code is in them, how to link to it, what a
 * version is called there.
 *
 * As JSON, which a project stores:
 *   {"repositories":[{"name":"app","packages":["com.example."],
 *     "link":"https://git.example.com/app/blob/{commit}/{path}#L{line}",
 *     "commit_link":"https://git.example.com/app/commit/{commit}",
 *     "roots":["app/src/main/java"],"refs":["v{version}"],"clone":"app","owners":"CODEOWNERS",
 *     "emails":false}]}
 * Pure.  Thread: any.
 */
#ifndef TW_SOURCE_RULES_H
#define TW_SOURCE_RULES_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/source/source_name.h"

#define TW_SETTING_SOURCE "source"

enum { TW_SOURCE_REPOSITORIES = 20, TW_SOURCE_LIST = 50, TW_SOURCE_NAME_BYTES = 64 };

/* May this be stored?  TW_BAD_REQUEST names the repository and the field. */
enum tw_status tw_source_rules_check(const json_t *doc, struct tw_err *err) TW_MUST_USE;

/* The repository with the longest package that the class begins with; NULL none. */
const json_t *tw_source_rules_pick(const json_t *doc, const struct tw_source_name *name);

/* What a version or a build may be called in git, best first; commit: what the build said it is
 * made of, "" not.  All of them "": an empty list.  NULL: no memory. */
json_t *tw_source_rules_refs(
        const json_t *repository, const char *version, const char *build, const char *commit);

/* Where its file should be, by package and class alone; NULL: no memory. */
const char *tw_source_rules_path(const json_t *repository, const struct tw_source_name *name,
        const char *file, struct tw_arena *a);

const char *tw_source_text(const json_t *repository, const char *key); /* "" when absent */

#endif
