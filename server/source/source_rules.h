/*
 * source_rules.h - a project's repositories: the packages in them, link templates, names of
 * versions in git.
 *
 * Stored per project as JSON:
 *   {"repositories":[{"name":"app","packages":["com.example."],
 *     "link":"https://git.example.com/app/blob/{commit}/{path}#L{line}",
 *     "commit_link":"https://git.example.com/app/commit/{commit}",
 *     "roots":["app/src/main/java"],"refs":["v{version}"],"clone":"app","owners":"CODEOWNERS",
 *     "show_emails":false}]}
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

/* Validates before storing.  TW_BAD_REQUEST names the repository and the field. */
enum tw_status tw_source_rules_check(const json_t *doc, struct tw_err *err) TW_MUST_USE;

/* The repository with the longest package that is a prefix of the class; NULL none. */
const json_t *tw_source_rules_pick(const json_t *doc, const struct tw_source_name *name);

/* Possible git names of a version or a build, best first; commit: as reported by the build, ""
 * none. If all are "": an empty list.  NULL: out of memory. */
json_t *tw_source_rules_refs(
        const json_t *repository, const char *version, const char *build, const char *commit);

/* The expected path of its file, by package and class alone; NULL: out of memory. */
const char *tw_source_rules_path(const json_t *repository, const struct tw_source_name *name,
        const char *file, struct tw_arena *a);

const char *tw_source_text(const json_t *repository, const char *key); /* "" when absent */

#endif
