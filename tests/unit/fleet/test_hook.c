/* What webhooks and mails are made of: signatures, waits, addresses, markup, periods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/base/text/figure.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/notify/digest.h"
#include "server/notify/hook_mail.h"
#include "server/notify/issue.h"
#include "server/notify/markup.h"
#include "server/notify/text.h"
#include "tests/unit/unit.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MS    INT64_C(86400000)

/* Made by another implementation: Python's hmac over "1700000000.{\"a\":1}". */
static void test_a_known_signature(void **state)
{
	char got[TW_HOOK_SIGNATURE_BYTES];

	(void)state;
	assert_int_equal(
	        tw_hook_sign("twh_secret", 1700000000, TW_STR("{\"a\":1}"), got, NULL), TW_OK);
	assert_string_equal(got,
	        "t=1700000000,v1="
	        "995959ebcee319f663610c7b0776b785f19080dc558dd48e5d4f56ef01cfc7a0");
	assert_int_equal(
	        tw_hook_sign("twh_secret", 1700000001, TW_STR("{\"a\":1}"), got, NULL), TW_OK);
	assert_null(
	        strstr(got, "995959ebcee319f663610c7b0776b785f19080dc558dd48e5d4f56ef01cfc7a0"));
}

static void test_waits_double_to_a_bound(void **state)
{
	int64_t middle = MINUTE_MS;

	(void)state;
	for (int64_t fails = 1; fails < 40; fails++) {
		const int64_t low = tw_hook_wait_ms(fails, 0, 0);
		const int64_t high = tw_hook_wait_ms(fails, 2000, 0);

		assert_in_range(low, middle * 79 / 100, middle * 81 / 100);
		assert_in_range(high, middle * 119 / 100, middle * 121 / 100);
		middle = 2 * middle < 360 * MINUTE_MS ? 2 * middle : 360 * MINUTE_MS;
	}
	assert_int_equal(tw_hook_wait_ms(1, 1000, 7200), 7200000);
	assert_int_equal(tw_hook_wait_ms(1, 1000, 3), MINUTE_MS); /* not sooner than ours */
	assert_int_equal(tw_hook_wait_ms(1, 1000, INT64_MAX), DAY_MS);
}

static void test_private_addresses(void **state)
{
	static const char *const refused[] = {"127.0.0.1", "127.255.255.255", "0.0.0.0", "10.1.2.3",
	        "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1",
	        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fec0::1", "fc00::1",
	        "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1",
	        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::5",
	        "2001:0:1::", "fd00:ec2::254"};
	static const char *const fine[] = {"8.8.8.8", "172.15.0.1", "172.32.0.1", "100.128.0.1",
	        "169.253.1.1", "192.169.0.1", "2606:4700::1", "64:ff9b::808:808", "2002:808:808::1",
	        "::ffff:8.8.8.8"};

	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (!tw_hook_is_private(refused[i]))
			fail_msg("%s may be reached", refused[i]);
	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
		if (tw_hook_is_private(fine[i]))
			fail_msg("%s may not be reached", fine[i]);
}

static void test_private_hosts(void **state)
{
	static const char *const refused[] = {"http://127.0.0.1:80/x", "http://0x7f.1/",
	        "https://2130706433/", "http://[::1]:8080/", "http://[::ffff:10.0.0.1]/",
	        "HTTP://192.168.1.1", "http://localhost/", "http://LocalHost:8080/x",
	        "https://hooks.localhost/"};
	static const char *const fine[] = {"https://8.8.8.8/", "https://hooks.example.com/10.0.0.1",
	        "http://10.1.2.3/", "http://notlocalhost/", "https://127.0.0.1.example.com/"};
	struct tw_proxies allowed;

	(void)state;
	assert_int_equal(tw_proxies_parse("10.1.0.0/16", &allowed, NULL), TW_OK);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (tw_hook_url_public(refused[i], &allowed, NULL) != TW_BAD_REQUEST)
			fail_msg("%s may be reached", refused[i]);
	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
		if (tw_hook_url_public(fine[i], &allowed, NULL) != TW_OK)
			fail_msg("%s may not be reached", fine[i]);
}

