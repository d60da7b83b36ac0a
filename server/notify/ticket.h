/*
 * ticket.h - requests that create, read and reopen an issue at GitHub, GitLab, Jira or Gitea, and
 * their responses.
 *
 * A tracker is the setting TW_SETTING_TRACKER: {"for", "template"} and, for tickets by its API,
 * {"api", "repository", "user", "labels", "assignees", "issue_type"}.  Its token is stored apart,
 * encrypted (TW_SETTING_TRACKER_TOKEN).
 * A ticket's text ends with an identifier, by which one that was created before a crash is found
 * again. Pure.  Thread: any.
 */
#ifndef TW_TICKET_H
#define TW_TICKET_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/buf.h"
#include "server/notify/issue.h"

#define TW_SETTING_TRACKER_TOKEN "tracker_token"

enum {
	TW_TICKET_KEY_BYTES = 64,
	TW_TICKET_URL_BYTES = 1001,
	TW_TICKET_REQUEST_BYTES = 1 << 20,
	TW_TICKET_HEADERS = 4,
	TW_TICKET_HEADER_BYTES = 1200
};

/* --- the setting --- */

/* TW_BAD_REQUEST with a message. */
enum tw_status tw_tracker_check(const json_t *doc, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_tracker_setting; /* catalogue_setting.h */
/* Whether it can create tickets, given a token. */
bool tw_tracker_has_api(const json_t *doc);
/* The login of the author of the first commit of `blame` (GET /api/v1/source/blame), by email or
 * name, or of the first owner that has one; "": none. */
const char *tw_tracker_assignee(const json_t *doc, const json_t *blame);

/* --- requests --- */

enum tw_ticket_step {
	TW_TICKET_SEARCH, /* for the tag */
	TW_TICKET_IDS,    /* GitLab's user and Gitea's labels are passed as numbers */
	TW_TICKET_CREATE,
	TW_TICKET_READ,
	TW_TICKET_WAYS, /* Jira's transitions from the status */
	TW_TICKET_REOPEN,
	TW_TICKET_COMMENT
};

struct tw_ticket_task {
	const json_t *tracker;
	const char *token;
	const char *tag;
	const char *title, *body, *assignee; /* of one to create; assignee "": none */
	const char *key;                     /* of one that exists */
	const char *comment;
	const json_t *ids; /* of TW_TICKET_IDS or TW_TICKET_WAYS; NULL: none */
	int64_t since_ms;  /* TW_TICKET_SEARCH: it was not created before */
};
struct tw_ticket_request {
	const char *method;
	struct tw_buf url, body; /* end with NUL, which does not count */
	char headers[TW_TICKET_HEADERS][TW_TICKET_HEADER_BYTES];
	size_t n_headers;
};
/* Whether the tracker needs the step at all. */
bool tw_ticket_needs(const struct tw_ticket_task *task, enum tw_ticket_step step);
/* Call tw_ticket_request_done in any case: it wipes the token. */
enum tw_status tw_ticket_request(const struct tw_ticket_task *task, enum tw_ticket_step step,
        struct tw_ticket_request *ret, struct tw_err *err) TW_MUST_USE;
void tw_ticket_request_done(struct tw_ticket_request *r);

/* --- responses --- */

struct tw_ticket_seen {
	bool found;
	bool closed;
	char key[TW_TICKET_KEY_BYTES]; /* number, iid or Jira's key */
	char url[TW_TICKET_URL_BYTES]; /* for browsers; "" if it is not an address */
	json_t *ids;                   /* of TW_TICKET_IDS and TW_TICKET_WAYS; json_decref */
};
/* Reads a successful response.  TW_BAD_REQUEST: it differs from the tracker's documentation. */
enum tw_status tw_ticket_read_response(const struct tw_ticket_task *task, enum tw_ticket_step step,
        struct tw_str answer, struct tw_ticket_seen *ret, struct tw_err *err) TW_MUST_USE;
/* The message of the tracker in a refusal; "": none. */
void tw_ticket_refusal(struct tw_str answer, char *out, size_t cap);

#endif
