#include "server/base/text/json.h"

#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/file/io.h"

enum tw_status tw_json_object_parse(
        struct tw_str text, const char *what, json_t **ret, struct tw_err *err)
{
	json_error_t why;
	json_t *json = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &why);

	if (!json)
		return tw_fail_at(err, TW_BAD_REQUEST,
		        why.position < 0 ? 0 : (uint64_t)why.position, "%s is not JSON: %s", what,
		        why.text);
	if (!json_is_object(json)) {
		json_decref(json);
		return tw_fail_at(err, TW_BAD_REQUEST, 0, "%s must be a JSON object", what);
	}
	*ret = json;
	return TW_OK;
}

const char *tw_json_text(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

json_t *tw_json_string(const char *text)
{
	const struct tw_str s = tw_str_of(text);
	json_t *json = json_string(text);
	char *valid;

	if (json)
		return json;
	valid = tw_mem_alloc(3 * s.len + 2, 1);
	if (valid) {
		tw_utf8_clean(valid, 3 * s.len + 2, s);
		json = json_string(valid);
	}
	tw_mem_free(valid);
	return json;
}

int64_t tw_json_integer(const json_t *o, const char *name)
{
	return json_integer_value(json_object_get(o, name));
}

uint64_t tw_json_count(const json_t *o, const char *name)
{
	const int64_t v = tw_json_integer(o, name);

	return v > 0 ? (uint64_t)v : 0;
}

bool tw_json_has_only(const json_t *o, const char *const *names)
{
	size_t n = 0;

	for (; *names; names++)
		n += json_object_get(o, *names) != NULL;
	return n == json_object_size(o);
}

enum tw_status tw_check_text(const char *name, const char *value, struct tw_err *err)
{
	size_t len = strlen(value);

	if (len > TW_MAX_TEXT)
		return tw_fail(
		        err, TW_BAD_REQUEST, "%s is longer than %d bytes", name, TW_MAX_TEXT);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return tw_fail(err, TW_BAD_REQUEST,
			        "%s contains a control character at byte %zu", name, i);
	return TW_OK;
}

static _Thread_local bool oom;

static void *watched(size_t n)
{
	void *p = tw_mem_alloc(n, 1);

	if (!p)
		oom = true;
	return p;
}

void tw_json_watch(void)
{
	json_set_alloc_funcs(watched, tw_mem_free);
}

bool tw_json_oom(void)
{
	bool was = oom;

	oom = false;
	return was;
}

char *tw_json_dumps(const json_t *json, size_t flags)
{
	if (tw_json_oom() || !json)
		return NULL;
	return json_dumps(json, flags);
}

json_t *tw_json_complete(json_t *json, int failed)
{
	if (!failed)
		return json;
	json_decref(json);
	return NULL;
}

static size_t read_more(void *to, size_t n, void *fd)
{
	const ssize_t got = tw_read_some(*(const int *)fd, to, n);

	return got < 0 ? SIZE_MAX : (size_t)got;
}

json_t *tw_json_load_fd(int fd)
{
	return json_load_callback(read_more, &fd, 0, NULL);
}
