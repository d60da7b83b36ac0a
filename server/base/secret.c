#include "server/base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/file/io.h"
#include "server/base/text/base64url.h"

#define KEY_BYTES   crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES   crypto_aead_xchacha20poly1305_ietf_ABYTES

enum {
	HEX_BYTES = 2 * KEY_BYTES,
	PATH_BYTES = 4200,
	FOR_US = 077,
	/* Mounted secrets often belong to a group of this user: group read is allowed, nothing
	 * more. */
	FOR_GROUP = 037
};
static const char scheme[] = "sealed:1:";

struct tw_secret_key {
	unsigned char key[KEY_BYTES];
	bool lost; /* the key is missing but should exist */
};

/* --- the key --- */

static enum tw_status no_file(const char *path, const char *what, struct tw_err *err)
{
	return tw_fail_errno(err, TW_BAD_REQUEST, "the key %.100s %s", path, what);
}

static enum tw_status read_key(
        int fd, const char *path, unsigned others, struct tw_secret_key *s, struct tw_err *err)
{
	char hex[HEX_BYTES + 2] = "";
	struct stat st;
	size_t len = 0;
	const ssize_t n = tw_read_full(fd, hex, HEX_BYTES + 1);

	if (n < 0 || fstat(fd, &st) != 0)
		return no_file(path, "cannot be read", err);
	if (st.st_mode & others)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the key %.100s can be read by others: chmod 600 it", path);
	hex[strcspn(hex, "\r\n")] = '\0';
	if (sodium_hex2bin(s->key, KEY_BYTES, hex, strlen(hex), NULL, &len, NULL) != 0 ||
	        len != KEY_BYTES || strlen(hex) != HEX_BYTES)
		return tw_fail(err, TW_BAD_REQUEST,
		        "%.100s is not a key: one line of %d hex digits is expected", path,
		        (int)HEX_BYTES);
	explicit_bzero(hex, sizeof hex);
	return TW_OK;
}

static bool write_all(int fd, const char *line)
{
	return tw_write_all(fd, line, strlen(line)) && fsync(fd) == 0;
}

/* Creates the file completely or not at all; of servers that start concurrently one creates it. */
static enum tw_status make_key(const char *dir, const char *path, struct tw_err *err)
{
	unsigned char key[KEY_BYTES];
	char hex[HEX_BYTES + 2], fresh[PATH_BYTES + 24];
	bool whole = false;
	int fd;

	randombytes_buf(key, sizeof key);
	(void)sodium_bin2hex(hex, sizeof hex, key, sizeof key);
	memcpy(hex + HEX_BYTES, "\n", 2);
	(void)snprintf(fresh, sizeof fresh, "%s.new-%08x", path, randombytes_random());
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		whole = write_all(fd, hex);
		(void)close(fd);
	}
	explicit_bzero(key, sizeof key);
	explicit_bzero(hex, sizeof hex);
	whole = whole && (link(fresh, path) == 0 || errno == EEXIST);
	(void)unlink(fresh);
	if (!whole)
		return no_file(path, "cannot be created", err);
	return tw_sync_folder(dir) ? TW_OK : no_file(path, "cannot be created", err);
}

static enum tw_status load(
        const char *dir, const char *file, bool make, struct tw_secret_key *s, struct tw_err *err)
{
	char own[PATH_BYTES];
	const char *path = *file ? file : own;
	enum tw_status st = TW_OK;
	int fd;

	(void)snprintf(own, sizeof own, "%s/secret.key", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !*file && !make) {
		s->lost = true;
		return TW_OK;
	}
	if (fd < 0 && errno == ENOENT && !*file) {
		st = make_key(dir, path, err);
		fd = st == TW_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	}
	if (st != TW_OK)
		return st;
	if (fd < 0)
		return no_file(path, "cannot be read", err);
	st = read_key(fd, path, *file ? FOR_GROUP : FOR_US, s, err);
	(void)close(fd);
	return st;
}

enum tw_status tw_secret_key_open(const char *data_dir, const char *file, bool make,
        struct tw_secret_key **ret, struct tw_err *err)
{
	struct tw_secret_key *s;
	enum tw_status st;

	if (sodium_init() < 0)
		return tw_fail(err, TW_BUG, "libsodium cannot be initialised");
	s = tw_mem_zalloc(1, sizeof *s);
	if (!s)
		return tw_oom(err);
	st = load(data_dir, file, make, s, err);
	if (st == TW_OK)
		*ret = s;
	else
		(void)tw_secret_key_free(s);
	return st;
}