static void test_addresses_of_hooks(void **state)
{
	static const char *const nowhere[] = {"http://h:99999/", "https://[x]/", "http://a<b/",
	        "http://:80/", "http://h:x/", "https://[::1/", "http://[fe80::1%/"};
	char host[64];

	(void)state;
	assert_int_equal(tw_hook_url("https://a.example:8443/x?y", NULL), TW_OK);
	assert_int_equal(tw_hook_url("HTTP://a.example", NULL), TW_OK);
	assert_int_equal(tw_hook_url("https://a.example/@b", NULL), TW_OK);
	assert_int_equal(tw_hook_url("https://u@a.example", NULL), TW_BAD_REQUEST);
	assert_int_equal(tw_hook_url("https://a.example\\@b", NULL), TW_BAD_REQUEST);
	assert_int_equal(tw_hook_url("file:///etc/passwd", NULL), TW_BAD_REQUEST);
	assert_int_equal(tw_hook_url("https://?x", NULL), TW_BAD_REQUEST);
	assert_int_equal(tw_hook_url("http://[2606:4700::1]:80/", NULL), TW_OK);
	for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
		if (tw_hook_url(nowhere[i], NULL) != TW_BAD_REQUEST)
			fail_msg("%s may be a hook's", nowhere[i]);
	tw_hook_host("https://hooks.example/T0/SECRET", host, sizeof host);
	assert_string_equal(host, "https://hooks.example");
}

/* --- markup --- */

static void expect(struct tw_buf *out, const char *text)
{
	(void)tw_buf_add_u8(out, 0);
	assert_int_equal(tw_buf_status(out), TW_OK);
	assert_string_equal((const char *)out->data, text);
	tw_buf_done(out);
}

static void expect_name(enum tw_markup markup, const char *name, const char *text)
{
	struct tw_buf out;
	struct tw_markup_out p = {&out, markup};

	tw_buf_init(&out, 4096);
	tw_markup_name(&p, name);
	expect(&out, text);
}

static void test_names_stay_data(void **state)
{
	(void)state;
	expect_name(TW_MARKUP_MARKDOWN, "a.B.<init>", "`a.B.<init>`");
	expect_name(TW_MARKUP_MARKDOWN, "a`b``c", "```a`b``c```");
	expect_name(TW_MARKUP_MARKDOWN, "`a", "`` `a ``");
	expect_name(TW_MARKUP_MARKDOWN, "a\n/close\r@all", "`a /close @all`");
	expect_name(TW_MARKUP_MARKDOWN, "", "unnamed");
	expect_name(TW_MARKUP_JIRA, "a{code}|*b*", "{{a\\{code\\}\\|\\*b\\*}}");
	expect_name(TW_MARKUP_JIRA, "x}}[y|http://e]", "{{x\\}\\}\\[y\\|http://e\\]}}");
	expect_name(TW_MARKUP_HTML, "<b>\"&'", "<code>&lt;b&gt;&quot;&amp;&#39;</code>");
	expect_name(TW_MARKUP_SLACK, "<!channel> `x` <@U1>", "`&lt;!channel&gt; 'x' &lt;@U1&gt;`");
	expect_name(TW_MARKUP_PLAIN, "a\tb", "a b");
	expect_name(TW_MARKUP_CARD, "com.a_b.C", "com.a\\_b.C");
	expect_name(TW_MARKUP_CARD, "", "unnamed");
}

/* Cards know links and bold, and no code in which they would be none. */
static void test_cards_have_no_links_of_others(void **state)
{
	const struct tw_delivery d = {.project_id = "P",
	        .project = "p",
	        .event_id = "e",
	        .event = TW_HOOK_ANR,
	        .kind = TW_HOOK_TEAMS,
	        .facts = "{\"anr\":{\"key\":\"k\",\"name\":\"**a**~b~\\\\\",\"device\":"
	                 "\"[sign in](https://evil.example)\"}}"};
	struct tw_buf out;

	(void)state;
	tw_buf_init(&out, TW_HOOK_BODY_BYTES);
	assert_int_equal(tw_hook_body(&d, "https://x", &out, NULL), TW_OK);
	assert_int_equal(tw_buf_add_u8(&out, 0), TW_OK);
	assert_non_null(
	        strstr((const char *)out.data, "\\\\[sign in\\\\]\\\\(https://evil.example\\\\)"));
	assert_non_null(strstr((const char *)out.data, "\\\\*\\\\*a\\\\*\\\\*\\\\~b\\\\~\\\\\\\\"));
	assert_null(strstr((const char *)out.data, "`"));
	tw_buf_done(&out);
}

