/*
 * detect_read.c - parses and validates a document of detector rules.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/query/detect/detect_rules.h"

const char *const tw_detect_kinds[] = {"json", "io", "database", "bitmap", "binder", "inflation",
        "reflection", "class_loading", "lock", "sleep", "own", NULL};
#define KINDS                                                                                      \
	"json, io, database, bitmap, binder, inflation, reflection, class_loading, lock, sleep "   \
	"or own"

enum { FRAME_MS_MAX = 60000 };

static const char *const members[] = {"id", "kind", "title", "methods", "notes", "threads",
        "threshold_ms", "severity", "message", "enabled", NULL};
static const char *const severities[] = {"info", "warning", "error", NULL};

struct reading { /* per rule */
	const json_t *o;
	size_t at;
	size_t *expressions; /* number of expressions in all rules so far */
};

static bool is_in(const char *const *words, const char *word, unsigned *ret_at)
{
	unsigned i = 0;

	while (words[i] && strcmp(words[i], word) != 0)
		i++;
	*ret_at = i;
	return words[i] != NULL;
}

/* Names a rule by its number and, if it has a valid one, its id. */
static enum tw_status wrong(
        const struct reading *r, const char *member, const char *what, struct tw_err *err)
{
	const char *id = json_string_value(json_object_get(r->o, "id"));

	return tw_fail(err, TW_BAD_REQUEST, "rule %zu%s%.40s%s: %s: %s", r->at + 1, id ? " (" : "",
	        id ? id : "", id ? ")" : "", member, what);
}

static enum tw_status check_members(const struct reading *r, struct tw_err *err)
{
	const char *name;
	json_t *v;
	unsigned at;

	if (!json_is_object(r->o))
		return tw_fail(err, TW_BAD_REQUEST, "rule %zu: a rule is an object", r->at + 1);
	json_object_foreach((json_t *)(uintptr_t)r->o, name, v)
	{
		char member[41];

		if (is_in(members, name, &at))
			continue;
		(void)tw_utf8_clean(member, sizeof member, tw_str_of(name));
		return wrong(r, member,
		        "is not a member of a rule; the members are id, kind, title, methods, "
		        "notes, "
		        "threads, threshold_ms, severity, message and enabled",
		        err);
	}
	return TW_OK;
}

struct member {
	const char *name;
	const char *fallback; /* NULL: required */
	size_t max;
	const char *what;
};

static enum tw_status read_text(
        const struct reading *r, const struct member *m, const char **ret, struct tw_err *err)
{
	const json_t *v = json_object_get(r->o, m->name);
	const char *text = json_string_value(v);

	*ret = v ? text : m->fallback;
	if (!*ret || json_string_length(v) > m->max || (v && !text[0] && !m->fallback) ||
	        (v && strlen(text) != json_string_length(v)) || tw_str_has_control(tw_str_of(*ret)))
		return wrong(r, m->name, m->what, err);
	return TW_OK;
}

static bool is_id(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(s);
}

static enum tw_status read_texts(
        const struct reading *r, struct tw_detect_rule *rule, struct tw_err *err)
{
	static const char id[] = "1 to 40 of a to z, 0 to 9, _ and -";
	const struct {
		struct member m;
		const char **at;
	} texts[] = {
	        {{"id", NULL, TW_DETECT_ID_BYTES, id}, &rule->id},
	        {{"kind", NULL, 40, "one of " KINDS}, &rule->kind},
	        {{"title", NULL, TW_DETECT_TITLE_BYTES,
	                 "a text of 1 to 100 bytes without control characters"},
	                &rule->title},
	        {{"threads", "main", TW_DETECT_TITLE_BYTES,
	                 "main, others, all, or a name of at most 100 bytes, with * for any text"},
	                &rule->threads},
	        {{"severity", "warning", 40, "info, warning or error"}, &rule->severity},
	        {{"message", "", TW_DETECT_MESSAGE_BYTES,
	                 "a text of at most 300 bytes without control characters"},
	                &rule->message},
	};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < sizeof texts / sizeof *texts; i++)
		st = read_text(r, &texts[i].m, texts[i].at, err);
	return st == TW_OK && !is_id(rule->id) ? wrong(r, "id", id, err) : st;
}

static enum tw_status read_words(
        const struct reading *r, struct tw_detect_rule *rule, struct tw_err *err)
{
	const json_t *on = json_object_get(r->o, "enabled");
	unsigned at;
	enum tw_status st = read_texts(r, rule, err);

	if (st != TW_OK)
		return st;
	if (!is_in(tw_detect_kinds, rule->kind, &at))
		return wrong(r, "kind", "one of " KINDS, err);
	if (!is_in(severities, rule->severity, &at))
		return wrong(r, "severity", "info, warning or error", err);
	if (!rule->threads[0])
		return wrong(r, "threads", "main, others, all, or a name with *", err);
	if (on && !json_is_boolean(on))
		return wrong(r, "enabled", "true or false", err);
	rule->on = !json_is_false(on);
	return TW_OK;
}

/* NaN and infinities are not valid JSON. */
static enum tw_status read_threshold(
        const struct reading *r, struct tw_detect_rule *rule, struct tw_err *err)
{
	const json_t *v = json_object_get(r->o, "threshold_ms");
	double ms = json_number_value(v);

	if (!json_is_number(v) || ms < 0 || ms > TW_DETECT_THRESHOLD_MS)
		return wrong(r, "threshold_ms", "a number of milliseconds, 0 to 600000", err);
	rule->threshold_ns = llround(ms * 1e6);
	return TW_OK;
}

