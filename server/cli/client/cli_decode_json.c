#include "server/cli/client/cli_decode_json.h"

#include <string.h>

#include "server/cli/cli_out.h"

enum { LINE_BYTES = 256 << 20, MAX_FIELDS = 8 };

/* Fields after the event's name, in order: # a number, ! JSON. */
static const struct shape {
	const char *event;
	const char *fields[MAX_FIELDS];
} shapes[] = {
        {"slice", {"#tid", "#ts_ns", "#dur_ns", "name", "#cpu_ns"}},
        {"begin", {"#tid", "#ts_ns", "name", "#cpu_ns"}},
        {"end", {"#tid", "#ts_ns", "name", "#cpu_ns"}},
        {"end_all", {"#tid", "#ts_ns", "name", "#cpu_ns"}},
        {"thread", {"#tid", "name"}},
        {"clock", {"#pid", "#mono_ns", "#boot_ns", "#session_ns", "#some_ns"}},
        {"method", {"#id", "name"}},
        {"note", {"#tid", "#ts_ns", "#dur_ns", "kind", "#value", "text", "detail"}},
        {"process", {"#tid", "#pid"}},
        {"transaction", {"interface", "#code", "name"}},
        {"source", {"#tid", "source", "#interval_ns"}},
        {"repair", {"repair", "#count", "#offset"}},
        {"document", {"kind", "!json"}},
};

static const struct shape *shape_of(struct tw_str event)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (tw_str_eq(event, tw_str_of(shapes[i].event)))
			return &shapes[i];
	return NULL;
}

/* Numbers over 2^63 - 1 (ids) and non-numbers ("-") remain text. */
static void put_field(struct tw_json *j, const char *field, struct tw_str text)
{
	int64_t number;

	tw_json_key(j, field + (*field == '#' || *field == '!'));
	if (tw_str_starts(text, TW_STR("cpu ")) && *field == '#')
		text = tw_str_from(text, 4);
	if (*field == '!')
		tw_json_raw(j, text);
	else if (*field == '#' && tw_str_i64(text, &number))
		tw_json_int(j, number);
	else
		tw_json_str(j, text);
}

static enum tw_status put_line(struct tw_str line, struct tw_err *err)
{
	struct tw_str rest = line, event = tw_str_split(&rest, '\t');
	const struct shape *shape = shape_of(event);
	struct tw_cli_line out;
	struct tw_json *j = tw_cli_line(&out);

	tw_json_key_str(j, "event", event);
	for (size_t i = 0; shape && i < MAX_FIELDS && shape->fields[i] && rest.ptr; i++) {
		bool last = tw_str_find(rest, TW_STR("\t")) == rest.len;
		struct tw_str text;

		text = tw_str_split(&rest, '\t');
		if (strcmp(shape->fields[i], "#tid") == 0 &&
		        tw_str_find(text, TW_STR("/")) < text.len)
			put_field(j, "#pid", tw_str_split(&text, '/')); /* 4000/7 */
		put_field(j, shape->fields[i], text);
		if (last)
			break;
	}
	return tw_cli_line_put(&out, err);
}

void tw_decode_json_init(struct tw_decode_json *d)
{
	tw_buf_init(&d->line, LINE_BYTES);
}

void tw_decode_json_done(struct tw_decode_json *d)
{
	tw_buf_done(&d->line);
}

enum tw_status tw_decode_json_text(
        struct tw_decode_json *d, const char *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && n > 0) {
		const char *end = memchr(p, '\n', n);
		size_t take = end ? (size_t)(end - p) : n;

		if (tw_buf_add(&d->line, p, take) != TW_OK)
			st = tw_fail(err, TW_NOMEM, "a line of the response is too long");
		if (st == TW_OK && end) {
			st = put_line(
			        (struct tw_str){(const char *)d->line.data, d->line.len}, err);
			tw_buf_clear(&d->line);
			take++;
		}
		p += take;
		n -= take;
	}
	return st;
}
