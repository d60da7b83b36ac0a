#include "server/base/text/members.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/str.h"

enum tw_status tw_enum_of_name(const char *name, const char *text, const char *const *names,
        unsigned *ret, struct tw_err *err)
{
	char all[160] = "";
	size_t len = 0;

	for (unsigned i = 0; names[i]; i++) {
		const char *before = i == 0 ? "" : names[i + 1] ? ", " : " or ";
		int n = snprintf(all + len, sizeof all - len, "%s%s", before, names[i]);

		if (strcmp(names[i], text) == 0) {
			*ret = i;
			return TW_OK;
		}
		if (n > 0 && (size_t)n < sizeof all - len)
			len += (size_t)n;
	}
	return tw_fail(err, TW_BAD_REQUEST, "%s must be %s, not %.60s", name, all, text);
}

static bool is_control(char c, bool lines)
{
	if (lines && (c == '\n' || c == '\t'))
		return false;
	return (unsigned char)c < ' ' || c == 0x7f;
}

enum tw_status tw_member_text(const json_t *o, const char *name, size_t max, bool lines,
        const char **ret, struct tw_err *err)
{
	const char *text = json_string_value(json_object_get(o, name));
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a text", name);
	if (len > max)
		return tw_fail(err, TW_BAD_REQUEST, "%s has %zu bytes; at most %zu are stored",
		        name, len, max);
	for (size_t i = 0; i < len; i++)
		if (is_control(text[i], lines))
			return tw_fail(err, TW_BAD_REQUEST,
			        "%s contains a control character at byte %zu", name, i);
	*ret = text;
	return TW_OK;
}

static enum tw_status fail_form(const struct tw_member *m, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST, "%s must be %s", m->name, m->form);
}

static enum tw_status read_text(
        const json_t *o, const struct tw_member *m, const char **ret, struct tw_err *err)
{
	const char *text = "";
	enum tw_status st =
	        tw_member_text(o, m->name, (size_t)m->max, m->kind == TW_MEMBER_LINES, &text, err);
	const bool wrong = st != TW_OK || (int64_t)strlen(text) < m->min ||
	                   (text[0] && m->fits && !m->fits(text));

	if (wrong && m->form)
		return fail_form(m, err);
	if (st == TW_OK)
		*ret = text;
	return st;
}

static enum tw_status read_number(
        const struct tw_member *m, const json_t *at, void *to, struct tw_err *err)
{
	const int64_t v = json_integer_value(at);

	if (!json_is_integer(at) || v < m->min || v > m->max) {
		if (m->form)
			return fail_form(m, err);
		return m->max == INT64_MAX ? tw_fail(err, TW_BAD_REQUEST,
		                                     "%s must be a whole number, %lld or more",
		                                     m->name, (long long)m->min)
		                           : tw_fail(err, TW_BAD_REQUEST,
		                                     "%s must be a whole number from %lld to %lld",
		                                     m->name, (long long)m->min, (long long)m->max);
	}
	if (m->bytes == sizeof(int64_t))
		*(int64_t *)to = v;
	else
		*(uint32_t *)to = (uint32_t)v;
	return TW_OK;
}

static enum tw_status read_real(
        const struct tw_member *m, const json_t *at, double *ret, struct tw_err *err)
{
	const double v = json_number_value(at); /* JSON has no infinity */

	if (!json_is_number(at) || v < (double)m->min || v > (double)m->max)
		return m->form ? fail_form(m, err)
		               : tw_fail(err, TW_BAD_REQUEST,
		                         "%s must be a number from %lld to %lld", m->name,
		                         (long long)m->min, (long long)m->max);
	*ret = v;
	return TW_OK;
}

static enum tw_status check_texts(const struct tw_member *m, const json_t *list, struct tw_err *err)
{
	const int64_t n = (int64_t)json_array_size(list);
	const json_t *one;
	size_t i;

	if (!json_is_array(list) || n < m->min || n > m->max)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a list of %lld to %lld texts",
		        m->name, (long long)m->min, (long long)m->max);
	json_array_foreach(list, i, one)
	{
		if (!json_is_string(one) || (m->fits && !m->fits(json_string_value(one))))
			return tw_fail(
			        err, TW_BAD_REQUEST, "each of %s must be %s", m->name, m->form);
	}
	return TW_OK;
}

