#include "server/auth/auth_password.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { AT_ONCE = 2 };
static const size_t memory_bytes = (size_t)64 << 20;
static const unsigned long long passes = 2;

/* In builds for tests, with TRACEWELL_CHEAP_PASSWORDS in the environment: a hash takes 100 ms. */
static bool cheap(void)
{
#if TW_TEST_FAULTS
	return getenv("TRACEWELL_CHEAP_PASSWORDS") != NULL;
#else
	return false;
#endif
}

_Static_assert(crypto_pwhash_STRBYTES <= TW_PASSWORD_HASH_BYTES, "memory for a password hash");

/* A hash with the same cost as ours, of no known password. */
static const char of_no_user[] = "$argon2id$v=19$m=65536,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$"
                                 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

static _Atomic int under_way;

static enum tw_status enter(struct tw_err *err)
{
	if (sodium_init() < 0)
		return tw_fail(err, TW_BUG, "libsodium cannot be initialised");
	if (atomic_fetch_add(&under_way, 1) < AT_ONCE)
		return TW_OK;
	(void)atomic_fetch_sub(&under_way, 1);
	return tw_fail(err, TW_BUSY, "too many concurrent sign-ins; try again");
}

static void leave(void)
{
	(void)atomic_fetch_sub(&under_way, 1);
}

enum tw_status tw_password_verify(const char *plain, const char *name, struct tw_err *err)
{
	size_t len = strlen(plain);

	if (len < TW_PASSWORD_MIN || len > TW_PASSWORD_MAX)
		return tw_fail(err, TW_BAD_REQUEST,
		        "a password must have %d to %d bytes: use a few words", TW_PASSWORD_MIN,
		        TW_PASSWORD_MAX);
	if (strcasecmp(plain, name) == 0)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the password must not be the name: use a few other words");
	return TW_OK;
}

enum tw_status tw_password_hash(
        const char *plain, char ret[TW_PASSWORD_HASH_BYTES], struct tw_err *err)
{
	enum tw_status st = enter(err);
	int failed;

	if (st != TW_OK)
		return st;
	failed = crypto_pwhash_str(ret, plain, strlen(plain),
	        cheap() ? crypto_pwhash_OPSLIMIT_MIN : passes,
	        cheap() ? crypto_pwhash_MEMLIMIT_MIN : memory_bytes);
	leave();
	return failed ? tw_oom(err) : TW_OK;
}

enum tw_status tw_password_check(const char *hash, const char *plain, bool *ret, struct tw_err *err)
{
	enum tw_status st = enter(err);
	bool same;

	if (st != TW_OK)
		return st;
	same = crypto_pwhash_str_verify(*hash ? hash : of_no_user, plain, strlen(plain)) == 0;
	leave();
	*ret = same && *hash != '\0';
	return TW_OK;
}
