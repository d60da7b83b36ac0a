#include "server/ingest/upload_meta.h"

#include <inttypes.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/text/find.h"
#include "server/base/text/json.h"

static const struct {
	const char *name;
	size_t at;
} texts[] = {
#define TEXT(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct tw_trace_meta, name)                                        \
	}
        TEXT(app),
        TEXT(version_name),
        TEXT(version_code),
        TEXT(build_id),
        TEXT(mapping_id),
        TEXT(device),
        TEXT(os),
        TEXT(abi),
        TEXT(process),
        TEXT(scenario),
        TEXT(session_id),
        TEXT(uuid),
        TEXT(commit),
        TEXT(capture),
        TEXT(device_id),
#undef TEXT
};

enum { COMMIT_LEAST = 7 };
enum { N_TEXTS = sizeof texts / sizeof *texts };

static const char *const others[] = {"labels", "pid", "started_at", "sent_at"};
enum { N_OTHERS = sizeof others / sizeof *others };

struct tw_trace_meta tw_upload_meta_none(void)
{
	struct tw_trace_meta m = {.labels = ""};

	for (size_t i = 0; i < N_TEXTS; i++)
		*(const char **)((char *)&m + texts[i].at) = "";
	return m;
}

static const char **text_of(struct tw_trace_meta *m, const char *name)
{
	for (size_t i = 0; i < N_TEXTS; i++)
		if (strcmp(texts[i].name, name) == 0)
			return (const char **)((char *)m + texts[i].at);
	return NULL;
}

static enum tw_status unknown(const char *name, struct tw_err *err)
{
	struct tw_near_match near = {.best = NULL};

	for (size_t i = 0; i < N_TEXTS; i++)
		tw_near_match_try(&near, name, texts[i].name);
	for (size_t i = 0; i < N_OTHERS; i++)
		tw_near_match_try(&near, name, others[i]);
	if (near.best)
		return tw_fail(err, TW_BAD_REQUEST,
		        "unknown metadata field %.64s; did you mean %s? Use labels for your own "
		        "fields",
		        name, near.best);
	return tw_fail(err, TW_BAD_REQUEST,
	        "unknown metadata field %.64s; use labels for your own fields", name);
}

static enum tw_status set_number(
        const char *name, uint64_t n, bool ok, struct tw_trace_meta *m, struct tw_err *err)
{
	bool is_pid = strcmp(name, "pid") == 0;
	uint64_t max = is_pid ? UINT32_MAX : (uint64_t)TW_LAST_MS;

	if (!ok || n > max)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a whole number from 0 to %" PRIu64,
		        name, max);
	if (is_pid)
		m->pid = (uint32_t)n;
	else if (strcmp(name, "sent_at") == 0)
		m->sent_ms = (int64_t)n;
	else
		m->started_ms = (int64_t)n;
	return TW_OK;
}

static bool is_number_name(const char *name)
{
	return strcmp(name, "pid") == 0 || strcmp(name, "started_at") == 0 ||
	       strcmp(name, "sent_at") == 0;
}

static enum tw_status set_labels(
        struct tw_arena *a, const json_t *labels, struct tw_trace_meta *m, struct tw_err *err)
{
	const char *key;
	json_t *value;
	char *text = NULL;
	size_t len;
	enum tw_status st = TW_OK;
	void *iter;

	if (!json_is_object(labels) || json_object_size(labels) > TW_MAX_LABELS)
		return tw_fail(err, TW_BAD_REQUEST,
		        "labels must be a JSON object of at most %d members", TW_MAX_LABELS);
	for (iter = json_object_iter((json_t *)(uintptr_t)labels); iter && st == TW_OK;
	        iter = json_object_iter_next((json_t *)(uintptr_t)labels, iter)) {
		key = json_object_iter_key(iter);
		value = json_object_iter_value(iter);
		st = tw_check_text("a label's name", key, err);
		if (st == TW_OK && json_is_string(value))
			st = tw_check_text("a label", json_string_value(value), err);
		else if (st == TW_OK && !json_is_number(value) && !json_is_boolean(value))
			st = tw_fail(err, TW_BAD_REQUEST,
			        "label %.64s must be a text, a number or a flag", key);
	}
	if (st != TW_OK)
		return st;
	len = json_dumpb(labels, NULL, 0, JSON_COMPACT);
	if (len > TW_MAX_LABELS_BYTES)
		return tw_fail(err, TW_BAD_REQUEST, "labels are longer than %d bytes",
		        TW_MAX_LABELS_BYTES);
	text = tw_arena_alloc(a, len + 1, 1);
	if (!text || json_dumpb(labels, text, len, JSON_COMPACT) != len)
		return tw_oom(err);
	text[len] = '\0';
	m->labels = text;
	return TW_OK;
}