static enum tw_status read_one(
        const json_t *o, const struct tw_member *m, void *to, struct tw_err *err)
{
	const json_t *at = json_object_get(o, m->name);
	const char *text = json_string_value(at);

	switch (m->kind) {
	case TW_MEMBER_TEXT:
	case TW_MEMBER_LINES:
		return read_text(o, m, to, err);
	case TW_MEMBER_FLAG:
		if (!json_is_boolean(at))
			return tw_fail(err, TW_BAD_REQUEST, "%s must be true or false", m->name);
		*(bool *)to = json_is_true(at);
		return TW_OK;
	case TW_MEMBER_NUMBER:
		return read_number(m, at, to, err);
	case TW_MEMBER_REAL:
		return read_real(m, at, to, err);
	case TW_MEMBER_ENUM:
		return tw_enum_of_name(m->name, text ? text : "", m->enum_names, to, err);
	case TW_MEMBER_TEXTS:
		*(const json_t **)to = at;
		return check_texts(m, at, err);
	case TW_MEMBER_OBJECT:
		*(const json_t **)to = at;
		return json_is_object(at)
		               ? TW_OK
		               : tw_fail(err, TW_BAD_REQUEST, "%s must be an object", m->name);
	case TW_MEMBER_OTHER:
		break;
	}
	return TW_OK;
}

enum tw_status tw_members_read(
        const json_t *o, const struct tw_member *of, void *io, struct tw_err *err)
{
	union {
		int64_t number;
		double real;
		const void *pointer;
	} unused;
	enum tw_status st = TW_OK;

	for (; st == TW_OK && of->name; of++) {
		const json_t *at = json_object_get(o, of->name);

		if ((at || of->required) && !(of->or_null && json_is_null(at)))
			st = read_one(o, of, io ? (void *)((char *)io + of->offset) : &unused, err);
	}
	return st;
}

/* "a, b and c"; returns how many of them the object has. */
static size_t list_known(const json_t *o, const struct tw_member *of, char *list, size_t cap)
{
	size_t known = 0, len = 0;

	list[0] = '\0';
	for (size_t i = 0; of[i].name; i++) {
		known += json_object_get(o, of[i].name) != NULL;
		len += (size_t)snprintf(list + len, len < cap ? cap - len : 0, "%s%s",
		        i == 0           ? ""
		        : of[i + 1].name ? ", "
		                         : " and ",
		        of[i].name);
	}
	return known;
}

enum tw_status tw_members_only(const json_t *o, const struct tw_member *of, size_t least,
        const char *before, const char *after, struct tw_err *err)
{
	char list[200];
	const size_t known = list_known(o, of, list, sizeof list);

	return known == json_object_size(o) && known >= least
	               ? TW_OK
	               : tw_fail(err, TW_BAD_REQUEST, "%s%s%s", before, list, after);
}

enum tw_status tw_members_known(const json_t *o, const struct tw_member *of, struct tw_err *err)
{
	char list[200], shown[41];
	const char *name;
	json_t *v;

	if (!json_is_object(o))
		return tw_fail(err, TW_BAD_REQUEST, "it must be an object");
	if (list_known(o, of, list, sizeof list) == json_object_size(o))
		return TW_OK;
	json_object_foreach((json_t *)(uintptr_t)o, name, v)
	{
		size_t i = 0;

		(void)v;
		while (of[i].name && strcmp(of[i].name, name) != 0)
			i++;
		if (!of[i].name)
			break;
	}
	(void)tw_utf8_clean(shown, sizeof shown, tw_str_of(name));
	return tw_fail(err, TW_BAD_REQUEST, "unknown member %s; the members are %s", shown, list);
}

enum tw_status tw_fail_within(enum tw_status st, struct tw_err *err, const char *fmt, ...)
{
	char why[sizeof err->msg], within[100];
	va_list args;

	if (st != TW_BAD_REQUEST || !err)
		return st;
	memcpy(why, err->msg, sizeof why);
	va_start(args, fmt);
	(void)vsnprintf(within, sizeof within, fmt, args);
	va_end(args);
	return tw_fail(err, st, "%s: %s", within, why);
}