static void test_cards_have_bold_headings(void **state)
{
	struct tw_buf out;
	struct tw_markup_out p = {&out, TW_MARKUP_CARD};

	(void)state;
	tw_buf_init(&out, 4096);
	tw_markup_heading(&p, "a*b");
	tw_markup_item(&p);
	tw_markup_link(&p, "x]", "https://a/?b=(c)");
	expect(&out, "**a\\*b**\n\n- [x\\]](https://a/?b=%28c%29)");
}

static void test_texts_and_links(void **state)
{
	struct tw_buf out;
	struct tw_markup_out p = {&out, TW_MARKUP_MARKDOWN};

	(void)state;
	tw_buf_init(&out, 4096);
	tw_markup_text(&p, "[x](y) *z* <q> @a #1");
	expect(&out, "\\[x\\](y) \\*z\\* \\<q\\> \\@a \\#1");
	tw_buf_init(&out, 4096);
	tw_markup_link(&p, "x]", "https://a/?b=(c) d");
	expect(&out, "[x\\]](https://a/?b=%28c%29%20d)");
	p.markup = TW_MARKUP_HTML;
	tw_buf_init(&out, 4096);
	tw_markup_link(&p, "<x>", "https://a/?b=\"&c");
	expect(&out, "<a href=\"https://a/?b=%22&amp;c\">&lt;x&gt;</a>");
	p.markup = TW_MARKUP_SLACK;
	tw_buf_init(&out, 4096);
	tw_markup_link(&p, "a>b", "https://a/|b>");
	expect(&out, "<https://a/%7Cb%3E|a&gt;b>");
}

static void test_long_names_are_cut_between_characters(void **state)
{
	char name[700] = "";
	struct tw_buf out;
	struct tw_markup_out p = {&out, TW_MARKUP_PLAIN};

	(void)state;
	for (int i = 0; i < 333; i++)
		memcpy(name + 2 * i, "\xc3\xa4", 3);
	memmove(name + 1, name, 666);
	name[0] = 'x';
	tw_buf_init(&out, 4096);
	tw_markup_name(&p, name);
	assert_int_equal(out.len, 299 + strlen("…"));
	tw_buf_done(&out);
}

static void expect_ns(int64_t ns, const char *text)
{
	struct tw_buf out;
	struct tw_markup_out p = {&out, TW_MARKUP_PLAIN};

	tw_buf_init(&out, 100);
	tw_markup_ns(&p, ns);
	expect(&out, text);
}

/* web/test/change.test.ts holds the page to this table, too. */
static const struct {
	int64_t ns;
	const char *text;
} times[] = {
        {12, "12 ns"},
        {1520, "1.52 µs"},
        {1520000, "1.52 ms"},
        {15240000, "15.2 ms"},
        {152000000, "152 ms"},
        {2500000000, "2.50 s"},
};

static void test_times(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		expect_ns(times[i].ns, times[i].text);
}

/* --- mail --- */

static void test_mail(void **state)
{
	const struct tw_mail_text m = {.from = "tw@x.y",
	        .subject = "p\r\nBcc: e@v.il: ä, longer than one encoded word may be in a line",
	        .id = "digest.1.P",
	        .to = "a@b.c",
	        .at_ms = INT64_C(1700000000000),
	        .text = TW_STR(".\r\nhi"),
	        .html = TW_STR("<p>hi")};
	struct tw_buf out;

	(void)state;
	tw_buf_init(&out, 1 << 16);
	tw_mail_write(&m, &out);
	(void)tw_buf_add_u8(&out, 0);
	assert_non_null(strstr((char *)out.data, "To: <a@b.c>\r\n"));
	assert_non_null(strstr((char *)out.data, "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"));
	assert_non_null(strstr((char *)out.data, "Message-ID: <digest.1.P@x.y>\r\n"));
	assert_null(strstr((char *)out.data, "\nBcc"));
	assert_null(strstr((char *)out.data, "\n.\r\n")); /* nothing ends it before its end */
	for (const char *line = (char *)out.data; *line; line = strchr(line, '\n') + 1)
		assert_true(strcspn(line, "\r") <= 100);
	tw_buf_done(&out);
	assert_true(tw_mail_address("ann+x@example.com"));
	assert_false(tw_mail_address("ann"));
	assert_false(tw_mail_address("a@b@c"));
	assert_false(tw_mail_address("<a@b>"));
	assert_false(tw_mail_address("a@b\r\n"));
}

