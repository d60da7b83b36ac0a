#include "server/base/file/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include "server/base/file/io.h"

enum { PIECE_BYTES = 65536 };

void tw_sha256_bytes(struct tw_str bytes, uint8_t ret_hash[32])
{
	(void)gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.ptr, bytes.len, ret_hash);
}

void tw_sha256_hex(const uint8_t hash[32], char ret[TW_SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < 32; i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	ret[64] = '\0';
}

enum tw_status tw_sha256_begin(
        gnutls_digest_algorithm_t kind, gnutls_hash_hd_t *ret, struct tw_err *err)
{
	if (gnutls_hash_init(ret, kind) == 0)
		return TW_OK;
	*ret = NULL;
	return tw_oom(err);
}

static enum tw_status fail_read(const char *what, struct tw_err *err)
{
	return tw_fail_errno(err, TW_IO, "%.120s cannot be read", what);
}

static enum tw_status hash_all(
        int fd, gnutls_hash_hd_t sha, uint64_t *ret_bytes, struct tw_err *err)
{
	uint8_t piece[PIECE_BYTES];
	uint64_t bytes = 0;
	ssize_t n;

	while ((n = tw_read_some(fd, piece, sizeof piece)) > 0) {
		if (gnutls_hash(sha, piece, (size_t)n) != 0)
			return tw_fail(err, TW_BUG, "SHA-256 failed");
		bytes += (uint64_t)n;
	}
	if (n < 0)
		return fail_read("a file", err);
	*ret_bytes = bytes;
	return TW_OK;
}

enum tw_status tw_sha256_fd(
        int fd, char ret_sha256[TW_SHA256_HEX], uint64_t *ret_bytes, struct tw_err *err)
{
	gnutls_hash_hd_t sha;
	uint8_t hash[32];
	uint64_t bytes = 0;
	enum tw_status st = tw_sha256_begin(GNUTLS_DIG_SHA256, &sha, err);

	if (st != TW_OK)
		return st;
	st = hash_all(fd, sha, &bytes, err);
	gnutls_hash_deinit(sha, hash);
	if (st != TW_OK)
		return st;
	tw_sha256_hex(hash, ret_sha256);
	*ret_bytes = bytes;
	return TW_OK;
}

enum tw_status tw_sha256_file(
        const char *path, char ret_sha256[TW_SHA256_HEX], uint64_t *ret_bytes, struct tw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st;

	if (fd < 0)
		return fail_read(path, err);
	st = tw_sha256_fd(fd, ret_sha256, ret_bytes, err);
	(void)close(fd);
	return st;
}