struct tw_secret_key *tw_secret_key_free(struct tw_secret_key *s)
{
	if (s)
		explicit_bzero(s, sizeof *s);
	tw_mem_free(s);
	return NULL;
}

/* --- encryption --- */

bool tw_secret_key_lost(const struct tw_secret_key *s)
{
	return s->lost;
}

bool tw_secret_key_derive(
        const struct tw_secret_key *s, const char *what, unsigned char ret[TW_SECRET_DERIVED])
{
	return !s->lost && crypto_generichash(ret, TW_SECRET_DERIVED, (const unsigned char *)what,
	                           strlen(what), s->key, sizeof s->key) == 0;
}

bool tw_secret_is_encrypted(const char *text)
{
	return strncmp(text, scheme, sizeof scheme - 1) == 0;
}

enum tw_status tw_secret_encrypt(const struct tw_secret_key *s, const char *whose,
        const char *plain, char ret[TW_SECRET_TEXT_BYTES], struct tw_err *err)
{
	unsigned char encrypted[NONCE_BYTES + TW_SECRET_PLAIN_MAX + TAG_BYTES];
	const size_t len = strlen(plain);
	unsigned long long n = 0;

	if (s->lost)
		return tw_fail(err, TW_CONFLICT,
		        "the key that encrypts secrets is missing: restore secret.key to the data "
		        "folder, or start once with --new-secret-key");
	if (len > TW_SECRET_PLAIN_MAX)
		return tw_fail(err, TW_TOO_LARGE, "a secret is longer than %d bytes",
		        (int)TW_SECRET_PLAIN_MAX);
	randombytes_buf(encrypted, NONCE_BYTES);
	(void)crypto_aead_xchacha20poly1305_ietf_encrypt(encrypted + NONCE_BYTES, &n,
	        (const unsigned char *)plain, len, (const unsigned char *)whose, strlen(whose),
	        NULL, encrypted, s->key);
	memcpy(ret, scheme, sizeof scheme);
	(void)sodium_bin2base64(ret + sizeof scheme - 1, TW_SECRET_TEXT_BYTES - sizeof scheme + 1,
	        encrypted, NONCE_BYTES + (size_t)n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	return TW_OK;
}

enum tw_status tw_secret_decrypt(const struct tw_secret_key *s, const char *whose, const char *text,
        char ret[TW_SECRET_PLAIN_MAX + 1], struct tw_err *err)
{
	unsigned char encrypted[NONCE_BYTES + TW_SECRET_PLAIN_MAX + TAG_BYTES];
	const char *from = text + sizeof scheme - 1;
	unsigned long long n = 0;
	size_t len = 0;

	if (!tw_secret_is_encrypted(text) || s->lost ||
	        sodium_base642bin(encrypted, sizeof encrypted, from, strlen(from), NULL, &len, NULL,
	                sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
	        len < NONCE_BYTES + TAG_BYTES ||
	        crypto_aead_xchacha20poly1305_ietf_decrypt((unsigned char *)ret, &n, NULL,
	                encrypted + NONCE_BYTES, len - NONCE_BYTES, (const unsigned char *)whose,
	                strlen(whose), encrypted, s->key) != 0)
		return tw_fail(err, TW_NOT_FOUND,
		        "its secret was encrypted with a key that this server does not have "
		        "(secret.key, --secret-key-file): set another secret");
	ret[n] = '\0';
	return TW_OK;
}

enum { RANDOM_BYTES = 32 };

void tw_secret_new(const char *prefix, char ret_secret[TW_SECRET_BYTES])
{
	uint8_t random[RANDOM_BYTES];
	char text[TW_BASE64URL_BYTES(RANDOM_BYTES)];

	randombytes_buf(random, sizeof random);
	tw_base64url_spell(random, sizeof random, text);
	(void)snprintf(ret_secret, TW_SECRET_BYTES, "%s%s", prefix, text);
}

void tw_secret_hash(const char *secret, uint8_t ret_hash[32])
{
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, strlen(secret), ret_hash) != 0)
		randombytes_buf(ret_hash, 32); /* matches no secret */
}

uint64_t tw_secret_bits(const char *text)
{
	uint8_t hash[32];
	uint64_t bits = 0;

	tw_secret_hash(text, hash);
	for (int i = 0; i < 8; i++)
		bits = bits << 8 | hash[i];
	return bits;
}