static enum tw_status read_notes(
        const struct reading *r, struct tw_detect_rule *rule, struct tw_err *err)
{
	const json_t *list = json_object_get(r->o, "notes");

	if (list && (!json_is_array(list) || json_array_size(list) > TW_NOTE_COUNT))
		return wrong(r, "notes", "a list of kinds of notes", err);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *word = json_string_value(json_array_get(list, i));
		enum tw_note_kind kind = word ? tw_note_of_name(word) : TW_NOTE_COUNT;

		if (kind == TW_NOTE_COUNT)
			return wrong(r, "notes",
			        "each must be a kind of note, such as contention, wait, park, gc, "
			        "io, binder or class_load",
			        err);
		rule->notes |= UINT64_C(1) << kind;
	}
	return TW_OK;
}

static enum tw_status read_pattern(
        const struct reading *r, struct tw_detect_rule *rule, const json_t *v, struct tw_err *err)
{
	const struct tw_str text = {json_string_value(v), json_string_length(v)};
	struct tw_err why = {.msg = ""};
	char what[200];
	enum tw_status st;

	if (!text.ptr)
		return wrong(r, "methods", "each is a text", err);
	*r->expressions += tw_name_pattern_is_expression(text);
	if (*r->expressions > TW_DETECT_EXPRESSIONS_MAX)
		return wrong(r, "methods", "all rules together have at most 40 /expressions/", err);
	st = tw_name_pattern_init(&rule->patterns[rule->n_patterns], text, &why);
	if (st == TW_OK)
		rule->n_patterns++;
	else if (st == TW_BAD_REQUEST) {
		char shown[64];

		(void)tw_utf8_clean(shown, sizeof shown, text);
		(void)snprintf(what, sizeof what, "%s: %.110s", shown, why.msg);
		return wrong(r, "methods", what, err);
	} else
		tw_err_copy(err, &why);
	return st;
}

static enum tw_status read_methods(
        const struct reading *r, struct tw_detect_rule *rule, struct tw_err *err)
{
	const json_t *list = json_object_get(r->o, "methods");
	size_t n = json_array_size(list);
	enum tw_status st = TW_OK;

	if (list && (!json_is_array(list) || n > TW_DETECT_PATTERNS_MAX))
		return wrong(r, "methods", "a list of at most 100 patterns of names", err);
	if (n == 0 && !rule->notes)
		return wrong(r, "methods", "set methods or notes", err);
	rule->patterns = tw_mem_zalloc(n + 1, sizeof *rule->patterns);
	if (!rule->patterns)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = read_pattern(r, rule, json_array_get(list, i), err);
	return st;
}

static enum tw_status read_rule(
        const struct reading *r, struct tw_detect_rule *rule, struct tw_err *err)
{
	enum tw_status st = check_members(r, err);

	if (st == TW_OK)
		st = read_words(r, rule, err);
	if (st == TW_OK)
		st = read_threshold(r, rule, err);
	if (st == TW_OK)
		st = read_notes(r, rule, err);
	return st == TW_OK ? read_methods(r, rule, err) : st;
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

static enum tw_status read_ms(
        const json_t *frames, const char *name, int64_t ms, int64_t *ret_ns, struct tw_err *err)
{
	const json_t *v = json_object_get(frames, name);
	double value = v ? json_number_value(v) : (double)ms;

	if ((v && !json_is_number(v)) || value < 1 || value > FRAME_MS_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "frames: %s: a number of milliseconds, 1 to %d",
		        name, FRAME_MS_MAX);
	*ret_ns = llround(value * 1e6);
	return TW_OK;
}

static enum tw_status read_frames(
        struct tw_detect_rules *d, const json_t *frames, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	const char *name;
	json_t *v;

	if (frames && !json_is_object(frames))
		st = tw_fail(err, TW_BAD_REQUEST, "frames: an object with slow_ms and frozen_ms");
	json_object_foreach((json_t *)(uintptr_t)frames, name, v)
	{
		(void)v;
		if (strcmp(name, "slow_ms") != 0 && strcmp(name, "frozen_ms") != 0)
			return tw_fail(err, TW_BAD_REQUEST,
			        "frames: unknown member %.40s; the members are slow_ms and "
			        "frozen_ms",
			        name);
	}
	if (st == TW_OK)
		st = read_ms(frames, "slow_ms", 16, &d->slow_ns, err);
	if (st == TW_OK)
		st = read_ms(frames, "frozen_ms", 700, &d->frozen_ns, err);
	if (st == TW_OK && d->slow_ns > d->frozen_ns)
		st = tw_fail(err, TW_BAD_REQUEST, "frames: slow_ms must not exceed frozen_ms");
	return st;
}

/* --- the document --- */

static enum tw_status read_all(struct tw_detect_rules *d, const json_t *doc, struct tw_err *err)
{
	const json_t *list = json_object_get(doc, "rules");
	size_t expressions = 0;
	enum tw_status st = read_frames(d, json_object_get(doc, "frames"), err);

	for (size_t i = 0; st == TW_OK && i < json_array_size(list); i++) {
		const struct reading r = {json_array_get(list, i), i, &expressions};

		d->n++;
		st = read_rule(&r, &d->rules[i], err);
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
