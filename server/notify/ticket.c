#include "server/notify/ticket.h"

#include <ctype.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/text/json.h"
#include "server/base/text/members.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/notify/hook.h"

enum {
	LABELS_MOST = 20,
	ASSIGNEES_MOST = 500,
	NAME_BYTES = 200,
	LISTED = 50, /* newest issues that are searched for the marker */
	CLOCKS_APART_MS = 10 * 60 * 1000
};

/* A number, as most switches have a default. */
static unsigned which(const json_t *doc)
{
	return tw_tracker_of(doc);
}

/* The differences that need no code. */
struct api {
	const char *reserved;  /* not allowed in a label; "": none */
	const char *key, *url; /* members of an issue */
	const char *text;      /* the member that has the tag */
	const char *comments;  /* path below the issue */
	const char *reopen;    /* method of the request */
};

static const struct api apis[TW_TRACKERS] = {
        [TW_GITHUB] = {"", "number", "html_url", "body", "/comments", "PATCH"},
        [TW_GITLAB] = {",", "iid", "web_url", "description", "/notes", "PUT"},
        [TW_JIRA] = {" ", "key", "", "", "/comment", "POST"},
        [TW_GITEA] = {"", "number", "html_url", "body", "/comments", "PATCH"},
};

static const struct api *api_of(const json_t *doc)
{
	return &apis[tw_tracker_of(doc)];
}

/* --- settings --- */

static bool is_word(const char *text, const char *also)
{
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(also, *c))
			return false;
	return *text != '\0';
}

/* owner/name */
static bool is_repository(const char *text)
{
	const char *slash = strchr(text, '/');

	return is_word(text, "/-._") && slash && slash != text && slash[1] &&
	       !strchr(slash + 1, '/') && !strstr(text, "..");
}

static enum tw_status check_repository(const json_t *doc, struct tw_err *err)
{
	const char *text = tw_json_text(doc, "repository");

	switch (which(doc)) {
	case TW_GITLAB:
		return is_word(text, "/-._") ? TW_OK
		                             : tw_fail(err, TW_BAD_REQUEST,
		                                       "repository must be the path or the number "
		                                       "of a GitLab project");
	case TW_JIRA:
		return is_word(text, "_") ? TW_OK
		                          : tw_fail(err, TW_BAD_REQUEST,
		                                    "repository must be the key of a Jira project");
	default:
		return is_repository(text)
		               ? TW_OK
		               : tw_fail(err, TW_BAD_REQUEST, "repository must be owner/name");
	}
}

static bool is_name(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && *text && strlen(text) <= NAME_BYTES &&
	       tw_check_text("name", text, NULL) == TW_OK;
}

static enum tw_status check_labels(const json_t *doc, struct tw_err *err)
{
	const json_t *list = json_object_get(doc, "labels"), *one;
	const char *reserved = api_of(doc)->reserved;
	size_t i;

	if (!list)
		return TW_OK;
	if (!json_is_array(list) || json_array_size(list) > LABELS_MOST)
		return tw_fail(
		        err, TW_BAD_REQUEST, "labels must be a list of at most %d", LABELS_MOST);
	json_array_foreach(list, i, one)
	{
		if (!is_name(one) || (*reserved && strstr(json_string_value(one), reserved)))
			return tw_fail(err, TW_BAD_REQUEST,
			        "a label is a text of 1 to %d bytes, without commas for GitLab and "
			        "spaces for Jira",
			        NAME_BYTES);
	}
	return TW_OK;
}

static enum tw_status check_assignees(const json_t *doc, struct tw_err *err)
{
	json_t *map = json_object_get(doc, "assignees"), *login;
	const char *who;

	if (!map)
		return TW_OK;
	if (!json_is_object(map) || json_object_size(map) > ASSIGNEES_MOST)
		return tw_fail(err, TW_BAD_REQUEST,
		        "assignees must be an object of at most %d emails, names or owners, each "
		        "with a login",
		        ASSIGNEES_MOST);
	json_object_foreach(map, who, login)
	{
		if (!*who || strlen(who) > NAME_BYTES || !is_name(login))
			return tw_fail(err, TW_BAD_REQUEST,
			        "assignees maps texts to logins of 1 to %d bytes", NAME_BYTES);
	}
	return TW_OK;
}

