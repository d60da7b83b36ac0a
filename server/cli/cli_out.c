#include "server/cli/cli_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/file/io.h"
#include "server/cli/cli_term.h"

enum { PIECE_BYTES = 256 << 10 };

static enum tw_status copy_out(int fd, tw_cli_pull_fn pull, void *arg, struct tw_err *err)
{
	uint8_t *piece = tw_mem_alloc(PIECE_BYTES, 1);
	enum tw_status st = piece ? TW_OK : tw_oom(err);
	struct tw_progress bar = tw_progress_of("writing");
	uint64_t bytes = 0;
	size_t n = 1;

	while (st == TW_OK && n > 0) {
		st = pull(arg, piece, PIECE_BYTES, &n, err);
		if (st == TW_OK)
			st = tw_write_all(fd, piece, n)
			             ? TW_OK
			             : tw_fail_errno(err, errno == ENOSPC ? TW_FULL : TW_IO,
			                       "the output cannot be written");
		tw_progress_at(&bar, 0, bytes += n);
	}
	tw_progress_clear(&bar);
	tw_mem_free(piece);
	return st;
}

enum tw_status tw_cli_write_out(
        const char *path, tw_cli_pull_fn pull, void *arg, struct tw_err *err)
{
	bool to_stdout = strcmp(path, "-") == 0;
	int fd = to_stdout ? dup(1) : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	enum tw_status st;

	if (fd < 0)
		return tw_fail_errno(err, TW_IO, "%.120s cannot be written", path);
	st = copy_out(fd, pull, arg, err);
	if (close(fd) != 0 && st == TW_OK)
		st = tw_fail(err, TW_IO, "%.120s cannot be written", path);
	if (st != TW_OK && !to_stdout)
		(void)unlink(path);
	return st;
}

void tw_cli_long_output(int argc, char **argv)
{
	static char output[] = "--output";

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-o") == 0)
			argv[i] = output;
}

/* `decode` prints the longest lines. */
enum { LINE_BYTES = 512 << 20 };

const char *tw_cli_time(int64_t ms, char out[TW_CLI_TIME_BYTES])
{
	const time_t s = (time_t)(ms / 1000);
	struct tm tm;

	if (ms == 0 || !gmtime_r(&s, &tm) ||
	        strftime(out, TW_CLI_TIME_BYTES, "%Y-%m-%dT%H:%MZ", &tm) == 0)
		(void)snprintf(out, TW_CLI_TIME_BYTES, "-");
	return out;
}

struct tw_json *tw_cli_line(struct tw_cli_line *l)
{
	tw_buf_init(&l->text, LINE_BYTES);
	l->json = tw_json_to(&l->text);
	tw_json_open(&l->json, '{');
	return &l->json;
}

enum tw_status tw_cli_line_put(struct tw_cli_line *l, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	tw_json_close(&l->json, '}');
	(void)tw_buf_add_u8(&l->text, '\n');
	if (tw_buf_status(&l->text) != TW_OK)
		st = tw_fail(err, TW_NOMEM, "out of memory for a line of output");
	else if (fwrite(l->text.data, 1, l->text.len, stdout) != l->text.len)
		st = tw_fail(err, TW_IO, "the output cannot be written");
	tw_buf_done(&l->text);
	return st;
}

enum tw_status tw_cli_line_end(struct tw_cli_line *l, struct tw_err *err)
{
	enum tw_status st = tw_cli_line_put(l, err);

	if (st == TW_OK && fflush(stdout) != 0)
		st = tw_fail(err, TW_IO, "the output cannot be written");
	return st;
}
