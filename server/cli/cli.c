#include "server/cli/cli.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/lookup.h"
#include "decoder/base/str.h"
#include "server/base/text/find.h"

enum { NAME_BYTES = 64, COLUMNS = 80, SHOWN = 80 /* bytes of an invalid value */ };

static bool helped;

bool tw_cli_helped(void)
{
	return helped;
}

/* Prints one line; an argument may contain any bytes. */
static void print_line(FILE *to, const char *text)
{
	for (; *text; text++)
		(void)fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
	(void)fputc('\n', to);
}

/* --- texts of cli.def --- */

static const struct text {
	const char *command, *synopsis, *summary, *about;
} texts[] = {
#define COMMAND(name, synopsis, summary, about) {#name, synopsis, summary, about},
#include "server/cli/cli.def"
#undef COMMAND
};

/* Prints the text in lines of COLUMNS, broken at spaces outside brackets, without the marks of
 * Markdown.  `column`: where the first line begins; `indent`: of the others. */
static void print_wrapped(FILE *to, const char *text, size_t column, size_t indent)
{
	char line[4096];
	size_t len = 0;

	for (; *text && len + 1 < sizeof line; text++)
		if (strncmp(text, "](", 2) == 0)
			text += strcspn(text, ")");
		else if (*text != '`' && !(*text == '[' && strstr(text, "](")))
			line[len++] = *text;
	line[len] = '\0';
	for (const char *word = line; *word;) {
		size_t n = 0;

		for (int depth = 0; word[n] && (depth || word[n] != ' '); n++)
			depth += (word[n] == '[') - (word[n] == ']');
		if (word > line && column + 1 + n > COLUMNS) {
			(void)fprintf(to, "\n%*s", (int)indent, "");
			column = indent;
		} else if (word > line) {
			(void)fputc(' ', to);
			column++;
		}
		(void)fprintf(to, "%.*s", (int)n, word);
		column += n;
		word += n + (word[n] == ' ');
	}
	(void)fputc('\n', to);
}

static const struct text *print_usage(FILE *to, const char *command)
{
	static const char usage[] = "usage: tracewell ";
	const struct text *of =
	        TW_LOOKUP(texts, sizeof texts / sizeof *texts, command, tw_str_of(command));

	(void)fputs(usage, to);
	print_wrapped(to, of ? of->synopsis : command, sizeof usage - 1, 7);
	return of;
}

static void print_help(const char *command)
{
	const struct text *of = print_usage(stdout, command);

	if (!of)
		return;
	(void)printf("\n%c%s.\n", toupper(of->summary[0]), of->summary + 1);
	print_wrapped(stdout, of->about, 0, 0);
}

static void __attribute__((format(printf, 3, 0)))
misused(const char *command, const char *verb, const char *fmt, va_list ap)
{
	char text[1024];

	(void)vsnprintf(text, sizeof text, fmt, ap);
	(void)fprintf(stderr, "tracewell %s%s%s: ", command, verb ? " " : "", verb ? verb : "");
	print_line(stderr, text);
	(void)print_usage(stderr, command);
}

int tw_cli_misused(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	misused(command, NULL, fmt, ap);
	va_end(ap);
	return TW_EXIT_USAGE;
}

/* --- one invocation --- */

struct reading {
	const struct tw_usage *usage;
	const char *command;
	const struct tw_verb *verb; /* NULL: the command has none, or it was not read yet */
};

__attribute__((format(printf, 2, 3))) static int refuse(
        const struct reading *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	misused(r->command, r->verb ? r->verb->word : NULL, fmt, ap);
	va_end(ap);
	return -1;
}

static const struct tw_flag *find(const struct tw_usage *u, const char *name, size_t len)
{
	for (size_t i = 0; i < u->n_flags; i++)
		if (strlen(u->flags[i].name) == len && memcmp(u->flags[i].name, name, len) == 0)
			return &u->flags[i];
	return NULL;
}

/* "self, wall or cpu". */
static void list_choices(const char *const *words, char *out, size_t cap)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; words[i] && len < cap; i++)
		len += (size_t)snprintf(out + len, cap - len, "%s%s",
		        i == 0         ? ""
		        : words[i + 1] ? ", "
		                       : " or ",
		        words[i]);
}

static int refuse_unknown(const struct reading *r, const char *arg, size_t len)
{
	struct tw_near_match near = {NULL, 0};
	char word[NAME_BYTES];

	(void)snprintf(word, sizeof word, "%.*s", len > 2 ? (int)len - 2 : 0, arg + 2);
	for (size_t i = 0; i < r->usage->n_flags && strncmp(arg, "--", 2) == 0; i++)
		tw_near_match_try(&near, word, r->usage->flags[i].name);
	return refuse(r, "unknown flag %.*s%s%s%s", len < SHOWN ? (int)len : SHOWN, arg,
	        near.best ? "; did you mean --" : "", near.best ? near.best : "",
	        near.best ? "?" : "");
}

/* --- values --- */

static int check_choice(const struct reading *r, const struct tw_flag *f, const char *value)
{
	char words[512];

	for (unsigned i = 0; f->choices[i]; i++)
		if (strcmp(f->choices[i], value) == 0) {
			if (f->choice)
				*f->choice = i;
			return 0;
		}
	list_choices(f->choices, words, sizeof words);
	return refuse(r, "--%s must be %s, not \"%.*s\"", f->name, words, SHOWN, value);
}

static int check_number(const struct reading *r, const struct tw_flag *f, const char *value)
{
	uint64_t n;

	if (!tw_str_u64(tw_str_of(value), f->most, &n) || n < f->least)
		return refuse(r,
		        "--%s must be a number from %" PRIu64 " to %" PRIu64 ", not \"%.*s\"",
		        f->name, f->least, f->most, SHOWN, value);
	*f->number = n;
	return 0;
}

