// metrics_help.c - adds HELP lines to the text of /metrics (metrics.h).
#include <string.h>

#include "server/http/metrics.h"

static const struct {
	const char *name, *help;
} table[] = {
#define METRIC(name, type, help) {#name, help},
#include "server/http/metrics.def"
#undef METRIC
};

static const char *help_of(struct tw_str name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (tw_str_eq(tw_str_of(table[i].name), name))
			return table[i].help;
	return NULL;
}

static void add_help(struct tw_str line, struct tw_buf *out)
{
	const struct tw_str type = TW_STR("# TYPE ");
	const char *help;
	struct tw_str name;

	if (!tw_str_starts(line, type))
		return;
	line = tw_str_from(line, type.len);
	name = tw_str_split(&line, ' ');
	help = help_of(name);
	if (help)
		tw_buf_printf(out, "# HELP %.*s %s\n", (int)name.len, name.ptr, help);
}

void tw_metrics_help(struct tw_str text, struct tw_buf *out)
{
	while (text.len) {
		struct tw_str line = tw_str_split(&text, '\n');

		add_help(line, out);
		(void)tw_buf_add_str(out, line);
		(void)tw_buf_add_u8(out, '\n');
	}
}