/* --- periods --- */

static void test_periods(void **state)
{
	struct tw_digest_rules r = {.every = TW_DIGEST_DAILY, .hour = 7};
	const int64_t sunday = INT64_C(1763769600000); /* 2025-11-22 is a Saturday: its midnight */
	struct tw_digest_period p = tw_digest_period(&r, sunday + 6 * 60 * MINUTE_MS);

	(void)state;
	assert_int_equal(p.until_ms, sunday - 17 * 60 * MINUTE_MS);
	assert_int_equal(p.until_ms - p.since_ms, DAY_MS);
	p = tw_digest_period(&r, sunday + 7 * 60 * MINUTE_MS);
	assert_int_equal(p.until_ms, sunday + 7 * 60 * MINUTE_MS);
	r = (struct tw_digest_rules){.every = TW_DIGEST_WEEKLY, .hour = 0, .weekday = 6};
	p = tw_digest_period(&r, sunday + 1);
	assert_int_equal(p.until_ms, sunday);
	assert_int_equal(p.until_ms - p.since_ms, 7 * DAY_MS);
	r.weekday = 0; /* the Sunday before */
	p = tw_digest_period(&r, sunday + 1);
	assert_int_equal(p.until_ms, sunday - 6 * DAY_MS);
}

/* --- bodies --- */

static void test_bodies_survive_any_facts(void **state)
{
	static const char *const facts[] = {"{}", "{\"regression\":{}}", "{\"regression\":7}",
	        "{\"anr\":{\"key\":\"k\"}}", "{\"digest\":{\"found\":{\"list\":[{}]}}}"};
	struct tw_delivery d = {.project_id = "P", .project = "p", .event_id = "e"};
	struct tw_buf out;

	(void)state;
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		for (int event = 0; event < TW_HOOK_EVENTS; event++)
			for (int kind = 0; kind < TW_HOOK_KINDS; kind++) {
				d.facts = facts[i];
				d.event = (enum tw_hook_event)event;
				d.kind = (enum tw_hook_kind)kind;
				tw_buf_init(&out, TW_HOOK_BODY_BYTES);
				assert_int_equal(tw_hook_body(&d, "https://x", &out, NULL), TW_OK);
				tw_buf_done(&out);
			}
	d.facts = "no JSON";
	tw_buf_init(&out, TW_HOOK_BODY_BYTES);
	assert_int_not_equal(tw_hook_body(&d, "", &out, NULL), TW_OK);
	tw_buf_done(&out);
}

static void test_a_long_issue_fits_an_address(void **state)
{
	static char body[TW_ISSUE_BYTES];
	struct tw_buf out;

	(void)state;
	memset(body, '#', sizeof body);
	tw_buf_init(&out, TW_ISSUE_BYTES);
	tw_issue_address("https://a/?t={title}&b={body}&c={d}", TW_STR("a b&c"),
	        (struct tw_str){body, sizeof body}, &out);
	(void)tw_buf_add_u8(&out, 0);
	assert_true(strncmp((char *)out.data, "https://a/?t=a%20b%26c&b=%23%23", 31) == 0);
	assert_string_equal((char *)out.data + out.len - 7, "&c={d}");
	assert_true(out.len < 7000);
	tw_buf_done(&out);
}

/* --- golden texts --- */

static void expect_event(enum tw_hook_event event, const char *json, const char *text)
{
	json_t *facts = json_loads(json, 0, NULL);
	struct tw_buf out;
	struct tw_text_links w = {{&out, TW_MARKUP_PLAIN}, "", "P"};

	assert_non_null(facts);
	tw_buf_init(&out, 1 << 16);
	if (event == TW_HOOK_DIGEST)
		tw_text_digest(&w, facts);
	else
		tw_text_event(&w, event, facts);
	json_decref(facts);
	expect(&out, text);
}

