#include "server/catalogue/access/capture.h"

#include <fnmatch.h>
#include <string.h>

#include "server/base/secret.h"
#include "server/base/text/json.h"
#include "server/base/text/members.h"
#include "server/catalogue/access/catalogue_setting.h"

enum { VALID_LEAST_S = 60, VALID_MOST_S = 86400, STARS_MAX = 4, DEVICE_ID_BYTES = 512 };

static const char *const conditions[] = {"app", "version_name", "device", "os", NULL};
enum { CONDITIONS = sizeof conditions / sizeof *conditions - 1 };

/* --- validation --- */

/* Names are used in URLs and counters: letters, digits and . _ - */
static bool is_name(const char *s)
{
	size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return len > 0 && len <= TW_CAPTURE_NAME_MAX && s[len] == '\0';
}

/* Many stars would make matching slow. */
static bool is_pattern(const char *s)
{
	unsigned stars = 0;

	if (!*s || strlen(s) > TW_CAPTURE_PATTERN_BYTES)
		return false;
	for (const char *p = s; *p; p++)
		stars += *p == '*';
	return stars <= STARS_MAX;
}

#define PATTERNS(name_)                                                                            \
	{                                                                                          \
		.name = (name_), .kind = TW_MEMBER_TEXTS, .max = TW_CAPTURE_PATTERNS_MAX,          \
		.fits = is_pattern, .form = "a pattern of 1 to 64 bytes with at most 4 stars"      \
	}
static const struct tw_member where_members[] = {
        PATTERNS("app"), PATTERNS("version_name"), PATTERNS("device"), PATTERNS("os"), {0}};

static const struct tw_member members[] = {
        {.name = "name", .kind = TW_MEMBER_OTHER},
        {.name = "enabled", .kind = TW_MEMBER_FLAG},
        {.name = "scenario",
                .kind = TW_MEMBER_TEXT,
                .max = TW_CAPTURE_NAME_MAX,
                .form = "a text of at most 64 bytes"},
        {.name = "where", .kind = TW_MEMBER_OBJECT},
        {.name = "share", .kind = TW_MEMBER_REAL, .max = 1},
        {.name = "per_day",
                .kind = TW_MEMBER_NUMBER,
                .max = INT64_MAX,
                .bytes = sizeof(int64_t),
                .form = "a whole number of traces, or 0 for no limit"},
        {.name = "record", .kind = TW_MEMBER_OBJECT},
        {0},
};

static enum tw_status check_members(const json_t *r, struct tw_err *err)
{
	const json_t *record = json_object_get(r, "record");
	const json_t *where = json_object_get(r, "where");
	enum tw_status st = tw_members_known(r, members, err);

	if (st == TW_OK)
		st = tw_members_read(r, members, NULL, err);
	if (st == TW_OK && record &&
	        json_dumpb(record, NULL, 0, JSON_COMPACT) > TW_CAPTURE_RECORD_BYTES)
		st = tw_fail(err, TW_BAD_REQUEST, "record is longer than 4096 bytes");
	if (st != TW_OK || !where)
		return st;
	st = tw_members_known(where, where_members, err);
	if (st == TW_OK)
		st = tw_members_read(where, where_members, NULL, err);
	return tw_fail_within(st, err, "where");
}

static enum tw_status check_rule(const json_t *rules, size_t at, struct tw_err *err)
{
	const json_t *r = json_array_get(rules, at);
	const char *name = tw_json_text(r, "name");
	enum tw_status st = TW_OK;

	if (!is_name(name))
		return tw_fail(err, TW_BAD_REQUEST,
		        "capture rule %zu: a name has 1 to 64 letters, digits and . _ -", at + 1);
	for (size_t i = 0; st == TW_OK && i < at; i++)
		if (strcmp(tw_json_text(json_array_get(rules, i), "name"), name) == 0)
			st = tw_fail(err, TW_BAD_REQUEST, "the name is used twice");
	if (st == TW_OK)
		st = check_members(r, err);
	return tw_fail_within(st, err, "capture rule %.64s", name);
}

enum tw_status tw_capture_check(const json_t *doc, struct tw_err *err)
{
	const json_t *valid = json_object_get(doc, "max_age_s");
	const json_t *rules = json_object_get(doc, "rules");
	json_int_t s = json_integer_value(valid);
	enum tw_status st = TW_OK;

