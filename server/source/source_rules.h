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
extern const struct tw_setting tw_source_setting; /* catalogue_setting.h */

/* The repository with the longest package that is a prefix of the class; NULL none. */
const json_t *tw_source_rules_pick(const json_t *doc, const struct tw_source_name *name);

/* Possible git names of a version or a build, best first; commit: as reported by the build, ""
 * none. If all are "": an empty list.  NULL: out of memory. */
json_t *tw_source_rules_refs(
        const json_t *repository, const char *version, const char *build, const char *commit);

/* The expected path of its file, by package and class alone; NULL: out of memory. */
const char *tw_source_rules_path(const json_t *repository, const struct tw_source_name *name,
        const char *file, struct tw_arena *a);

/* --- a URL from a template and untrusted values (source_link.c) --- */

/* Builds a URL from a template and untrusted values.
 *
 * https://git.example.com/app/blob/{commit}/{path}#L{line}
 *
 * The scheme is http or https and the host has no placeholder, so that no value leads elsewhere;
 * values are percent-encoded, except slashes of {path}; a path with dot segments gives no link.  If
 * no line is known, the part from # on is omitted if it uses one.  Pure. */

enum { TW_LINK_TEMPLATE_BYTES = 512 };

struct tw_link_values {
	const char *commit, *path, *version;
	uint32_t line, end; /* 0: unknown */
};

/* Validates a template before it is stored.  TW_BAD_REQUEST begins with `what`.  needs_path: it
 * must contain {path}; otherwise {commit} and no file. */
enum tw_status tw_link_check(
        const char *what, const char *text, bool needs_path, struct tw_err *err) TW_MUST_USE;

/* NULL: out of memory; "": no link.  text passed tw_link_check. */
const char *tw_link_make(const char *text, const struct tw_link_values *values, struct tw_arena *a);

#endif
