#include "server/cli/cli_line.h"

#include <stdio.h>

/* `decode` prints the longest lines. */
enum { LINE_BYTES = 512 << 20 };

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
		st = tw_fail(err, TW_NOMEM, "a line of the answer is too long");
	else if (fwrite(l->text.data, 1, l->text.len, stdout) != l->text.len)
		st = tw_fail(err, TW_IO, "standard output cannot be written");
	tw_buf_done(&l->text);
	return st;
}

enum tw_status tw_cli_line_end(struct tw_cli_line *l, struct tw_err *err)
{
	enum tw_status st = tw_cli_line_put(l, err);

	if (st == TW_OK && fflush(stdout) != 0)
		st = tw_fail(err, TW_IO, "standard output cannot be written");
	return st;
}
