/* The server's certificate: read, refused, replaced while it is used, copied for handshakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/http/limit/tls.h"
#include "tests/unit/unit.h"

enum { PATH_BYTES = 64, MANY = 17 /* certificates; 16 is the most */ };

struct files {
	char dir[32], cert[PATH_BYTES], key[PATH_BYTES];
};

static void put(const char *path, const void *p, size_t n, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	assert_int_equal(close(fd), 0);
}

static gnutls_x509_crt_t signed_by(gnutls_x509_privkey_t key, time_t ends_s)
{
	static const char name[] = "CN=localhost";
	static const uint8_t serial[] = {7};
	gnutls_x509_crt_t crt;

	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
	assert_int_equal(gnutls_x509_crt_set_serial(crt, serial, sizeof serial), 0);
	assert_int_equal(gnutls_x509_crt_set_activation_time(crt, 1000000000), 0);
	assert_int_equal(gnutls_x509_crt_set_expiration_time(crt, ends_s), 0);
	assert_int_equal(gnutls_x509_crt_set_dn(crt, name, NULL), 0);
	assert_int_equal(gnutls_x509_crt_set_key(crt, key), 0);
	assert_int_equal(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
	return crt;
}

/* A key and its own certificate in those two files. */
static void make_pair(const char *cert, const char *key_path, time_t ends_s)
{
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	gnutls_datum_t pem;

	assert_int_equal(gnutls_x509_privkey_init(&key), 0);
	assert_int_equal(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
	                         GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	        0);
	assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem), 0);
	put(key_path, pem.data, pem.size, O_TRUNC);
	gnutls_free(pem.data);
	crt = signed_by(key, ends_s);
	assert_int_equal(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem), 0);
	put(cert, pem.data, pem.size, O_TRUNC);
	gnutls_free(pem.data);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

static int setup(void **state)
{
	static struct files f;

	memcpy(f.dir, "/tmp/tw-tls-XXXXXX", sizeof "/tmp/tw-tls-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	(void)snprintf(f.cert, sizeof f.cert, "%s/cert.pem", f.dir);
	(void)snprintf(f.key, sizeof f.key, "%s/key.pem", f.dir);
	make_pair(f.cert, f.key, 2000000000);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct files *f = *state;

	(void)unlink(f->cert);
	(void)unlink(f->key);
	return rmdir(f->dir);
}

static void test_a_pair_is_read_and_copied(void **state)
{
	struct files *f = *state;
	gnutls_pcert_st *chain = NULL;
	gnutls_privkey_t key = NULL;
	struct tw_tls *t = NULL;
	gnutls_x509_crt_t crt;
	unsigned n = 0;

	assert_int_equal(tw_tls_open(f->cert, f->key, &t, NULL), TW_OK);
	assert_int_equal(tw_tls_ends_s(t), 2000000000);
	assert_true(tw_tls_copy(t, &chain, &n, &key));
	assert_int_equal(n, 1);
	assert_null(tw_tls_close(t)); /* copies outlive their originals */
	assert_int_equal(gnutls_pcert_export_x509(&chain[0], &crt), 0);
	assert_int_equal(gnutls_x509_crt_get_expiration_time(crt), 2000000000);
	gnutls_x509_crt_deinit(crt);
	gnutls_pcert_deinit(&chain[0]);
	gnutls_free(chain);
	gnutls_privkey_deinit(key);
	assert_null(tw_tls_close(NULL));
}

/* The error names the wrong file. */
static void test_what_is_wrong_is_named(void **state)
{
	struct files *f = *state;
	struct tw_tls *t = NULL;
	char other[PATH_BYTES];
	struct tw_err err;

	(void)snprintf(other, sizeof other, "%s/other.pem", f->dir);
	assert_int_equal(tw_tls_open(other, f->key, &t, &err), TW_IO);
	assert_non_null(strstr(err.msg, other));
	assert_int_equal(tw_tls_open(f->key, f->key, &t, &err), TW_BAD_REQUEST);
	assert_non_null(strstr(err.msg, "certificates"));
	assert_int_equal(tw_tls_open(f->cert, f->cert, &t, &err), TW_BAD_REQUEST);
	assert_non_null(strstr(err.msg, "private key"));
	put(other, "", 0, O_TRUNC);
	assert_int_equal(tw_tls_open(other, f->key, &t, &err), TW_BAD_REQUEST);
	make_pair(other, f->key, 2000000000); /* another key than the certificate's */
	assert_int_equal(tw_tls_open(f->cert, f->key, &t, &err), TW_BAD_REQUEST);
	assert_non_null(strstr(err.msg, "does not match the certificate"));
	assert_null(t);
	assert_int_equal(unlink(other), 0);
}

/* Files that do not match leave the current one unchanged, and are reported once. */
static void test_replaced_while_used(void **state)
{
	struct files *f = *state;
	struct tw_tls *t = NULL;
	bool is_new = true;

	assert_int_equal(tw_tls_open(f->cert, f->key, &t, NULL), TW_OK);
	assert_int_equal(tw_tls_reload(t, false, &is_new, NULL), TW_OK);
	assert_false(is_new);
	assert_int_equal(tw_tls_reload(t, true, &is_new, NULL), TW_OK);
	assert_true(is_new);
	put(f->key, "half a k", 8, O_TRUNC);
	assert_int_equal(tw_tls_reload(t, false, &is_new, NULL), TW_BAD_REQUEST);
	assert_false(is_new);
	assert_int_equal(tw_tls_reload(t, false, &is_new, NULL), TW_OK);
	assert_int_equal(tw_tls_ends_s(t), 2000000000);
	make_pair(f->cert, f->key, 2100000000);
	assert_int_equal(tw_tls_reload(t, false, &is_new, NULL), TW_OK);
	assert_true(is_new);
	assert_int_equal(tw_tls_ends_s(t), 2100000000);
	assert_int_equal(unlink(f->key), 0);
	assert_int_equal(tw_tls_reload(t, false, &is_new, NULL), TW_IO);
	assert_int_equal(tw_tls_ends_s(t), 2100000000);
	make_pair(f->cert, f->key, 2000000000);
	(void)tw_tls_close(t);
}

/* An oversized file is not a chain. */
static void test_a_chain_too_long(void **state)
{
	struct files *f = *state;
	struct tw_tls *t = NULL;
	char pem[4096];
	int fd = open(f->cert, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, pem, sizeof pem);

	assert_true(n > 0 && n < (ssize_t)sizeof pem);
	(void)close(fd);
	for (int i = 1; i < MANY; i++)
		put(f->cert, pem, (size_t)n, O_APPEND);
	assert_int_equal(tw_tls_open(f->cert, f->key, &t, NULL), TW_BAD_REQUEST);
	assert_null(t);
}

static void test_no_memory(void **state)
{
	struct files *f = *state;
	struct tw_tls *t = NULL;
	enum tw_status st = TW_NOMEM;
	uint64_t at = 1;

	for (; st != TW_OK && at < 100; at++) {
		tw_mem_fail_at(at);
		st = tw_tls_open(f->cert, f->key, &t, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
	}
	assert_int_equal(st, TW_OK);
	assert_true(at > 2);
	(void)tw_tls_close(t);
}

#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        WITH_FILES(test_a_pair_is_read_and_copied),
        WITH_FILES(test_what_is_wrong_is_named),
        WITH_FILES(test_replaced_while_used),
        WITH_FILES(test_a_chain_too_long),
        WITH_FILES(test_no_memory),
};

UNIT_TESTS("tls", tests)
