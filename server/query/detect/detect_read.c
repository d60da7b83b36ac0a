/*
 * detect_read.c - parses and validates a document of detector rules.
 */
#include <math.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/text/members.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/query/detect/detect_rules.h"

const char *const tw_detect_kinds[] = {"json", "io", "database", "bitmap", "binder", "inflation",
        "reflection", "class_loading", "lock", "sleep", "own", NULL};
#define KINDS                                                                                      \
	"json, io, database, bitmap, binder, inflation, reflection, class_loading, lock, sleep "   \
	"or own"

enum { FRAME_MS_MAX = 60000 };

static const char *const severities[] = {"info", "warning", "error", NULL};

/* --- one rule --- */

static bool is_in(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static bool is_id(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(s);
}

static bool is_kind(const char *s)
{
	return is_in(tw_detect_kinds, s);
}

static bool is_severity(const char *s)
{
	return is_in(severities, s);
}

static bool is_note(const char *s)
{
	return tw_note_of_name(s) != TW_NOTE_COUNT;
}

struct reading {
	struct tw_detect_rule rule;
	double threshold_ms;
	const json_t *notes, *methods;
};

#define FIELD(kind_, name_, member, ...)                                                           \
	{                                                                                          \
		.name = (name_), .kind = (kind_), .offset = offsetof(struct reading, member),      \
		__VA_ARGS__                                                                        \
	}
#define TEXT(member, max_, form_, ...)                                                             \
	FIELD(TW_MEMBER_TEXT, #member, rule.member, .max = (max_), .form = (form_), __VA_ARGS__)
static const struct tw_member members[] = {
        TEXT(id, TW_DETECT_ID_BYTES, "1 to 40 characters of a to z, 0 to 9, _ and -",
                .required = true, .min = 1, .fits = is_id),
        TEXT(kind, 40, "one of " KINDS, .required = true, .min = 1, .fits = is_kind),
        TEXT(title, TW_DETECT_TITLE_BYTES, "a text of 1 to 100 bytes without control characters",
                .required = true, .min = 1),
        FIELD(TW_MEMBER_TEXTS, "methods", methods, .max = TW_DETECT_PATTERNS_MAX, .form = "a text"),
        FIELD(TW_MEMBER_TEXTS, "notes", notes, .max = TW_NOTE_COUNT, .fits = is_note,
                .form = "a kind of note, such as contention, wait, park, gc, io, "
                        "binder or class_load"),
        TEXT(threads, TW_DETECT_TITLE_BYTES,
                "main, others, all, or a name of at most 100 bytes, with * for any text", .min = 1),
        FIELD(TW_MEMBER_REAL, "threshold_ms", threshold_ms, .required = true,
                .max = TW_DETECT_THRESHOLD_MS, .form = "a number of milliseconds from 0 to 600000"),
        TEXT(severity, 40, "info, warning or error", .min = 1, .fits = is_severity),
        TEXT(message, TW_DETECT_MESSAGE_BYTES,
                "a text of at most 300 bytes without control characters"),
        FIELD(TW_MEMBER_FLAG, "enabled", rule.on),
        {0},
};

static enum tw_status read_pattern(
        struct tw_detect_rule *rule, const json_t *v, size_t *io_expressions, struct tw_err *err)
{
	const struct tw_str text = {json_string_value(v), json_string_length(v)};
	char shown[64];
	enum tw_status st;

	*io_expressions += tw_name_pattern_is_expression(text);
	if (*io_expressions > TW_DETECT_EXPRESSIONS_MAX)
		return tw_fail(
		        err, TW_BAD_REQUEST, "all rules together have at most 40 /expressions/");
	st = tw_name_pattern_init(&rule->patterns[rule->n_patterns], text, err);
	rule->n_patterns += st == TW_OK;
	(void)tw_utf8_clean(shown, sizeof shown, text);
	return tw_fail_within(st, err, "%s", shown);
}

static enum tw_status read_methods(const struct reading *r, struct tw_detect_rule *rule,
        size_t *io_expressions, struct tw_err *err)
{
	const size_t n = json_array_size(r->methods);
	enum tw_status st = TW_OK;

	if (n == 0 && !rule->notes)
		return tw_fail(err, TW_BAD_REQUEST, "set methods or notes");
	rule->patterns = tw_mem_zalloc(n + 1, sizeof *rule->patterns);
	if (!rule->patterns)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = read_pattern(rule, json_array_get(r->methods, i), io_expressions, err);
	return st;
}

static enum tw_status read_rule(
        const json_t *o, struct tw_detect_rule *ret, size_t *io_expressions, struct tw_err *err)
{
	struct reading r = {
	        .rule = {.threads = "main", .severity = "warning", .message = "", .on = true}};
	enum tw_status st = tw_members_known(o, members, err);

	if (st == TW_OK)
		st = tw_members_read(o, members, &r, err);
	if (st != TW_OK)
		return st;
	*ret = r.rule;
	ret->threshold_ns = llround(r.threshold_ms * 1e6);
	for (size_t i = 0; i < json_array_size(r.notes); i++)
		ret->notes |= UINT64_C(1)
		              << tw_note_of_name(json_string_value(json_array_get(r.notes, i)));
	return tw_fail_within(read_methods(&r, ret, io_expressions, err), err, "methods");
}

/* Names a rule by its number and, if it has one, its id. */
static enum tw_status name_rule(enum tw_status st, const json_t *o, size_t at, struct tw_err *err)
{
	const char *id = json_string_value(json_object_get(o, "id"));

	return id ? tw_fail_within(st, err, "rule %zu (%.40s)", at + 1, id)
	          : tw_fail_within(st, err, "rule %zu", at + 1);
}

/* Each of a project's own rules is a separate group. */
static void group(struct tw_detect_rules *d)
{
	for (size_t i = 0; i < d->n; i++) {
		size_t first = strcmp(d->rules[i].kind, "own") == 0 ? i : 0;

		while (strcmp(d->rules[first].kind, d->rules[i].kind) != 0)
			first++;
		d->rules[i].group = (unsigned)first;
	}
}

static enum tw_status check_ids(const struct tw_detect_rules *d, struct tw_err *err)
{
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(d->rules[i].id, d->rules[k].id) == 0)
				return tw_fail(err, TW_BAD_REQUEST,
				        "rule %zu: id: rule %zu has the same id, %s", i + 1, k + 1,
				        d->rules[i].id);
	return TW_OK;
}

/* --- frames --- */

#define FRAME_MS(name_, at)                                                                        \
	{                                                                                          \
		.name = (name_), .kind = TW_MEMBER_REAL, .min = 1, .max = FRAME_MS_MAX,            \
		.offset = (at) * sizeof(double),                                                   \
		.form = "a number of milliseconds from 1 to 60000"                                 \
	}
static const struct tw_member frame_members[] = {
        FRAME_MS("slow_ms", 0), FRAME_MS("frozen_ms", 1), {0}};

static enum tw_status read_frames(
        struct tw_detect_rules *d, const json_t *frames, struct tw_err *err)
{
	double ms[] = {16, 700};
	enum tw_status st = frames ? tw_members_known(frames, frame_members, err) : TW_OK;

	if (st == TW_OK)
		st = tw_members_read(frames, frame_members, ms, err);
	if (st == TW_OK && ms[0] > ms[1])
		st = tw_fail(err, TW_BAD_REQUEST, "slow_ms must not exceed frozen_ms");
	d->slow_ns = llround(ms[0] * 1e6);
	d->frozen_ns = llround(ms[1] * 1e6);
	return tw_fail_within(st, err, "frames");
}

/* --- the document --- */

static enum tw_status read_all(struct tw_detect_rules *d, const json_t *doc, struct tw_err *err)
{
	const json_t *list = json_object_get(doc, "rules");
	size_t expressions = 0;
	enum tw_status st = read_frames(d, json_object_get(doc, "frames"), err);

	for (size_t i = 0; st == TW_OK && i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);

		d->n++;
		st = read_rule(o, &d->rules[i], &expressions, err);
		st = name_rule(st, o, i, err);
	}
	if (st == TW_OK)
		group(d);
	return st == TW_OK ? check_ids(d, err) : st;
}

