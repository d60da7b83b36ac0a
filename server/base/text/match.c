#include "server/base/text/match.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <strings.h>

#include "decoder/base/arena.h"

enum { TEXT_MAX = 512, STEPS_MAX = 20000, HEAP_MAX_KIB = 1024 };

struct tw_match {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	size_t len;
	char text[TEXT_MAX + 1];
};

static enum tw_status compile(struct tw_match *m, struct tw_err *err)
{
	int code = 0;
	size_t at = 0;
	char why[128] = "";

	m->code = pcre2_compile((PCRE2_SPTR)m->text, m->len,
	        PCRE2_UTF | PCRE2_CASELESS | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	if (!m->code) {
		(void)pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
		return tw_fail_at(err, TW_BAD_REQUEST, at, "not a regular expression: %s", why);
	}
	m->data = pcre2_match_data_create(1, NULL);
	m->context = pcre2_match_context_create(NULL);
	if (!m->data || !m->context)
		return tw_oom(err);
	(void)pcre2_set_match_limit(m->context, STEPS_MAX);
	(void)pcre2_set_heap_limit(m->context, HEAP_MAX_KIB);
	return TW_OK;
}

enum tw_status tw_match_new(const char *text, bool regex, struct tw_match **ret, struct tw_err *err)
{
	size_t len = strlen(text);
	struct tw_match *m;
	enum tw_status st = TW_OK;

	if (len > TEXT_MAX)
		return tw_fail_at(err, TW_BAD_REQUEST, TEXT_MAX,
		        "the text to look for is longer than %d bytes", TEXT_MAX);
	m = tw_mem_zalloc(1, sizeof *m);
	if (!m)
		return tw_oom(err);
	memcpy(m->text, text, len + 1);
	m->len = len;
	if (regex)
		st = compile(m, err);
	if (st == TW_OK)
		*ret = m;
	else
		tw_match_free(m);
	return st;
}

struct tw_match *tw_match_free(struct tw_match *m)
{
	if (!m)
		return NULL;
	pcre2_match_context_free(m->context);
	pcre2_match_data_free(m->data);
	pcre2_code_free(m->code);
	tw_mem_free(m);
	return NULL;
}

bool tw_match_has(const struct tw_match *m, struct tw_str name)
{
	if (m->code)
		return pcre2_match(m->code, (PCRE2_SPTR)name.ptr, name.len, 0, 0, m->data,
		               m->context) >= 0;
	for (size_t i = 0; i + m->len <= name.len; i++)
		if (strncasecmp(name.ptr + i, m->text, m->len) == 0)
			return true;
	return false;
}

enum tw_status tw_match_check(
        const struct tw_match *m, struct tw_str name, bool *ret_has, struct tw_err *err)
{
	int result;

	if (!m->code) {
		*ret_has = tw_match_has(m, name);
		return TW_OK;
	}
	result = pcre2_match(m->code, (PCRE2_SPTR)name.ptr, name.len, 0, 0, m->data, m->context);
	if (result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_HEAPLIMIT ||
	        result == PCRE2_ERROR_DEPTHLIMIT)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the regular expression is too costly for names like %.60s: avoid "
		        "repetitions inside repetitions",
		        name.ptr);
	*ret_has = result >= 0;
	return TW_OK;
}
