#include "server/cli/cli_pipe.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { STEP = 64 << 10 };

static bool is_pipe(const char *path)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return true;
	return stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode));
}

static enum tw_status copy(FILE *from, FILE *to, struct tw_err *err)
{
	static char piece[STEP];
	size_t n;

	while ((n = fread(piece, 1, sizeof piece, from)) > 0)
		if (fwrite(piece, 1, n, to) != n)
			break;
	if (ferror(from))
		return tw_fail_errno(err, TW_IO, "cannot read it");
	if (ferror(to) || fflush(to) != 0)
		return tw_fail_errno(err, TW_IO, "cannot keep what came through a pipe");
	return TW_OK;
}

static enum tw_status keep(struct tw_pipes *s, const char *path, struct tw_err *err)
{
	FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	FILE *to = from ? tmpfile() : NULL;
	enum tw_status st;

	if (!to)
		st = tw_fail_errno(err, TW_IO, "cannot read it");
	else
		st = copy(from, to, err);
	if (from && from != stdin)
		(void)fclose(from);
	if (st == TW_OK)
		s->files[s->n++] = to;
	else if (to)
		(void)fclose(to);
	return st;
}

enum tw_status tw_pipes_path(struct tw_pipes *s, struct tw_arena *a, const char *path,
        const char **ret, struct tw_err *err)
{
	enum tw_status st;

	*ret = path;
	if (!is_pipe(path))
		return TW_OK;
	if (s->n == TW_PIPES_MAX)
		return tw_fail(err, TW_TOO_LARGE, "more than %d pipes at once", TW_PIPES_MAX);
	st = keep(s, path, err);
	if (st != TW_OK)
		return st;
	*ret = tw_arena_printf(a, "/proc/self/fd/%d", fileno(s->files[s->n - 1]));
	return *ret ? TW_OK : tw_oom(err);
}

void tw_pipes_done(struct tw_pipes *s)
{
	while (s->n > 0)
		(void)fclose(s->files[--s->n]);
}
