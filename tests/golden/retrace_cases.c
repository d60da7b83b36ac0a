/*
 * retrace_cases.c - stacks as text and their originals: every file of a folder is a case.
 *
 *   retrace_cases FOLDER
 *
 * A file has a sentence, then three sections that begin with lines of their own: "--- mapping" an
 * R8 mapping.txt, "--- stack" a stack as Java prints it, "--- frames" the same with original names.
 * Alternatives follow each other, the later ones with "or" for "at".  The cases cover those of R8's
 * own retrace tests, except those without a counterpart: class names inside the text of a message
 * and prefixes of log lines (no format has them), and a missing line (an error of R8's interface).
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/symbols/retrace.h"

enum { MAX_FILE = 1 << 20, FRAMES = 64 };

static const struct tw_str newline = {"\n", 1};

/* --- one line of a stack --- */

static void put(struct tw_buf *out, struct tw_str s)
{
	(void)tw_buf_add_str(out, s);
}

static struct tw_str blanks(struct tw_str line)
{
	size_t n = 0;

	while (n < line.len && (line.ptr[n] == ' ' || line.ptr[n] == '\t'))
		n++;
	return (struct tw_str){line.ptr, n};
}

static void put_frame(struct tw_buf *out, struct tw_str before, const struct tw_retraced *f,
        struct tw_str module, struct tw_str seen)
{
	struct tw_retrace_file file = tw_retrace_file(f, seen);
	size_t from = out->len;
	struct tw_str text;

	put(out, before);
	put(out, f->alternative ? TW_STR("or ") : TW_STR("at "));
	put(out, module);
	put(out, f->class_name);
	put(out, TW_STR("."));
	put(out, f->method);
	put(out, TW_STR("("));
	put(out, file.name);
	put(out, file.extension);
	if (f->line)
		(void)tw_buf_printf(out, ":%u", f->line);
	put(out, TW_STR(")\n"));
	/* overloads look the same */
	text = (struct tw_str){(const char *)out->data + from, out->len - from};
	if (f->alternative && f->line == 0 && from >= text.len &&
	        memcmp(text.ptr + before.len + 2, text.ptr - text.len + before.len + 2,
	                text.len - before.len - 2) == 0)
		out->len = from;
}

/* "at [module/]a.b.m(File:12)": false when it is none. */
static bool split_frame(struct tw_str line, struct tw_str *ret_module, struct tw_retrace_at *ret,
        struct tw_str *ret_file)
{
	struct tw_str text = tw_str_trim(line);
	struct tw_str name;
	struct tw_str where;
	uint64_t number = 0;
	size_t slash;
	size_t dot;
	size_t colon;

	if (!tw_str_starts(text, TW_STR("at ")) || text.ptr[text.len - 1] != ')')
		return false;
	where = tw_str_from(text, 3);
	name = tw_str_split(&where, '(');
	where.len--;
	slash = tw_str_find_last(name, TW_STR("/"));
	*ret_module = (struct tw_str){name.ptr, slash < name.len ? slash + 1 : 0};
	name = tw_str_from(name, ret_module->len);
	dot = tw_str_find_last(name, TW_STR("."));
	if (dot == name.len)
		return false;
	colon = tw_str_find_last(where, TW_STR(":"));
	*ret_file = (struct tw_str){where.ptr, colon};
	if (colon < where.len)
		(void)tw_str_u64(tw_str_from(where, colon + 1), UINT32_MAX, &number);
	*ret = (struct tw_retrace_at){
	        {name.ptr, dot}, tw_str_from(name, dot + 1), (uint32_t)number};
	return true;
}

/* "Caused by: a.b: why": the class is named, and thrown. */
static void other_line(struct tw_buf *out, struct tw_retrace_walk *walk, struct tw_str line)
{
	static const char *const heads[] = {
	        "Caused by: ", "Suppressed: ", "[CIRCULAR REFERENCE: ", "Exception in thread "};
	struct tw_str before = blanks(line);
	struct tw_str rest = tw_str_from(line, before.len);
	struct tw_str original;
	size_t end = 0;

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (tw_str_starts(rest, tw_str_of(heads[i])))
			before.len += strlen(heads[i]);
	rest = tw_str_from(line, before.len);
	if (rest.len && rest.ptr[0] == '"') { /* the thread's name */
		before.len += tw_str_find(rest, TW_STR("\" ")) + 2;
		rest = tw_str_from(line, before.len);
	}
	while (end < rest.len && !strchr(":] \t", rest.ptr[end]))
		end++;
	walk->thrown = (struct tw_str){rest.ptr, end};
	if (!tw_retrace_class(walk->r, walk->thrown, &original))
		original = walk->thrown;
	put(out, before);
	put(out, original);
	put(out, tw_str_from(rest, end));
	put(out, newline);
}