static void test_texts_of_events(void **state)
{
	(void)state;
	expect_event(TW_HOOK_ANR,
	        "{\"anr\":{\"name\":\"a.B.c\",\"verdict\":\"It waits.\",\"version_name\":\"8.3\","
	        "\"device\":\"Pixel\"}}",
	        "A new group of ANRs: a.B.c. It waits. First seen in version 8.3 on Pixel.\n\n");
	expect_event(TW_HOOK_ANR,
	        "{\"anr\":{\"name\":\"\",\"title\":\"Input\",\"verdict\":\"\",\"version_name\":"
	        "\"\","
	        "\"device\":\"Pixel\"}}",
	        "A new group of ANRs: Input. First seen on Pixel.\n\n");
	expect_event(TW_HOOK_ANR, "{\"anr\":{\"title\":\"Input\"}}",
	        "A new group of ANRs: Input. First seen now.\n\n");
	expect_event(TW_HOOK_TEST, "{\"by\":\"\"}", "This is a test of the webhook.\n\n");
	expect_event(TW_HOOK_TEST, "{\"by\":\"ann\"}",
	        "This is a test of the webhook, requested by ann.\n\n");
	expect_event(TW_HOOK_FIXED,
	        "{\"by\":\"an API key\",\"regression\":{\"method\":\"a.B.c\",\"head\":\"2\","
	        "\"percentile\":91,\"change\":0.5,\"low\":0.4,\"high\":0.6,\"before_ns\":1000,"
	        "\"after_ns\":1500}}",
	        "Fixed (by an API key): a.B.c, which was +50 % in 2: 1.00 µs to 1.50 µs at the "
	        "91st "
	        "percentile, 95 % confidence interval +40 % to +60 %.\n\n");
}

static void test_texts_of_digests(void **state)
{
	(void)state;
	expect_event(TW_HOOK_DIGEST,
	        "{\"anrs\":{\"total\":2,\"list\":[{\"name\":\"a.B.c\",\"count\":1},"
	        "{\"name\":\"d.E.f\",\"count\":2}]},"
	        "\"scenarios\":[{\"scenario\":\"\",\"p50_ns\":1000,\"p95_ns\":2000,\"traces\":1}],"
	        "\"methods\":[{\"name\":\"a.B.c\",\"mean_ns\":1000,\"traces\":2}],"
	        "\"days\":{\"first_ms\":0,\"last_ms\":0,\"before_first_ms\":0,\"before_last_ms\":0}"
	        ","
	        "\"ingest\":{\"accepted\":1,\"failed\":0,\"expired\":1}}",
	        ": slow methods and changes, 1970-01-01 00:00 to 1970-01-01 00:00 UTC\n\n"
	        "New groups of ANRs\n\n- a.B.c, 1 report. \n- d.E.f, 2 reports. \n\n"
	        "Scenarios, 1970-01-01 against 1970-01-01 (UTC)\n\n"
	        "- Traces without a scenario: median 1.00 µs, 95th percentile 2.00 µs, 1 trace\n\n"
	        "Slowest methods by self time, 1970-01-01 (UTC)\n\n"
	        "- a.B.c: 1.00 µs per trace, in 2 traces\n\n"
	        "Traces\n\n1 trace received, 0 of them could not be decoded, 1 was deleted by "
	        "retention.\n\n");
}

static void expect_issue(const struct tw_issue *i, const char *text)
{
	struct tw_buf out;

	tw_buf_init(&out, 1 << 16);
	tw_issue_body(i, &out);
	expect(&out, text);
}

