/* anr_fixture.c - one ANR report decoded, and its document; see anr_fixture.h. */
#include "tests/unit/anr_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

struct anr_report anr_read(const char *text, size_t n, const struct tw_limits *limits)
{
	struct anr_report r = {.doc = NULL};
	const char *at;

	event_log_run(&r.log, text, n, 0, limits);
	assert_int_equal(tw_buf_add_u8(&r.log.names, 0), TW_OK);
	r.log.names.len--;
	at = strstr((const char *)r.log.names.data, "document anr ");
	if (at)
		r.doc = json_loads(at + 13, JSON_DISABLE_EOF_CHECK, NULL);
	assert_int_equal(!at, !r.doc);
	return r;
}

struct anr_report anr_read_text(const char *text)
{
	struct anr_report r = anr_read(text, strlen(text), NULL);

	if (r.log.status != TW_OK)
		fail_msg("%s", r.log.err.msg);
	assert_string_equal(r.log.format->name, "anr");
	assert_non_null(r.doc);
	return r;
}

void anr_done(struct anr_report *r)
{
	event_log_done(&r->log);
	json_decref(r->doc);
}

const char *anr_word(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "(none)";
}

json_int_t anr_number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? json_integer_value(v) : -1;
}

json_t *anr_process(const struct anr_report *r, size_t i)
{
	return json_array_get(json_object_get(r->doc, "processes"), i);
}

json_t *anr_thread(const struct anr_report *r, size_t i)
{
	return json_array_get(json_object_get(anr_process(r, 0), "threads"), i);
}

size_t anr_count(const json_t *o, const char *key)
{
	return json_array_size(json_object_get(o, key));
}