	if (valid && (!json_is_integer(valid) || s < VALID_LEAST_S || s > VALID_MOST_S))
		return tw_fail(err, TW_BAD_REQUEST,
		        "max_age_s is a whole number of seconds from %d to %d", VALID_LEAST_S,
		        VALID_MOST_S);
	if (!json_is_array(rules) || json_array_size(rules) > TW_CAPTURE_RULES_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "rules must be a list of at most %d rules",
		        TW_CAPTURE_RULES_MAX);
	for (size_t i = 0; st == TW_OK && i < json_array_size(rules); i++)
		st = check_rule(rules, i, err);
	return st;
}

const struct tw_setting tw_capture_setting = {TW_SETTING_CAPTURE, tw_capture_check};

/* --- response to a device --- */

static bool one_fits(const json_t *patterns, const char *text)
{
	json_t *p;
	size_t i;

	json_array_foreach(patterns, i, p)
	{
		if (fnmatch(json_string_value(p), text, FNM_NOESCAPE) == 0)
			return true;
	}
	return json_array_size(patterns) == 0;
}

static bool fits(const json_t *rule, const struct tw_capture_device *d)
{
	const json_t *where = json_object_get(rule, "where");
	const char *scenario = json_string_value(json_object_get(rule, "scenario"));
	const char *const values[] = {d->app, d->version_name, d->device, d->os};

	_Static_assert(sizeof values / sizeof *values == CONDITIONS, "a text for each condition");
	if (scenario && *scenario && *d->scenario && strcmp(scenario, d->scenario) != 0)
		return false;
	for (size_t i = 0; i < CONDITIONS; i++)
		if (!one_fits(json_object_get(where, conditions[i]), values[i]))
			return false;
	return true;
}

static double share_of(const json_t *rule)
{
	const json_t *share = json_object_get(rule, "share");

	return share ? json_number_value(share) : 1;
}

/* The first 52 bits of SHA-256 of "rule\ndevice", as a number from 0 to 1. */
static bool is_chosen(const char *rule, const char *device, double share)
{
	char text[TW_CAPTURE_NAME_MAX + 1 + DEVICE_ID_BYTES + 1];
	size_t name = strlen(rule);
	size_t len = strnlen(device, DEVICE_ID_BYTES);
	uint64_t bits;

	memcpy(text, rule, name);
	text[name] = '\n';
	memcpy(text + name + 1, device, len);
	text[name + 1 + len] = '\0';
	bits = tw_secret_bits(text);
	return (double)(bits >> 12) / (double)(UINT64_C(1) << 52) < share;
}

static json_t *capture_of(const json_t *rule, bool drawn)
{
	json_t *record = json_object_get(rule, "record");
	json_t *c = json_pack("{s:O, s:s, s:o}", "rule", json_object_get(rule, "name"), "scenario",
	        json_object_get(rule, "scenario")
	                ? json_string_value(json_object_get(rule, "scenario"))
	                : "",
	        "record", record ? json_incref(record) : json_object());

	if (c && !drawn && json_object_set_new(c, "share", json_real(share_of(rule))) != 0) {
		json_decref(c);
		return NULL;
	}
	return c;
}

static bool is_due(const json_t *rule, const struct tw_capture_device *d, uint64_t taken)
{
	const char *name = json_string_value(json_object_get(rule, "name"));
	json_int_t per_day = json_integer_value(json_object_get(rule, "per_day"));

	if (json_is_false(json_object_get(rule, "enabled")) || share_of(rule) <= 0 ||
	        !fits(rule, d))
		return false;
	if (per_day && taken >= (uint64_t)per_day)
		return false;
	return !*d->id || is_chosen(name, d->id, share_of(rule));
}

json_t *tw_capture_response(const json_t *doc, const struct tw_capture_device *d,
        uint64_t (*taken)(void *arg, const char *rule), void *arg)
{
	const json_t *valid = json_object_get(doc, "max_age_s");
	json_t *captures = json_array();
	json_t *rule;
	size_t i;
	bool ok = captures != NULL;

	json_array_foreach(json_object_get(doc, "rules"), i, rule)
	{
		const char *name = json_string_value(json_object_get(rule, "name"));

		if (ok && is_due(rule, d, taken(arg, name)))
			ok = json_array_append_new(captures, capture_of(rule, *d->id)) == 0;
	}
	if (!ok) {
		json_decref(captures);
		return NULL;
	}
	return json_pack("{s:I, s:o}", "max_age_s",
	        valid ? json_integer_value(valid) : (json_int_t)TW_CAPTURE_VALID_S, "captures",
	        captures);
}