enum tw_status tw_detect_rules_new(
        const json_t *doc, struct tw_detect_rules **ret, struct tw_err *err)
{
	const json_t *list = json_object_get(doc, "rules");
	size_t n = json_array_size(list);
	struct tw_detect_rules *d;
	enum tw_status st;

	if (!json_is_array(list) || n > TW_DETECT_RULES_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "rules must be a list of at most %d rules",
		        TW_DETECT_RULES_MAX);
	d = tw_mem_zalloc(1, sizeof *d + n * sizeof *d->rules);
	if (!d)
		return tw_oom(err);
	st = read_all(d, doc, err);
	if (st == TW_OK)
		*ret = d;
	else
		tw_detect_rules_free(d);
	return st;
}

struct tw_detect_rules *tw_detect_rules_free(struct tw_detect_rules *r)
{
	for (size_t i = 0; r && i < r->n; i++) {
		for (size_t k = 0; k < r->rules[i].n_patterns; k++)
			tw_name_pattern_done(&r->rules[i].patterns[k]);
		tw_mem_free(r->rules[i].patterns);
	}
	tw_mem_free(r);
	return NULL;
}

static enum tw_status check_document(const json_t *doc, struct tw_err *err)
{
	struct tw_detect_rules *rules = NULL;
	enum tw_status st = tw_detect_rules_new(doc, &rules, err);

	tw_detect_rules_free(rules);
	return st;
}

const struct tw_setting tw_detect_setting = {TW_RULESET_DETECTORS, check_document};