static const struct tw_member members[] = {
        {.name = "for", .kind = TW_MEMBER_OTHER},
        {.name = "template", .kind = TW_MEMBER_OTHER},
        {.name = "api", .kind = TW_MEMBER_TEXT, .max = TW_MAX_TEXT},
        {.name = "repository", .kind = TW_MEMBER_TEXT, .max = TW_MAX_TEXT},
        {.name = "user", .kind = TW_MEMBER_TEXT, .max = TW_MAX_TEXT},
        {.name = "labels", .kind = TW_MEMBER_OTHER},
        {.name = "assignees", .kind = TW_MEMBER_OTHER},
        {.name = "issue_type", .kind = TW_MEMBER_TEXT, .max = TW_MAX_TEXT},
        {0},
};

bool tw_tracker_has_api(const json_t *doc)
{
	return tw_json_text(doc, "api")[0] != '\0';
}

enum tw_status tw_tracker_check(const json_t *doc, struct tw_err *err)
{
	const char *api = tw_json_text(doc, "api");
	enum tw_status st = tw_members_known(doc, members, err);

	if (st == TW_OK)
		st = tw_issue_template(doc, err);
	if (st == TW_OK)
		st = tw_members_read(doc, members, NULL, err);
	if (st == TW_OK && strchr(tw_json_text(doc, "user"), ':'))
		st = tw_fail(err, TW_BAD_REQUEST, "user must not contain a colon");
	if (st == TW_OK)
		st = check_labels(doc, err);
	if (st == TW_OK)
		st = check_assignees(doc, err);
	if (st != TW_OK || !*api)
		return st;
	if (strpbrk(api, "?#"))
		return tw_fail(err, TW_BAD_REQUEST, "api must not have a query");
	st = tw_hook_url(api, err);
	return st == TW_OK ? check_repository(doc, err) : st;
}

const struct tw_setting tw_tracker_setting = {TW_SETTING_TRACKER, tw_tracker_check};

static const char *login_of(const json_t *map, const char *who)
{
	const char *login = who ? json_string_value(json_object_get(map, who)) : NULL;

	return login ? login : "";
}

const char *tw_tracker_assignee(const json_t *doc, const json_t *blame)
{
	const json_t *map = json_object_get(doc, "assignees"), *section, *name;
	const json_t *first = json_array_get(json_object_get(blame, "commits"), 0);
	const char *login = login_of(map, tw_json_text(first, "email"));
	size_t i, k;

	if (!*login)
		login = login_of(map, tw_json_text(first, "author"));
	json_array_foreach(json_object_get(blame, "owners"), i, section)
	{
		json_array_foreach(json_object_get(section, "names"), k, name)
		{
			if (!*login)
				login = login_of(map, json_string_value(name));
		}
	}
	return login;
}

/* --- requests --- */

static void add_root(const json_t *doc, struct tw_buf *out)
{
	const char *api = tw_json_text(doc, "api");
	size_t n = strlen(api);

	while (n && api[n - 1] == '/')
		n--;
	(void)tw_buf_add(out, api, n);
}

/* The URL of the project's issues. */
static void add_issues(const json_t *doc, struct tw_buf *out)
{
	const char *repository = tw_json_text(doc, "repository");

	add_root(doc, out);
	if (which(doc) == TW_JIRA) {
		tw_buf_printf(out, "/rest/api/2/issue");
	} else if (which(doc) == TW_GITLAB) {
		tw_buf_printf(out, "/projects/");
		tw_markup_query(out, repository, strlen(repository));
		tw_buf_printf(out, "/issues");
	} else {
		tw_buf_printf(out, "/repos/%s/issues", repository);
	}
}

static void add_issue(const struct tw_ticket_task *task, const char *below, struct tw_buf *out)
{
	add_issues(task->tracker, out);
	tw_buf_printf(out, "/%s%s", task->key, below);
}