static void test_texts_of_issues(void **state)
{
	json_t *anr =
	        json_loads("{\"verdict\":\"It waits.\",\"count\":1,\"users\":0,\"versions\":1,"
	                   "\"devices\":2}",
	                0, NULL);
	json_t *slow = json_loads("{\"method\":\"a.B.c\",\"head\":\"2\",\"percentile\":50,"
	                          "\"traces_before\":1,\"traces_after\":2}",
	        0, NULL);
	json_t *blame = json_loads(
	        "{\"path\":\"src/"
	        "B.kt\",\"link\":null,\"base_commit\":\"f00\",\"owners\":[{\"names\":"
	        "[\"@team\",\"@dora\"]},{\"names\":[]}],\"commits\":[{\"id\":\"0123456789abcdef\","
	        "\"author\":\"Bob\",\"time_ms\":1767225600000,\"summary\":\"Fix (it) *now*\","
	        "\"lines\":2,\"link\":null}]}",
	        0, NULL);

	(void)state;
	expect_issue(&(struct tw_issue){.tracker = TW_GITHUB,
	                     .base = "",
	                     .project_id = "P",
	                     .anr = anr,
	                     .traces = {{"T1", "", "", ""}, {"T2", "8.3", "Pixel", "14"}},
	                     .n_traces = 2},
	        "It waits.\n\n1 report, in 1 version on 2 devices.\n\n"
	        "## Where to look\n\n- `T1`\n- `T2`, version `8.3`, `Pixel`, Android `14`\n\n"
	        "## Done when\n\nNo report of a later version is in this group.\n\n");
	expect_issue(&(struct tw_issue){.tracker = TW_GITHUB,
	                     .base = "",
	                     .project_id = "P",
	                     .regression = slow,
	                     .classes = {{"high", 1, 2, 1000, 2000}},
	                     .n_classes = 1,
	                     .blame = blame},
	        "`a.B.c` got slower: 0 % in `2`: 0 ns to 0 ns at the median, 95 % confidence "
	        "interval "
	        "about 0 %.\n\nMeasured in 1 trace before and 2 since then, compared by day and "
	        "class of device; 0.0 standard errors.\n\n## Trace duration, by class of "
	        "device\n\n"
	        "- high: median 1.00 µs (1 trace) to 2.00 µs (2 traces)\n\n"
	        "## Suspect commits\n\n- `0123456789ab` Fix (it) \\*now\\* (Bob on 2026-01-01, 2 "
	        "lines)\n\n"
	        "## Source\n\n- `src/B.kt`\n- Owned by `@team`, `@dora`\n\n"
	        "## Where to look\n\n\n"
	        "## Done when\n\nA later version is back at 0 ns. tracewell then marks the "
	        "regression as fixed, and reopens it if it returns.\n\n");
	json_decref(blame);
	json_decref(anr);
	json_decref(slow);
}

/* 120 bytes, of a longer name. */
#define TEN       "aaaaaaaaa."
#define LONG_NAME TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
static const char long_name[] = "b" LONG_NAME;

static void expect_methods(enum tw_tracker tracker, json_t *regression, const char *text)
{
	const struct tw_issue issue = {.tracker = tracker,
	        .base = "",
	        .project_id = "P",
	        .regression = regression,
	        .methods = {{"a.B.c", 20000000, 38600000, false},
	                {"a.`x`|{{y}}\n# *z*@all", 0, 46000000, true},
	                {long_name, 1000, 2000, false}},
	        .n_methods = 3};
	struct tw_buf out;

	tw_buf_init(&out, 1 << 16);
	tw_issue_body(&issue, &out);
	(void)tw_buf_add_u8(&out, 0);
	assert_int_equal(tw_buf_status(&out), TW_OK);
	if (!strstr((const char *)out.data, text))
		fail_msg("%s\nis not in\n%s", text, (const char *)out.data);
	tw_buf_done(&out);
}

static void test_issues_name_methods_that_grew(void **state)
{
	json_t *slow =
	        json_loads("{\"scenario\":\"start\",\"base\":\"1\",\"head\":\"2\"}", 0, NULL);

	(void)state;
	expect_methods(TW_GITHUB, slow,
	        "## Where to look\n\n\n## Methods with the largest increase of mean self time "
	        "per trace\n\n"
	        "- `a.B.c`: 20.0 ms to 38.6 ms\n- ``a.`x`|{{y}} # *z*@all``: new, 46.0 ms\n"
	        "- `…" LONG_NAME "`: 1.00 µs to 2.00 µs\n\n");
	expect_methods(TW_JIRA, slow,
	        "h3. Methods with the largest increase of mean self time per trace\n\n"
	        "* {{a.B.c}}: 20.0 ms to 38.6 ms\n"
	        "* {{a.`x`\\|\\{\\{y\\}\\} \\# \\*z\\*\\@all}}: new, 46.0 ms\n"
	        "* {{…" LONG_NAME "}}: 1.00 µs to 2.00 µs\n\n");
	json_decref(slow);
}

/* The figures of a change: web/test/change.test.ts holds the page to this table, too. */
static const struct {
	double share;
	const char *text;
} figures[] = {
        {0, "0 %"},
        {0.0004, "<0.1 %"},
        {0.001, "0.1 %"},
        {0.0312, "3.1 %"},
        {0.0994, "9.9 %"},
        {0.0997, "10 %"},
        {0.474, "47 %"},
        {1.5, "150 %"},
        {12.34, "1,234 %"},
};

