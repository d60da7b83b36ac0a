#include "tests/unit/catalogue_plan/plan_literals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/catalogue_plan/plan_postgres.h"

/* Statements of commands that attach a second catalogue or run on a stopped one.  They may read
 * complete tables. */
static bool is_of_commands(const char *sql)
{
	static const char *const parts[] = {
	        " temp.move", " main.", " src.", "catalogue_migration", "LOCK TABLE"};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(sql, parts[i]))
			return true;
	return false;
}

bool plan_is_statement(const char *sql)
{
	static const char *const verbs[] = {"SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "};

	sql += strncmp(sql, "/*{*/", 5) == 0 ? 5 : 0;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strncmp(sql, verbs[i], strlen(verbs[i])) == 0)
			return true;
	return false;
}

/* The longest part of a statement without places that are filled in when it runs. */
static void longest_part(const char *sql, char out[PLAN_SQL])
{
	size_t longest = 0;

	for (const char *p = sql; *p;) {
		const size_t n = strcspn(p, "{%");
		const char *end = p + n;

		if (n > longest && n < PLAN_SQL) {
			longest = n;
			(void)snprintf(out, PLAN_SQL, "%.*s", (int)n, p);
		}
		p = end + (*end == '{' ? strcspn(end, "}") : strcspn(end, "cdsu"));
		p += *p ? 1 : 0;
	}
}

static bool is_accounted(const struct plan_literals *l, const char *literal)
{
	static const char columns[] = "{columns}";
	const char *const at = strstr(literal, columns);
	const size_t n = strlen(literal);
	char text[PLAN_SQL] = "";

	if (is_of_commands(literal) || (!at && l->take(l->arg, literal)))
		return true;
	longest_part(literal, text);
	if (l->is_run(l->arg, text))
		return true;
	if (at)
		(void)snprintf(text, sizeof text, "%.*s*%s", (int)(at - literal), literal,
		        at + strlen(columns));
	if (at && l->take(l->arg, text))
		return true;
	/* the compiler moved it into the code, where an instruction follows its bytes */
	(void)snprintf(text, sizeof text, "%.*s", (int)n - 1, literal);
	return n < 64 && l->is_run(l->arg, text);
}

static size_t read_object(const struct plan_literals *l, const char *path, size_t *io_n)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0, bad = 0;
	ssize_t n;

	assert_non_null(f);
	while ((n = getdelim(&text, &room, '\0', f)) > 0) {
		if (!plan_is_statement(text) || n >= PLAN_SQL)
			continue;
		(*io_n)++;
		if (is_accounted(l, text))
			continue;
		print_message("neither run by the test nor accepted by an engine\n  %s\n", text);
		bad++;
	}
	free(text);
	(void)fclose(f);
	return bad;
}

size_t plan_read_literals(const struct plan_literals *l, size_t *ret_n)
{
	char program[1000], pattern[1200];
	const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	glob_t objects;
	size_t bad = 0;

	assert_true(n > 0);
	program[n] = '\0';
	*strrchr(program, '/') = '\0';
	(void)snprintf(pattern, sizeof pattern, "%s/../server/*.a.p/catalogue_*.o", program);
	assert_int_equal(glob(pattern, 0, NULL, &objects), 0);
	*ret_n = 0;
	for (size_t i = 0; i < objects.gl_pathc; i++)
		bad += read_object(l, objects.gl_pathv[i], ret_n);
	globfree(&objects);
	return bad;
}
