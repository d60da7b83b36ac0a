/* Signature Version 4: the requests that the scheme's own text signs, and an address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/storage/s3/s3.h"
#include "server/storage/s3/s3_http.h"
#include "tests/unit/unit.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct tw_s3_signing base = {.method = "GET",
        .path = "/",
        .query = "",
        .payload = EMPTY,
        .key_id = "AKIAIOSFODNN7EXAMPLE",
        .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        .token = "",
        .region = "us-east-1",
        .time = "20130524T000000Z"};

static const struct tw_s3_header plain[] = {{"host", "examplebucket.s3.amazonaws.com"},
        {"x-amz-content-sha256", EMPTY}, {"x-amz-date", "20130524T000000Z"}};

static void assert_signature(const struct tw_s3_signing *s, const char *expected)
{
	struct tw_buf out;

	tw_buf_init(&out, 4096);
	assert_int_equal(tw_s3_authorize(s, &out, NULL), TW_OK);
	assert_true(out.len > 64);
	assert_memory_equal(out.data + out.len - 64, expected, 64);
	tw_buf_done(&out);
}

static void signs_a_get_with_a_range(void **state)
{
	static const struct tw_s3_header headers[] = {{"host", "examplebucket.s3.amazonaws.com"},
	        {"range", "bytes=0-9"}, {"x-amz-content-sha256", EMPTY},
	        {"x-amz-date", "20130524T000000Z"}};
	struct tw_s3_signing s = base;

	(void)state;
	s.path = "/test.txt";
	s.headers = headers;
	s.n_headers = 4;
	assert_signature(&s, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void signs_a_put(void **state)
{
	static const char body[] =
	        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
	static const struct tw_s3_header headers[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
	        {"host", "examplebucket.s3.amazonaws.com"}, {"x-amz-content-sha256", body},
	        {"x-amz-date", "20130524T000000Z"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
	struct tw_s3_signing s = base;

	(void)state;
	s.method = "PUT";
	s.path = "/test%24file.text";
	s.headers = headers;
	s.n_headers = 5;
	s.payload = body;
	assert_signature(&s, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void signs_questions(void **state)
{
	struct tw_s3_signing s = base;

	(void)state;
	s.headers = plain;
	s.n_headers = 3;
	s.query = "lifecycle=";
	assert_signature(&s, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	s.query = "max-keys=2&prefix=J";
	assert_signature(&s, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void signs_an_address(void **state)
{
	static const char expected[] =
	        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524"
	        "%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
	        "&X-Amz-SignedHeaders=host&X-Amz-Signature="
	        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
	struct tw_s3_signing s = base;
	struct tw_buf out;

	(void)state;
	s.path = "/test.txt";
	s.headers = plain;
	s.n_headers = 1;
	s.payload = TW_S3_UNSIGNED;
	tw_buf_init(&out, 4096);
	assert_int_equal(tw_s3_presign(&s, 86400, &out, NULL), TW_OK);
	assert_int_equal(out.len, sizeof expected - 1);
	assert_memory_equal(out.data, expected, out.len);
	tw_buf_done(&out);
}

static void a_token_is_signed_in_order(void **state)
{
	struct tw_s3_signing s = base;
	struct tw_buf out;

	(void)state;
	s.path = "/x";
	s.headers = plain;
	s.n_headers = 1;
	s.payload = TW_S3_UNSIGNED;
	s.token = "a/b+c=";
	tw_buf_init(&out, 4096);
	assert_int_equal(tw_s3_presign(&s, 60, &out, NULL), TW_OK);
	assert_int_equal(tw_buf_add_u8(&out, 0), TW_OK);
	assert_non_null(strstr((const char *)out.data,
	        "X-Amz-Expires=60&X-Amz-Security-Token=a%2Fb%2Bc%3D&X-Amz-SignedHeaders=host&"));
	tw_buf_done(&out);
}

static void escapes_and_times(void **state)
{
	char time[TW_S3_TIME_BYTES], checksum[TW_S3_CHECKSUM];
	struct tw_buf out;

	(void)state;
	tw_buf_init(&out, 100);
	tw_s3_escape(TW_STR("a/b ~%\xc3\xa4"), &out);
	assert_int_equal(out.len, 18);
	assert_memory_equal(out.data, "a%2Fb%20~%25%C3%A4", 18);
	tw_buf_done(&out);
	tw_s3_time(INT64_C(1369353600000), time);
	assert_string_equal(time, "20130524T000000Z");
	tw_s3_checksum(EMPTY, checksum);
	assert_string_equal(checksum, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

static void reads_what_it_is_asked_for(void **state)
{
	struct tw_str text = TW_STR("<L><C><Key>a&amp;b</Key></C><C><Key>c</Key></C><Cut><Key>d");
	struct tw_str one;
	char key[3];

	(void)state;
	assert_true(tw_xml_next(&text, "C", &one));
	tw_xml_text(one, "Key", key, sizeof key);
	assert_string_equal(key, "a&");
	assert_true(tw_xml_next(&text, "C", &one));
	tw_xml_text(one, "Key", key, sizeof key);
	assert_string_equal(key, "c");
	assert_false(tw_xml_next(&text, "C", &one));
	tw_xml_text(text, "Key", key, sizeof key);
	assert_string_equal(key, "");
	tw_xml_text((struct tw_str){NULL, 0}, "Key", key, sizeof key);
	assert_string_equal(key, "");
}

static bool is_same(const char *where, const char *endpoint, const char *as, const char *at)
{
	const struct tw_s3_endpoint a = {.where = where, .endpoint = endpoint, .region = ""},
	                            b = {.where = as, .endpoint = at, .region = "eu-west-1"};

	return tw_s3_is_same(&a, &b) && tw_s3_is_same(&b, &a);
}

static void knows_an_address_by_any_spelling(void **state)
{
	static const char at[] = "https://store.example:9000", there[] = "s3://bucket/a/b";

	(void)state;
	assert_true(is_same(there, at, there, at));
	assert_true(is_same(there, at, "s3://bucket//a/b/", at));
	assert_true(is_same(there, at, there, "https://STORE.example:9000/"));
	assert_true(is_same(there, at, there, "http://store.example:9000"));
	assert_true(is_same(there, "https://store.example", there, "https://store.example.:443/"));
	assert_true(is_same(there, "http://store.example:80", there, "http://store.example"));
	assert_true(is_same(there, "", there, "https://s3.amazonaws.com"));
	assert_true(is_same(there, "", there, "https://s3.dualstack.us-east-1.amazonaws.com"));
	assert_false(is_same(there, at, "s3://bucket/a", at));
	assert_false(is_same(there, at, "s3://bucket/a/B", at));
	assert_false(is_same(there, at, "s3://other/a/b", at));
	assert_false(is_same(there, at, there, "https://store.example:9001"));
	assert_false(is_same(there, at, there, "https://tore.example:9000"));
	assert_false(is_same(there, at, there, ""));
	assert_false(is_same("", at, "", at)); /* no place */
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_a_get_with_a_range),
        cmocka_unit_test(signs_a_put),
        cmocka_unit_test(signs_questions),
        cmocka_unit_test(signs_an_address),
        cmocka_unit_test(a_token_is_signed_in_order),
        cmocka_unit_test(escapes_and_times),
        cmocka_unit_test(reads_what_it_is_asked_for),
        cmocka_unit_test(knows_an_address_by_any_spelling),
};

UNIT_TESTS("s3_sign", tests)