static void add_since(const struct tw_ticket_task *task, struct tw_buf *out)
{
	const time_t at = (time_t)((task->since_ms - CLOCKS_APART_MS) / 1000);
	struct tm utc;

	if (task->since_ms > CLOCKS_APART_MS && gmtime_r(&at, &utc))
		tw_buf_printf(out, "&since=%04d-%02d-%02dT%02d:%02d:%02dZ", utc.tm_year + 1900,
		        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/* Reads lists where the tracker's search index lags behind. */
static void search(const struct tw_ticket_task *task, struct tw_buf *out)
{
	const char *project = tw_json_text(task->tracker, "repository");

	switch (which(task->tracker)) {
	case TW_GITHUB:
		add_issues(task->tracker, out);
		tw_buf_printf(out, "?state=all&sort=created&direction=desc&per_page=%d", LISTED);
		add_since(task, out);
		return;
	case TW_GITEA:
		add_issues(task->tracker, out);
		tw_buf_printf(out, "?state=all&type=issues&limit=%d", LISTED);
		add_since(task, out);
		return;
	case TW_GITLAB:
		add_issues(task->tracker, out);
		tw_buf_printf(out, "?in=description&per_page=%d&search=%s", LISTED, task->tag);
		return;
	default:
		add_root(task->tracker, out);
		/* Jira Cloud, which needs a user, replaced the endpoint that Data Center has */
		tw_buf_printf(out, "/rest/api/2/search%s?fields=status,labels&maxResults=1&jql=",
		        tw_json_text(task->tracker, "user")[0] ? "/jql" : "");
		tw_buf_printf(out,
		        "project%%20%%3D%%20%%22%s%%22%%20AND%%20labels%%20%%3D%%20%%22%s"
		        "%%22",
		        project, task->tag);
	}
}

static void put_ids(const struct tw_ticket_task *task, struct tw_buf *out)
{
	add_root(task->tracker, out);
	if (which(task->tracker) == TW_GITLAB) {
		tw_buf_printf(out, "/users?username=");
		tw_markup_query(out, task->assignee, strlen(task->assignee));
	} else {
		tw_buf_printf(out, "/repos/%s/labels?limit=%d",
		        tw_json_text(task->tracker, "repository"), LISTED);
	}
}

static json_t *labels_of(const struct tw_ticket_task *task)
{
	const json_t *set = json_object_get(task->tracker, "labels");

	return set ? json_deep_copy(set) : json_array();
}

static json_t *joined(json_t *list)
{
	struct tw_buf out;
	json_t *one, *text;
	size_t i;

	tw_buf_init(&out, (size_t)LABELS_MOST * (NAME_BYTES + 1));
	json_array_foreach(list, i, one)
	{
		tw_buf_printf(&out, "%s%s", i ? "," : "", json_string_value(one));
	}
	text = json_stringn(out.len ? (const char *)out.data : "", out.len);
	tw_buf_done(&out);
	json_decref(list);
	return text;
}

static json_t *jira_fields(const struct tw_ticket_task *task)
{
	const char *type = tw_json_text(task->tracker, "issue_type");
	json_t *labels = labels_of(task);
	json_t *fields;

	(void)json_array_append_new(labels, json_string(task->tag));
	fields = json_pack("{s:{s:s}, s:s, s:s, s:{s:s}, s:o}", "project", "key",
	        tw_json_text(task->tracker, "repository"), "summary", task->title, "description",
	        task->body, "issuetype", "name", *type ? type : "Bug", "labels", labels);
	if (fields && *task->assignee)
		(void)json_object_set_new(fields, "assignee",
		        json_pack("{s:s}",
		                tw_json_text(task->tracker, "user")[0] ? "accountId" : "name",
		                task->assignee));
	return json_pack("{s:o}", "fields", fields);
}

static json_t *new_issue(const struct tw_ticket_task *task)
{
	json_t *j;

	switch (which(task->tracker)) {
	case TW_JIRA:
		return jira_fields(task);
	case TW_GITLAB:
		j = json_pack("{s:s, s:s, s:o}", "title", task->title, "description", task->body,
		        "labels", joined(labels_of(task)));
		if (j && json_array_size(task->ids))
			(void)json_object_set_new(j, "assignee_ids", json_deep_copy(task->ids));
		return j;
	default:
		j = json_pack("{s:s, s:s, s:o}", "title", task->title, "body", task->body, "labels",
		        which(task->tracker) == TW_GITHUB ? labels_of(task)
		        : task->ids                       ? json_deep_copy(task->ids)
		                                          : json_array());
		if (j && *task->assignee)
			(void)json_object_set_new(j, "assignees", json_pack("[s]", task->assignee));
		return j;
	}
}

static json_t *reopening(const struct tw_ticket_task *task)
{
	switch (which(task->tracker)) {
	case TW_JIRA:
		return json_pack("{s:{s:O}}", "transition", "id", json_array_get(task->ids, 0));
	case TW_GITLAB:
		return json_pack("{s:s}", "state_event", "reopen");
	default:
		return json_pack("{s:s}", "state", "open");
	}
}

static void put_body(json_t *j, struct tw_buf *out)
{
	char *text = j ? tw_json_dumps(j, JSON_COMPACT) : NULL;

	if (text)
		(void)tw_buf_add(out, text, strlen(text));
	else
		(void)tw_buf_reserve(out, SIZE_MAX); /* marks the buffer as failed */
	free(text);
	json_decref(j);
}

static void reopen(const struct tw_ticket_task *task, struct tw_ticket_request *r)
{
	r->method = api_of(task->tracker)->reopen;
	add_issue(task, which(task->tracker) == TW_JIRA ? "/transitions" : "", &r->url);
	put_body(reopening(task), &r->body);
}

static void comment(const struct tw_ticket_task *task, struct tw_ticket_request *r)
{
	r->method = "POST";
	add_issue(task, api_of(task->tracker)->comments, &r->url);
	put_body(json_pack("{s:s}", "body", task->comment), &r->body);
}

static void fill(
        const struct tw_ticket_task *task, enum tw_ticket_step step, struct tw_ticket_request *r)
{
	r->method = "GET";
	switch (step) {
	case TW_TICKET_SEARCH:
		search(task, &r->url);
		break;
	case TW_TICKET_IDS:
		put_ids(task, &r->url);
		break;
	case TW_TICKET_CREATE:
		r->method = "POST";
		add_issues(task->tracker, &r->url);
		put_body(new_issue(task), &r->body);
		break;
	case TW_TICKET_READ:
		add_issue(task, which(task->tracker) == TW_JIRA ? "?fields=status" : "", &r->url);
		break;
	case TW_TICKET_WAYS:
		add_issue(task, "/transitions", &r->url);
		break;
	case TW_TICKET_REOPEN:
		reopen(task, r);
		break;
	case TW_TICKET_COMMENT:
		comment(task, r);
	}
}

/* --- headers --- */

static void add_header(struct tw_ticket_request *r, const char *name, const char *value)
{
	(void)snprintf(r->headers[r->n_headers++], TW_TICKET_HEADER_BYTES, "%s: %s", name, value);
}

/* A token is at most TW_SECRET_PLAIN_MAX (300), a user at most TW_MAX_TEXT (512) bytes. */
static void basic(struct tw_ticket_request *r, const char *user, const char *token)
{
	char plain[820], spelled[1100], value[1120];

	(void)snprintf(plain, sizeof plain, "%s:%s", user, token);
	(void)sodium_bin2base64(spelled, sizeof spelled, (const unsigned char *)plain,
	        strlen(plain), sodium_base64_VARIANT_ORIGINAL);
	(void)snprintf(value, sizeof value, "Basic %s", spelled);
	add_header(r, "Authorization", value);
	explicit_bzero(plain, sizeof plain);
	explicit_bzero(spelled, sizeof spelled);
	explicit_bzero(value, sizeof value);
}

static void bearer(struct tw_ticket_request *r, const char *scheme, const char *token)
{
	char value[400];

	(void)snprintf(value, sizeof value, "%s %s", scheme, token);
	add_header(r, "Authorization", value);
	explicit_bzero(value, sizeof value);
}

static void add_headers(const struct tw_ticket_task *task, struct tw_ticket_request *r)
{
	const char *user = tw_json_text(task->tracker, "user");

	switch (which(task->tracker)) {
	case TW_GITHUB:
		bearer(r, "Bearer", task->token);
		add_header(r, "Accept", "application/vnd.github+json");
		add_header(r, "X-GitHub-Api-Version", "2022-11-28");
		return;
	case TW_GITLAB:
		add_header(r, "PRIVATE-TOKEN", task->token);
		return;
	case TW_GITEA:
		bearer(r, "token", task->token);
		return;
	default:
		if (*user)
			basic(r, user, task->token);
		else
			bearer(r, "Bearer", task->token);
	}
}

bool tw_ticket_needs(const struct tw_ticket_task *task, enum tw_ticket_step step)
{
	const unsigned t = which(task->tracker);

	if (step == TW_TICKET_IDS)
		return (t == TW_GITLAB && *task->assignee) ||
		       (t == TW_GITEA && json_array_size(json_object_get(task->tracker, "labels")));
	return step != TW_TICKET_WAYS || t == TW_JIRA;
}

enum tw_status tw_ticket_request(const struct tw_ticket_task *task, enum tw_ticket_step step,
        struct tw_ticket_request *ret, struct tw_err *err)
{
	ret->n_headers = 0;
	tw_buf_init(&ret->url, TW_ISSUE_BYTES);
	tw_buf_init(&ret->body, TW_TICKET_REQUEST_BYTES);
	fill(task, step, ret);
	add_headers(task, ret);
	(void)tw_buf_add_u8(&ret->url, 0);
	(void)tw_buf_add_u8(&ret->body, 0);
	if (tw_buf_status(&ret->url) != TW_OK || tw_buf_status(&ret->body) != TW_OK)
		return tw_fail(err, TW_TOO_LARGE, "the ticket is too large");
	ret->url.len--;
	ret->body.len--;
	return TW_OK;
}

void tw_ticket_request_done(struct tw_ticket_request *r)
{
	explicit_bzero(r->headers, sizeof r->headers);
	tw_buf_done(&r->url);
	tw_buf_done(&r->body);
}

/* --- responses --- */

static enum tw_status unexpected(struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST,
	        "the response is not what the tracker's API documents: check api");
}

static bool read_key(const json_t *issue, const char *name, struct tw_ticket_seen *ret)
{
	const json_t *key = json_object_get(issue, name);

	if (json_is_integer(key))
		(void)snprintf(ret->key, sizeof ret->key, "%" JSON_INTEGER_FORMAT,
		        json_integer_value(key));
	else if (json_is_string(key) && is_word(json_string_value(key), "-_") &&
	         strlen(json_string_value(key)) < sizeof ret->key)
		(void)snprintf(ret->key, sizeof ret->key, "%s", json_string_value(key));
	return ret->key[0] != '\0';
}

static void read_url(const char *url, struct tw_ticket_seen *ret)
{
	if (*url && tw_hook_url(url, NULL) == TW_OK)
		(void)snprintf(ret->url, sizeof ret->url, "%s", url);
}

static void browse_url(const struct tw_ticket_task *task, struct tw_ticket_seen *ret)
{
	struct tw_buf url;

	tw_buf_init(&url, TW_TICKET_URL_BYTES);
	add_root(task->tracker, &url);
	tw_buf_printf(&url, "/browse/%s", ret->key);
	(void)tw_buf_add_u8(&url, 0);
	if (tw_buf_status(&url) == TW_OK)
		read_url((const char *)url.data, ret);
	tw_buf_done(&url);
}

static bool read_issue(
        const struct tw_ticket_task *task, const json_t *issue, struct tw_ticket_seen *ret)
{
	const struct api *api = api_of(task->tracker);
	const json_t *status = json_object_get(json_object_get(issue, "fields"), "status");

	if (!read_key(issue, api->key, ret))
		return false;
	ret->found = true;
	if (which(task->tracker) == TW_JIRA) {
		ret->closed = strcmp(tw_json_text(json_object_get(status, "statusCategory"), "key"),
		                      "done") == 0;
		browse_url(task, ret);
		return true;
	}
	ret->closed = strcmp(tw_json_text(issue, "state"), "closed") == 0;
	read_url(tw_json_text(issue, api->url), ret);
	return true;
}

static bool has_tag(const struct tw_ticket_task *task, const json_t *issue)
{
	const json_t *label;
	size_t i;

	if (which(task->tracker) != TW_JIRA)
		return strstr(tw_json_text(issue, api_of(task->tracker)->text), task->tag) != NULL;
	json_array_foreach(json_object_get(json_object_get(issue, "fields"), "labels"), i, label)
	{
		if (json_is_string(label) && strcmp(json_string_value(label), task->tag) == 0)
			return true;
	}
	return false;
}

static enum tw_status read_found(const struct tw_ticket_task *task, const json_t *j,
        struct tw_ticket_seen *ret, struct tw_err *err)
{
	const json_t *list = which(task->tracker) == TW_JIRA ? json_object_get(j, "issues") : j,
	             *one;
	size_t i;

	if (!json_is_array(list))
		return unexpected(err);
	json_array_foreach(list, i, one)
	{
		if (!ret->found && has_tag(task, one) && !read_issue(task, one, ret))
			return unexpected(err);
	}
	return TW_OK;
}

static bool has_label(const struct tw_ticket_task *task, const char *name)
{
	const json_t *label;
	size_t i;

	json_array_foreach(json_object_get(task->tracker, "labels"), i, label)
	{
		if (strcmp(json_string_value(label), name) == 0)
			return true;
	}
	return false;
}

/* Ids of the user, or of existing labels. */
static enum tw_status read_ids(const struct tw_ticket_task *task, const json_t *j,
        struct tw_ticket_seen *ret, struct tw_err *err)
{
	const bool users = which(task->tracker) == TW_GITLAB;
	const json_t *one;
	size_t i;

	if (!json_is_array(j))
		return unexpected(err);
	ret->ids = json_array();
	json_array_foreach(j, i, one)
	{
		const json_t *id = json_object_get(one, "id");

		if (json_is_integer(id) && (users || has_label(task, tw_json_text(one, "name"))))
			(void)json_array_append_new(ret->ids, json_deep_copy(id));
	}
	return ret->ids ? TW_OK : tw_oom(err);
}

/* The first transition to a status that is not done. */
static enum tw_status read_transitions(
        const json_t *j, struct tw_ticket_seen *ret, struct tw_err *err)
{
	const json_t *one;
	size_t i;

	ret->ids = json_array();
	json_array_foreach(json_object_get(j, "transitions"), i, one)
	{
		const json_t *to = json_object_get(json_object_get(one, "to"), "statusCategory");

		if (json_array_size(ret->ids) == 0 &&
		        strcmp(tw_json_text(to, "key"), "done") != 0 &&
		        json_is_string(json_object_get(one, "id")))
			(void)json_array_append_new(
			        ret->ids, json_deep_copy(json_object_get(one, "id")));
	}
	if (json_array_size(ret->ids))
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST, "Jira offers no transition that reopens the issue");
}