static int set(const struct reading *r, const struct tw_flag *f, const char *value)
{
	if (f->list && *f->n == f->max)
		return refuse(r, "--%s may be given at most %zu times", f->name, f->max);
	if (f->choices && check_choice(r, f, value) < 0)
		return -1;
	if (f->number && check_number(r, f, value) < 0)
		return -1;
	if (f->fits && !f->fits(value))
		return refuse(r, "--%s must be %s, not \"%.*s\"", f->name, f->form, SHOWN, value);
	if (f->value)
		*f->value = value;
	if (f->list)
		f->list[(*f->n)++] = value;
	return 0;
}

/* A flag without a value, or with one after "=". */
static int read_switch(const struct reading *r, const struct tw_flag *f, const char *equals)
{
	if (equals && !f->value)
		return refuse(r, "--%s takes no value", f->name);
	if (equals && set(r, f, equals + 1) < 0)
		return -1;
	*f->on = true;
	return 1;
}

/* Reads the flag at argv[0]; returns the number of arguments it used, or -1. */
static int read_flag(const struct reading *r, int left, char **argv)
{
	const char *arg = argv[0];
	const char *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct tw_flag *f =
	        strncmp(arg, "--", 2) == 0 ? find(r->usage, arg + 2, len - 2) : NULL;

	if (!f)
		return refuse_unknown(r, arg, len);
	if (f->on)
		return read_switch(r, f, equals);
	if (!equals && left < 2)
		return refuse(r, "--%s needs a value", f->name);
	if (set(r, f, equals ? equals + 1 : argv[1]) < 0)
		return -1;
	return equals ? 1 : 2;
}

/* --- the commands --- */

static int read_verb(struct reading *r, int n, char **argv)
{
	const struct tw_verb *verbs = r->usage->verbs;
	const char *words[16];
	char list[256];
	size_t i;

	for (i = 0; verbs[i].word && i + 1 < sizeof words / sizeof *words; i++) {
		words[i] = verbs[i].word;
		if (n > 0 && strcmp(verbs[i].word, argv[1]) == 0)
			r->verb = &verbs[i];
	}
	words[i] = NULL;
	if (r->verb)
		return 0;
	list_choices(words, list, sizeof list);
	if (n > 0)
		return refuse(r, "\"%.*s\" is unknown: use %s", SHOWN, argv[1], list);
	return refuse(r, "specify an action: %s", list);
}

/* Checks the arguments from argv[at] on. */
static int check_arguments(const struct reading *r, int n, int at, char **argv)
{
	struct tw_str rest = tw_str_of(r->verb ? r->verb->arguments : r->usage->arguments);

	while (rest.len) {
		struct tw_str name = tw_str_split(&rest, ' ');
		bool is_optional = name.ptr[0] == '[';
		bool repeats = tw_str_find(name, TW_STR("...")) < name.len;

		if (at > n && !is_optional)
			return refuse(r, "%.*s is missing",
			        (int)(repeats ? name.len - 3 : name.len), name.ptr);
		at = repeats && at <= n ? n + 1 : at + 1;
	}
	if (at <= n)
		return refuse(r, "unexpected argument \"%.*s\"", SHOWN, argv[at]);
	return 0;
}

/* Whether `names`, separated by spaces, contains the name. */
static bool has_name(const char *names, const char *name)
{
	struct tw_str rest = tw_str_of(names ? names : "");

	while (rest.len)
		if (tw_str_eq(tw_str_split(&rest, ' '), tw_str_of(name)))
			return true;
	return false;
}

static bool is_given(const struct tw_flag *f)
{
	return f->list ? *f->n > 0 : f->value && *f->value && **f->value;
}

/* A missing flag may be set by the environment. */
static int check_flags(const struct reading *r)
{
	for (size_t i = 0; i < r->usage->n_flags; i++) {
		const struct tw_flag *f = &r->usage->flags[i];
		const char *value = f->env && f->value && !*f->value ? getenv(f->env) : NULL;

		if (value && *value && set(r, f, value) < 0)
			return -1;
		if (is_given(f) || (!f->needed && !(r->verb && has_name(r->verb->needs, f->name))))
			continue;
		return f->env ? refuse(r, "--%s or %s in the environment is missing", f->name,
		                        f->env)
		              : refuse(r, "--%s is missing", f->name);
	}
	return 0;
}

int tw_cli_flags(const struct tw_usage *usage, int argc, char **argv)
{
	struct reading r = {.usage = usage, .command = argv[0]};
	int kept = 1;
	bool only_arguments = false;

	for (int i = 1, took; i < argc; i += took) {
		took = 1;
		if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[kept++] = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			only_arguments = true;
		} else if (strcmp(argv[i], "--help") == 0) {
			print_help(argv[0]);
			helped = true;
			return -1;
		} else {
			took = read_flag(&r, argc - i, argv + i);
			if (took < 0)
				return -1;
		}
	}
	if (usage->verbs && read_verb(&r, kept - 1, argv) < 0)
		return -1;
	if (check_arguments(&r, kept - 1, r.verb ? 2 : 1, argv) < 0 || check_flags(&r) < 0)
		return -1;
	return kept - 1;
}

int tw_cli_failed(const char *command, const struct tw_err *err)
{
	(void)fprintf(stderr, "tracewell %s: %s\n", command, err->msg);
	return err->code == TW_BAD_REQUEST ? TW_EXIT_USAGE : TW_EXIT_FAILED;
}
