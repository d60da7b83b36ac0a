#include "server/base/file/settings_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "decoder/base/buf.h"
#include "server/base/file/io.h"

enum { PATH_BYTES = 1520, TEXT_MAX = 16 << 10 };

static enum tw_status write_file(const char *path, const struct tw_buf *text, struct tw_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && tw_write_all(fd, text->data, text->len) && fsync(fd) == 0;
	enum tw_status st =
	        ok ? TW_OK : tw_fail_errno(err, TW_IO, "%.120s cannot be written", path);

	if (fd >= 0)
		(void)close(fd);
	return st;
}

enum tw_status tw_settings_record_write(const char *path, const char *comment,
        const struct tw_setting_line *lines, size_t n, struct tw_err *err)
{
	char fresh[PATH_BYTES];
	struct tw_buf text;
	enum tw_status st;

	if (!lines[0].value[0]) {
		(void)unlink(path);
		return TW_OK;
	}
	(void)snprintf(fresh, sizeof fresh, "%s.new", path);
	tw_buf_init(&text, TEXT_MAX);
	(void)tw_buf_printf(&text, "# %s\n", comment);
	for (size_t i = 0; i < n; i++)
		if (lines[i].value[0])
			(void)tw_buf_printf(&text, "%s = %s\n", lines[i].name, lines[i].value);
	st = tw_buf_status(&text) == TW_OK ? write_file(fresh, &text, err) : tw_oom(err);
	if (st == TW_OK && rename(fresh, path) != 0)
		st = tw_fail_errno(err, TW_IO, "%.120s cannot be renamed", fresh);
	tw_buf_done(&text);
	return st;
}
