#include "server/cli/cli_address.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/str.h"
#include "server/base/file/io.h"

enum { PATH_BYTES = 1500 };

static bool path_of(const char *data, char out[PATH_BYTES])
{
	return snprintf(out, PATH_BYTES, "%s/server.url", data) < PATH_BYTES;
}

enum tw_status tw_cli_address_write(const char *data, const char *url, struct tw_err *err)
{
	char path[PATH_BYTES], text[TW_CLI_ADDRESS_BYTES];
	const int n = snprintf(text, sizeof text, "%s\n", url);

	if (!path_of(data, path) || n >= (int)sizeof text)
		return tw_fail(err, TW_BAD_REQUEST, "--data or --public-url is too long");
	return tw_file_replace(path, text, (size_t)n, err);
}

void tw_cli_address_read(const char *data, char ret[TW_CLI_ADDRESS_BYTES])
{
	char path[PATH_BYTES], text[TW_CLI_ADDRESS_BYTES];
	struct tw_str line;

	ret[0] = '\0';
	if (!path_of(data, path) || !tw_file_text(path, text, sizeof text))
		return;
	line = tw_str_trim(tw_str_of(text));
	if (tw_str_starts(line, tw_str_of("http://")) || tw_str_starts(line, tw_str_of("https://")))
		(void)snprintf(ret, TW_CLI_ADDRESS_BYTES, "%.*s", (int)line.len, line.ptr);
}