enum tw_status tw_upload_meta_commit(
        const char *text, char ret[TW_COMMIT_BYTES], struct tw_err *err)
{
	const size_t len = strlen(text);

	if (len < COMMIT_LEAST || len >= TW_COMMIT_BYTES ||
	        strspn(text, "0123456789abcdefABCDEF") != len)
		return tw_fail(err, TW_BAD_REQUEST,
		        "commit is the id of a git commit, 7 to 64 hex digits");
	for (size_t i = 0; i <= len; i++)
		ret[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] + 32 : text[i]);
	return TW_OK;
}

enum tw_status tw_upload_meta_check_whole(const struct tw_trace_meta *m, struct tw_err *err)
{
	if (*m->commit && !*m->build_id)
		return tw_fail(err, TW_BAD_REQUEST, "commit belongs to a build: send build_id too");
	return TW_OK;
}

int64_t tw_upload_meta_recorded(const struct tw_trace_meta *m, int64_t received_ms)
{
	const int64_t clock_ms = m->sent_ms ? received_ms - m->sent_ms : 0;
	const int64_t recorded_ms = m->started_ms + clock_ms;

	if (m->started_ms == 0 || recorded_ms > received_ms ||
	        recorded_ms < received_ms - TW_RECORDED_DAYS * TW_DAY_MS)
		return received_ms;
	return recorded_ms;
}

static enum tw_status set_text(struct tw_arena *a, const char *name, const char *value,
        struct tw_trace_meta *m, struct tw_err *err)
{
	const char **field = text_of(m, name);
	char commit[TW_COMMIT_BYTES];
	enum tw_status st;
	char *copy;

	if (!field)
		return unknown(name, err);
	st = tw_check_text(name, value, err);
	if (st == TW_OK && *value && strcmp(name, "commit") == 0) {
		st = tw_upload_meta_commit(value, commit, err);
		value = commit;
	}
	if (st != TW_OK)
		return st;
	copy = tw_arena_str(a, tw_str_of(value));
	if (!copy)
		return tw_oom(err);
	*field = copy;
	return TW_OK;
}

enum tw_status tw_upload_meta_text(struct tw_arena *a, const char *name, const char *value,
        struct tw_trace_meta *m, struct tw_err *err)
{
	enum tw_status st;
	json_t *labels;
	uint64_t n = 0;

	if (is_number_name(name) && *value == '\0')
		return TW_OK;
	if (is_number_name(name)) {
		bool ok = tw_str_u64(tw_str_of(value), UINT64_MAX, &n);

		return set_number(name, n, ok, m, err);
	}
	if (strcmp(name, "labels") != 0)
		return set_text(a, name, value, m, err);
	if (*value == '\0')
		return TW_OK;
	st = tw_json_object_parse(tw_str_of(value), "labels", &labels, err);
	if (st != TW_OK)
		return st;
	st = set_labels(a, labels, m, err);
	json_decref(labels);
	return st;
}

static enum tw_status set_member(struct tw_arena *a, const char *name, const json_t *value,
        struct tw_trace_meta *m, struct tw_err *err)
{
	json_int_t n = json_integer_value(value);

	if (json_is_null(value))
		return TW_OK;
	if (is_number_name(name))
		return set_number(name, (uint64_t)n, json_is_integer(value) && n >= 0, m, err);
	if (strcmp(name, "labels") == 0)
		return set_labels(a, value, m, err);
	if (!text_of(m, name))
		return unknown(name, err);
	if (json_is_string(value))
		return set_text(a, name, json_string_value(value), m, err);
	if (json_is_integer(value)) { /* many clients send version_code as a number */
		char *text = tw_arena_printf(a, "%" JSON_INTEGER_FORMAT, n);

		return text ? set_text(a, name, text, m, err) : tw_oom(err);
	}
	return tw_fail(err, TW_BAD_REQUEST, "%s must be a text", name);
}

enum tw_status tw_upload_meta_json(
        struct tw_arena *a, const json_t *object, struct tw_trace_meta *m, struct tw_err *err)
{
	json_t *o = (json_t *)(uintptr_t)object;
	enum tw_status st = TW_OK;

	for (void *iter = json_object_iter(o); iter && st == TW_OK;
	        iter = json_object_iter_next(o, iter))
		st = set_member(
		        a, json_object_iter_key(iter), json_object_iter_value(iter), m, err);
	return st;
}
