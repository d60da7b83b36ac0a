#include "server/storage/s3/s3_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/str.h"
#include "server/base/file/io.h"

enum { FILE_MAX = 16 << 10 };

static bool copy_value(struct tw_str value, char *out, size_t cap)
{
	if (value.len >= cap)
		return false;
	if (value.len)
		memcpy(out, value.ptr, value.len);
	out[value.len] = '\0';
	return true;
}

static enum tw_status from_environment(struct tw_s3_key *key, struct tw_err *err)
{
	const char *id = getenv("AWS_ACCESS_KEY_ID");
	const char *secret = getenv("AWS_SECRET_ACCESS_KEY");
	const char *token = getenv("AWS_SESSION_TOKEN");

	if (!id || !*id || !secret || !*secret)
		return tw_fail(err, TW_BAD_REQUEST,
		        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the keys of the store");
	if (!copy_value(tw_str_of(id), key->id, sizeof key->id) ||
	        !copy_value(tw_str_of(secret), key->secret, sizeof key->secret) ||
	        !copy_value(tw_str_of(token ? token : ""), key->token, sizeof key->token))
		return tw_fail(err, TW_BAD_REQUEST, "the store's secret is too long");
	return TW_OK;
}

/* Reads the first section. */
static enum tw_status parse(struct tw_str text, struct tw_s3_key *ret, struct tw_err *err)
{
	unsigned sections = 0;
	bool fits = true;

	while (text.len) {
		struct tw_str value = tw_str_trim(tw_str_split(&text, '\n'));
		struct tw_str name;

		sections += value.len && value.ptr[0] == '[';
		if (sections > 1)
			break;
		name = tw_str_trim(tw_str_split(&value, '='));
		value = tw_str_trim(value);
		if (tw_str_eq(name, TW_STR("aws_access_key_id")))
			fits = fits && copy_value(value, ret->id, sizeof ret->id);
		else if (tw_str_eq(name, TW_STR("aws_secret_access_key")))
			fits = fits && copy_value(value, ret->secret, sizeof ret->secret);
		else if (tw_str_eq(name, TW_STR("aws_session_token")))
			fits = fits && copy_value(value, ret->token, sizeof ret->token);
	}
	if (fits && ret->id[0] && ret->secret[0])
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "the file of the store's key needs lines aws_access_key_id = and "
	        "aws_secret_access_key =");
}

static enum tw_status read_file(const char *file, int fd, struct tw_s3_key *ret, struct tw_err *err)
{
	char text[FILE_MAX];
	const ssize_t n = tw_read_full(fd, text, sizeof text);
	enum tw_status st;

	if (n < 0)
		st = tw_fail(err, TW_IO, "%.120s cannot be read", file);
	else
		st = parse((struct tw_str){text, (size_t)n}, ret, err);
	explicit_bzero(text, sizeof text);
	return st;
}

enum tw_status tw_s3_key_read(const char *file, struct tw_s3_key *key, struct tw_err *err)
{
	struct tw_s3_key new_key = {.id = ""};
	struct stat s;
	enum tw_status st = TW_OK;
	int fd;

	if (!file[0])
		return key->id[0] ? TW_OK : from_environment(key, err);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &s) != 0)
		st = tw_fail_errno(err, TW_BAD_REQUEST,
		        "the file of the store's key, %.100s, cannot be read", file);
	else
		new_key.read_ns =
		        (int64_t)s.st_mtim.tv_sec * 1000000000 + (int64_t)s.st_mtim.tv_nsec + 1;
	if (st == TW_OK && new_key.read_ns != key->read_ns) {
		st = read_file(file, fd, &new_key, err);
		if (st == TW_OK)
			*key = new_key;
	}
	if (fd >= 0)
		(void)close(fd);
	explicit_bzero(&new_key, sizeof new_key);
	return st == TW_OK || !key->id[0] ? st
	                                  : TW_OK; /* half written: copy_value the previous key */
}
