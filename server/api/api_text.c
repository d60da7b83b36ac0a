/* Validates texts and small JSON objects of requests before they are stored. */
#include <string.h>

#include "server/api/api.h"
#include "server/base/app.h"
#include "server/catalogue/access/catalogue_key.h"

/* Line breaks and tabs are allowed in texts of several lines. */
static bool is_control(char c, bool lines)
{
	if (lines && (c == '\n' || c == '\t'))
		return false;
	return (unsigned char)c < ' ' || c == 0x7f;
}

enum tw_status tw_api_text(const json_t *body, const char *name, size_t max, bool lines,
        const char **ret, struct tw_err *err)
{
	const char *text = json_string_value(json_object_get(body, name));
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a text", name);
	if (len > max)
		return tw_fail(err, TW_BAD_REQUEST, "%s has %zu bytes, at most %zu are kept", name,
		        len, max);
	for (size_t i = 0; i < len; i++)
		if (is_control(text[i], lines))
			return tw_fail(err, TW_BAD_REQUEST,
			        "%s holds a control character at byte %zu", name, i);
	*ret = text;
	return TW_OK;
}

const char *tw_api_author(struct tw_req *r)
{
	const struct tw_caller *caller = tw_req_caller(r);
	struct tw_key_row *keys;
	struct tw_err why;
	size_t n;

	if (caller->name[0])
		return caller->name;
	if (tw_catalogue_keys(tw_req_app(r)->catalogue, caller->project_id, tw_req_arena(r), &keys,
	            &n, &why) != TW_OK)
		return "";
	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i].id, caller->key_id) == 0)
			return keys[i].name[0] ? keys[i].name : "a key without a name";
	return "admin";
}