/* Figures of alerts, which the page holds to as well. */
static const struct {
	const char *unit;
	double value;
	const char *text;
} alert_figures[] = {
        {"ms", 15.24, "15.2 ms"},
        {"ms", 800, "800 ms"},
        {"share", 0.66667, "67 %"},
        {"share", 0.0312, "3.1 %"},
        {"times", 4.123, "4.12 times"},
        {"times", 1234, "1234 times"},
};

static void expect_alert(const char *json, const char *part)
{
	json_t *facts = json_loads(json, 0, NULL);
	struct tw_buf out;
	struct tw_text_links w = {{&out, TW_MARKUP_PLAIN}, "", "P"};

	assert_non_null(facts);
	tw_buf_init(&out, 1 << 16);
	tw_text_event(&w, TW_HOOK_ALERT, facts);
	(void)tw_buf_add_u8(&out, 0);
	if (!strstr((const char *)out.data, part))
		fail_msg("%s is not in %s", part, (const char *)out.data);
	tw_buf_done(&out);
	json_decref(facts);
}

static void test_an_alert_has_one_figure(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof alert_figures / sizeof *alert_figures; i++) {
		char facts[300], text[300];
		const char *unit = alert_figures[i].unit, *shown = alert_figures[i].text;

		(void)snprintf(facts, sizeof facts,
		        "{\"alert\":{\"kind\":\"%s\",\"anr\":\"\",\"unit\":\"%s\",\"percentile\":"
		        "95,"
		        "\"value\":%f,\"threshold\":%f,\"traces\":12,\"days\":7}}",
		        strcmp(unit, "share") == 0 ? "slow_frames" : "duration", unit,
		        alert_figures[i].value, alert_figures[i].value);
		(void)snprintf(text, sizeof text, ": %s (threshold: %s;", shown, shown);
		expect_alert(facts, text);
	}
}

static void test_an_interval_of_one_figure_shows_it_once(void **state)
{
	char low[TW_FIGURE_BYTES], high[TW_FIGURE_BYTES], text[TW_INTERVAL_BYTES];

	(void)state;
	assert_string_equal(tw_interval_text(tw_percent_text(0.318, true, low),
	                            tw_percent_text(0.331, true, high), text),
	        "+32 % to +33 %");
	assert_string_equal(tw_interval_text(tw_percent_text(0.318, true, low),
	                            tw_percent_text(0.324, true, high), text),
	        "about +32 %");
}

static void test_a_change_has_one_figure(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
		struct tw_buf out;
		struct tw_markup_out p = {&out, TW_MARKUP_PLAIN};

		tw_buf_init(&out, 1000);
		tw_markup_percent(&p, -figures[i].share, false);
		(void)tw_buf_add_u8(&out, 0);
		assert_string_equal((const char *)out.data, figures[i].text);
		tw_buf_done(&out);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_known_signature),
        cmocka_unit_test(test_waits_double_to_a_bound),
        cmocka_unit_test(test_private_addresses),
        cmocka_unit_test(test_private_hosts),
        cmocka_unit_test(test_addresses_of_hooks),
        cmocka_unit_test(test_names_stay_data),
        cmocka_unit_test(test_cards_have_no_links_of_others),
        cmocka_unit_test(test_cards_have_bold_headings),
        cmocka_unit_test(test_texts_and_links),
        cmocka_unit_test(test_long_names_are_cut_between_characters),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_mail),
        cmocka_unit_test(test_periods),
        cmocka_unit_test(test_bodies_survive_any_facts),
        cmocka_unit_test(test_a_long_issue_fits_an_address),
        cmocka_unit_test(test_texts_of_events),
        cmocka_unit_test(test_texts_of_digests),
        cmocka_unit_test(test_texts_of_issues),
        cmocka_unit_test(test_issues_name_methods_that_grew),
        cmocka_unit_test(test_an_interval_of_one_figure_shows_it_once),
        cmocka_unit_test(test_a_change_has_one_figure),
        cmocka_unit_test(test_an_alert_has_one_figure),
};

UNIT_TESTS("hook", tests)