static void retrace_line(struct tw_buf *out, struct tw_retrace_walk *walk, struct tw_str line)
{
	struct tw_retraced f[FRAMES];
	struct tw_retrace_at at;
	struct tw_str module;
	struct tw_str file;
	bool known;
	size_t n;

	if (!split_frame(line, &module, &at, &file)) {
		other_line(out, walk, line);
		return;
	}
	n = tw_retrace_next(walk, &at, f, FRAMES, &known);
	for (size_t i = 0; i < n; i++)
		put_frame(out, blanks(line), &f[i], module, file);
	if (!known) {
		put(out, line);
		put(out, newline);
	}
}

/* --- one case --- */

static enum tw_status compile(struct tw_str mapping, struct tw_buf *image, struct tw_err *err)
{
	struct tw_retrace_writer *w = tw_retrace_writer_new(MAX_FILE);
	struct tw_retrace_stats stats;
	enum tw_status st =
	        w ? tw_retrace_writer_push(w, (const uint8_t *)mapping.ptr, mapping.len, err)
	          : TW_NOMEM;

	if (st == TW_OK)
		st = tw_retrace_writer_finish(w, image, &stats, err);
	tw_retrace_writer_free(w);
	return st;
}

/* Splits *text after the line "--- name". */
static bool section(struct tw_str *text, const char *name, struct tw_str *ret_before)
{
	char line[32];
	size_t at;

	(void)snprintf(line, sizeof line, "\n--- %s\n", name);
	at = tw_str_find(*text, tw_str_of(line));
	if (at == text->len)
		return false;
	*ret_before = (struct tw_str){text->ptr, at + 1};
	*text = tw_str_from(*text, at + strlen(line));
	return true;
}

static bool run(const char *path, struct tw_str text)
{
	struct tw_str sentence;
	struct tw_str mapping;
	struct tw_str stack;
	struct tw_retrace r;
	struct tw_retrace_walk walk = {.r = &r};
	struct tw_buf image;
	struct tw_buf got;
	struct tw_err err = {.code = TW_OK};
	bool same = false;

	tw_buf_init(&image, SIZE_MAX / 2);
	tw_buf_init(&got, MAX_FILE);
	if (!section(&text, "mapping", &sentence) || !section(&text, "stack", &mapping) ||
	        !section(&text, "frames", &stack) || compile(mapping, &image, &err) != TW_OK ||
	        tw_retrace_open(image.data, image.len, &r, &err) != TW_OK) {
		(void)printf("%s: %s\n", path, err.code ? err.msg : "a section is missing");
	} else {
		while (stack.len)
			retrace_line(&got, &walk, tw_str_split(&stack, '\n'));
		same = tw_str_eq(text, (struct tw_str){(const char *)got.data, got.len});
		if (!same)
			(void)printf("%s differs:\n--- expected\n%.*s--- got\n%.*s", path,
			        (int)text.len, text.ptr, (int)got.len, (const char *)got.data);
	}
	tw_buf_done(&image);
	tw_buf_done(&got);
	return same;
}

static bool run_file(const char *path)
{
	static char text[MAX_FILE];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;

	if (f)
		(void)fclose(f);
	return run(path, (struct tw_str){text, n});
}

static int is_case(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	struct dirent **files = NULL;
	int n = argc == 2 ? scandir(argv[1], &files, is_case, alphasort) : -1;
	int bad = 0;

	for (int i = 0; i < n; i++) {
		char path[4096];

		(void)snprintf(path, sizeof path, "%s/%s", argv[1], files[i]->d_name);
		bad += !run_file(path);
		free(files[i]);
	}
	free(files);
	(void)printf("%d of %d cases as expected\n", n < 0 ? 0 : n - bad, n);
	return n <= 0 || bad;
}
