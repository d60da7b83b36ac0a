#include "server/base/text/match.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <strings.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"

enum { METHOD_MAX_BYTES = 1 << 16 };
enum { TEXT_MAX = 512, STEPS_MAX = 20000, HEAP_MAX_KIB = 1024 };

struct tw_match {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	size_t len;
	bool parameters; /* compare those of methods, too */
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
		        "the search text is longer than %d bytes", TEXT_MAX);
	m = tw_mem_zalloc(1, sizeof *m);
	if (!m)
		return tw_oom(err);
	memcpy(m->text, text, len + 1);
	m->len = len;
	m->parameters = strstr(text, regex ? "\\(" : "(") != NULL;
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
		        "the regular expression is too costly for names like %.*s: avoid "
		        "repetitions inside repetitions",
		        (int)(name.len < 60 ? name.len : 60), name.ptr);
	*ret_has = result >= 0;
	return TW_OK;
}

/* --- parameters --- */

static const char *primitive(char letter)
{
	static const struct {
		char letter;
		const char *word;
	} all[] = {{'Z', "boolean"}, {'B', "byte"}, {'C', "char"}, {'S', "short"}, {'I', "int"},
	        {'J', "long"}, {'F', "float"}, {'D', "double"}, {'V', "void"}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].letter == letter)
			return all[i].word;
	return NULL;
}

/* Removes the first type from a descriptor and writes it as in Java; false: not a type. */
static bool put_type(struct tw_buf *b, struct tw_str *rest, bool packages)
{
	const char *word;
	size_t arrays = 0;
	size_t end;
	size_t name = 1;

	while (arrays < rest->len && rest->ptr[arrays] == '[')
		arrays++;
	*rest = tw_str_from(*rest, arrays);
	if (!rest->len)
		return false;
	word = primitive(rest->ptr[0]);
	end = word ? 0 : tw_str_find(*rest, TW_STR(";"));
	if (end >= rest->len || (!word && rest->ptr[0] != 'L'))
		return false;
	for (size_t i = 1; !packages && i < end; i++)
		if (rest->ptr[i] == '/')
			name = i + 1;
	if (word)
		(void)tw_buf_printf(b, "%s", word);
	for (size_t i = name; i < end; i++)
		(void)tw_buf_add_u8(b, (uint8_t)(rest->ptr[i] == '/' ? '.' : rest->ptr[i]));
	for (size_t i = 0; i < arrays; i++)
		(void)tw_buf_printf(b, "[]");
	*rest = tw_str_from(*rest, end + 1);
	return true;
}

/* "(Ljava/lang/String;I)V" as "(java.lang.String, int): void" or "(String, int): void"; otherwise
 * unchanged. */
static void put_signature(struct tw_buf *b, struct tw_str descriptor, bool packages)
{
	struct tw_str rest = tw_str_from(descriptor, 1);
	size_t begin = b->len;
	bool fits = descriptor.len > 0 && descriptor.ptr[0] == '(';

	(void)tw_buf_printf(b, "(");
	for (bool first = true; fits && rest.len && rest.ptr[0] != ')'; first = false) {
		(void)tw_buf_printf(b, first ? "" : ", ");
		fits = put_type(b, &rest, packages);
	}
	(void)tw_buf_printf(b, "): ");
	fits = fits && rest.len;
	if (fits)
		rest = tw_str_from(rest, 1);
	if (fits && put_type(b, &rest, packages) && !rest.len)
		return;
	b->len = begin < b->len ? begin : b->len;
	(void)tw_buf_add_str(b, descriptor);
}

bool tw_match_has_method(const struct tw_match *m, struct tw_str name, struct tw_str descriptor)
{
	struct tw_buf b;
	bool has = tw_match_has(m, name);

	if (has || !m->parameters || !descriptor.len)
		return has;
	tw_buf_init(&b, METHOD_MAX_BYTES);
	for (int form = 0; !has && form < 3; form++) {
		tw_buf_clear(&b);
		(void)tw_buf_add_str(&b, name);
		if (form < 2)
			put_signature(&b, descriptor, form == 0);
		else
			(void)tw_buf_add_str(&b, descriptor);
		has = tw_buf_status(&b) == TW_OK && tw_match_has(m, tw_buf_str(&b));
	}
	tw_buf_done(&b);
	return has;
}
