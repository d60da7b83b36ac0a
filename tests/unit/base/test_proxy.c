/* Which addresses are proxies that are believed, and which client a chain of them names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/base/proxy.h"
#include "tests/unit/unit.h"

static struct tw_proxies parsed(const char *text)
{
	struct tw_proxies p;

	assert_int_equal(tw_proxies_parse(text, &p, NULL), TW_OK);
	return p;
}

static void test_no_proxy_is_trusted_by_default(void **state)
{
	struct tw_proxies p = parsed(" , ");

	(void)state;
	assert_int_equal(p.n, 0);
	assert_false(tw_proxies_trust(&p, "127.0.0.1"));
	assert_false(tw_proxies_trust(&p, "::1"));
}

/* Each network ends at its prefix length, to the bit. */
static void test_networks_end(void **state)
{
	static const struct {
		const char *network, *inside, *outside;
	} cases[] = {{"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
	        {"10.0.0.0/9", "10.127.255.255", "10.128.0.0"},
	        {"192.168.1.7", "192.168.1.7", "192.168.1.6"},
	        {"192.168.1.7/31", "192.168.1.6", "192.168.1.8"},
	        {"192.168.1.7/32", "192.168.1.7", "192.168.1.6"},
	        {"fd00::/8", "fdff:ffff::1", "fe00::"},
	        {"2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::"}, {"::1", "::1", "::2"},
	        {"0.0.0.0/0", "255.1.2.3", "2001:db8::1"}, {"::/0", "2001:db8::1", "no address"},
	        {"10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"},
	        {"::ffff:10.0.0.0/104", "10.9.9.9", "11.9.9.9"},
	        {"10.1.2.3", "10.1.2.3:8080", "10.1.2.4:8080"}, {"::1", "[::1]:80", "[::2]:80"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tw_proxies p = parsed(cases[i].network);

		if (!tw_proxies_trust(&p, cases[i].inside))
			fail_msg("%s is not in %s", cases[i].inside, cases[i].network);
		if (tw_proxies_trust(&p, cases[i].outside))
			fail_msg("%s is in %s", cases[i].outside, cases[i].network);
	}
}

static void test_what_is_no_network(void **state)
{
	static const char *const wrong[] = {"10.0.0.0/33", "::/129", "10.0.0/8", "host.example",
	        "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0.0/8/8", "/8", "10.0.0.0/ 8",
	        "1.2.3.4, x", "[::1", "300.1.1.1", "::1%eth0"};
	struct tw_proxies p = {.n = 7};
	struct tw_err err;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (tw_proxies_parse(wrong[i], &p, &err) != TW_BAD_REQUEST)
			fail_msg("%s", wrong[i]);
	assert_int_equal(p.n, 7); /* written on success alone */
	assert_int_equal(tw_proxies_parse("10.0.0.1, nonsense", &p, &err), TW_BAD_REQUEST);
	assert_non_null(strstr(err.msg, "\"nonsense\""));
}

static void test_as_many_as_there_may_be(void **state)
{
	char text[(TW_PROXIES_MAX + 1) * 16] = "";
	struct tw_proxies p;

	(void)state;
	for (int i = 0; i <= TW_PROXIES_MAX; i++) {
		size_t at = strlen(text);

		assert_int_equal(tw_proxies_parse(text, &p, NULL), TW_OK);
		assert_int_equal(p.n, i);
		(void)snprintf(text + at, sizeof text - at, "%s10.0.0.%d", i ? "," : "", i);
	}
	assert_int_equal(tw_proxies_parse(text, &p, NULL), TW_BAD_REQUEST);
}

/* Read from its end: forged entries precede those of trusted proxies. */
static void test_chains(void **state)
{
	static const struct {
		const char *chain, *client; /* NULL: no user is named */
		bool trusted;
	} cases[] = {{"192.0.2.1", "192.0.2.1", false}, {"192.0.2.1, 10.0.0.2", "192.0.2.1", false},
	        {"6.6.6.6, 192.0.2.1, 10.0.0.2, 10.0.0.3", "192.0.2.1", false},
	        {"10.0.0.9, 192.0.2.1", "192.0.2.1", false},
	        {"10.0.0.1,10.0.0.2", "10.0.0.1", true},
	        {"nonsense, 192.0.2.1", "192.0.2.1", false}, {"192.0.2.1, nonsense", NULL, false},
	        {"nonsense, 10.0.0.2", "10.0.0.2", true}, {"", NULL, false}, {",", NULL, false},
	        {"192.0.2.1:4711", "192.0.2.1", false}, {"\"192.0.2.1\"", NULL, false},
	        {"[2001:DB8::1]:443, 10.0.0.2", "2001:db8::1", false},
	        {"::ffff:192.0.2.1", "192.0.2.1", false},
	        {"2001:0db8:0:0::0001", "2001:db8::1", false}};
	struct tw_proxies p = parsed("10.0.0.0/8");

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char client[INET6_ADDRSTRLEN] = "untouched";
		bool trusted = false;
		bool found = tw_proxies_client(&p, cases[i].chain, client, &trusted);

		if (found != (cases[i].client != NULL) || trusted != cases[i].trusted ||
		        strcmp(client, found ? cases[i].client : "untouched") != 0)
			fail_msg("%s: %d %s %d", cases[i].chain, found, client, trusted);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_proxy_is_trusted_by_default),
        cmocka_unit_test(test_networks_end),
        cmocka_unit_test(test_what_is_no_network),
        cmocka_unit_test(test_as_many_as_there_may_be),
        cmocka_unit_test(test_chains),
};

UNIT_TESTS("proxy", tests)