static enum tw_status read_answer(const struct tw_ticket_task *task, enum tw_ticket_step step,
        const json_t *j, struct tw_ticket_seen *ret, struct tw_err *err)
{
	switch (step) {
	case TW_TICKET_SEARCH:
		return read_found(task, j, ret, err);
	case TW_TICKET_IDS:
		return read_ids(task, j, ret, err);
	case TW_TICKET_WAYS:
		return read_transitions(j, ret, err);
	case TW_TICKET_CREATE:
	case TW_TICKET_READ:
	case TW_TICKET_REOPEN:
	case TW_TICKET_COMMENT:
		break;
	}
	return read_issue(task, j, ret) ? TW_OK : unexpected(err);
}

enum tw_status tw_ticket_read_response(const struct tw_ticket_task *task, enum tw_ticket_step step,
        struct tw_str answer, struct tw_ticket_seen *ret, struct tw_err *err)
{
	json_t *j;
	enum tw_status st;

	*ret = (struct tw_ticket_seen){.found = false};
	if (step == TW_TICKET_REOPEN || step == TW_TICKET_COMMENT)
		return TW_OK;
	j = json_loadb(answer.ptr, answer.len, 0, NULL);
	st = j ? read_answer(task, step, j, ret, err) : unexpected(err);
	json_decref(j);
	if (st != TW_OK) {
		json_decref(ret->ids);
		ret->ids = NULL;
	}
	return st;
}

/* "message" of GitHub, GitLab and Gitea, "errorMessages" and "errors" of Jira. */
void tw_ticket_refusal(struct tw_str answer, char *out, size_t cap)
{
	json_t *j = json_loadb(answer.ptr ? answer.ptr : "", answer.len, 0, NULL);
	json_t *first = json_array_get(json_object_get(j, "errorMessages"), 0);
	const char *text = tw_json_text(j, "message");
	void *field = json_object_iter(json_object_get(j, "errors"));

	if (!*text && json_is_string(first))
		text = json_string_value(first);
	if (!*text && field && json_is_string(json_object_iter_value(field)))
		text = json_string_value(json_object_iter_value(field));
	(void)snprintf(out, cap, "%.150s", text);
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
			*c = ' ';
	json_decref(j);
}
