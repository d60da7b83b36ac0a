/*
 * issue.h - a regression or a group of ANRs as an issue for GitHub, GitLab, Jira or Gitea.
 *
 * Pure.  Thread: any.
 */
#ifndef TW_ISSUE_H
#define TW_ISSUE_H

#include <jansson.h>

#include "server/notify/text.h"

enum tw_tracker { TW_GITHUB, TW_GITLAB, TW_JIRA, TW_GITEA, TW_TRACKERS };
extern const char *const tw_tracker_names[TW_TRACKERS + 1]; /* ends with NULL */
/* The tracker of a TW_SETTING_TRACKER that was checked. */
enum tw_tracker tw_tracker_of(const json_t *doc);

enum { TW_ISSUE_CLASSES = 8, TW_ISSUE_METHODS = 5, TW_ISSUE_BYTES = 64 << 10 };
enum { TW_ISSUE_EXEMPLARS = 5 };

struct tw_issue_class { /* the scenario's duration on a class of devices */
	const char *name;
	uint64_t before_traces, after_traces;
	int64_t before_ns, after_ns; /* medians; 0: none */
};
struct tw_issue_method { /* whose self time grew */
	const char *name;
	int64_t before_ns, after_ns; /* self time per trace */
	bool is_new;                 /* no trace before has it */
};
struct tw_issue_trace {
	const char *id, *version, *device, *os;
};

struct tw_issue {
	enum tw_tracker tracker;
	const char *base, *project_id; /* as in text.h */
	const json_t *regression;      /* or NULL and anr */
	const json_t *anr;             /* key, name, title, verdict, count, users, frames (list) */
	struct tw_issue_class classes[TW_ISSUE_CLASSES];
	size_t n_classes;
	struct tw_issue_method methods[TW_ISSUE_METHODS];
	size_t n_methods;
	struct tw_issue_trace traces[TW_ISSUE_EXEMPLARS];
	size_t n_traces;
	const json_t *blame; /* of the slow method, as of GET /api/v1/source/blame; NULL none */
};

/* One line, no markup. */
void tw_issue_title(const struct tw_issue *i, struct tw_buf *out);
/* The caller checks the buffer's status. */
void tw_issue_body(const struct tw_issue *i, struct tw_buf *out);

/* The address at which a project's issues are created: "for" and "template" of TW_SETTING_TRACKER,
 * whose {title} and {body} are replaced.  TW_BAD_REQUEST with a message. */
#define TW_SETTING_TRACKER "tracker"
enum tw_status tw_issue_template(const json_t *doc, struct tw_err *err) TW_MUST_USE;
/* The address with both filled in; a body that would make it too long is truncated. */
void tw_issue_address(
        const char *template, struct tw_str title, struct tw_str body, struct tw_buf *out);

#endif
