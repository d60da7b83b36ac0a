#include "server/auth/oidc/oidc_claim.h"

#include <string.h>
#include <strings.h>

#include "decoder/base/lookup.h"

static const struct {
	const char *name;
	enum tw_scope scope;
} roles[] = {{"viewer", TW_SCOPE_READ}, {"editor", TW_SCOPE_WRITE}, {"admin", TW_SCOPE_ADMIN}};

static enum tw_status no_rule(struct tw_str rule, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST,
	        "%.*s is not a role: use viewer:PROJECT, editor:PROJECT, admin:PROJECT or "
	        "server-admin, after VALUE= in --oidc-roles",
	        (int)(rule.len < 60 ? rule.len : 60), rule.ptr);
}

static bool read_role(struct tw_str text, struct tw_role_rule *ret)
{
	struct tw_str word = tw_str_trim(tw_str_split(&text, ':'));
	struct tw_str project = tw_str_trim(text);

	if (tw_str_eq(word, TW_STR("server-admin")) && project.len == 0) {
		ret->scope = TW_SCOPE_SERVER;
		return true;
	}
	if (project.len == 0 || project.len >= sizeof ret->project)
		return false;
	memcpy(ret->project, project.ptr, project.len);
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (tw_str_eq(word, tw_str_of(roles[i].name))) {
			ret->scope = roles[i].scope;
			return true;
		}
	return false;
}

static enum tw_status read_rule(
        struct tw_str text, bool by_value, struct tw_role_rule *ret, struct tw_err *err)
{
	struct tw_str role = text;
	size_t at;

	memset(ret, 0, sizeof *ret);
	if (by_value) {
		at = tw_str_find_last(text, TW_STR("="));
		if (at == text.len)
			return no_rule(text, err);
		ret->value = tw_str_trim((struct tw_str){text.ptr, at});
		role = tw_str_from(text, at + 1);
		if (ret->value.len == 0)
			return no_rule(text, err);
	}
	return read_role(tw_str_trim(role), ret) ? TW_OK : no_rule(text, err);
}

enum tw_status tw_role_rules_parse(
        const char *text, bool by_value, struct tw_role_rules *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	enum tw_status st = TW_OK;

	ret->n = 0;
	while (st == TW_OK && rest.len) {
		struct tw_str rule = tw_str_trim(tw_str_split(&rest, ','));

		if (rule.len == 0)
			continue;
		if (ret->n == TW_ROLE_RULES_MAX)
			return tw_fail(err, TW_BAD_REQUEST,
			        "there are more than %d rules for roles", TW_ROLE_RULES_MAX);
		st = read_rule(rule, by_value, &ret->rules[ret->n++], err);
	}
	return st;
}

static bool is_value(const json_t *json, struct tw_str value)
{
	return json_is_string(json) &&
	       tw_str_eq((struct tw_str){json_string_value(json), json_string_length(json)}, value);
}

static bool has_value(const json_t *claim, struct tw_str value)
{
	for (size_t i = 0; i < json_array_size(claim); i++)
		if (is_value(json_array_get(claim, i), value))
			return true;
	return value.len == 0 || is_value(claim, value);
}

static struct tw_grant *grant_of(struct tw_grant *grants, size_t *n, const char *project)
{
	struct tw_grant *known = TW_LOOKUP(grants, *n, project, project);

	if (known)
		return known;
	grants[*n] = (struct tw_grant){project, TW_SCOPE_PUBLIC};
	return &grants[(*n)++];
}

size_t tw_role_rules_grant(
        const struct tw_role_rules *r, const json_t *claim, struct tw_grant ret[TW_ROLE_RULES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct tw_role_rule *rule = &r->rules[i];
		struct tw_grant *g = grant_of(ret, &n, rule->project);

		if (rule->scope > g->scope && has_value(claim, rule->value))
			g->scope = rule->scope;
	}
	return n;
}

enum { PIECE_BYTES = 129 };

const json_t *tw_claim_find(const json_t *claims, const char *name)
{
	const json_t *found = json_object_get(claims, name);
	struct tw_str rest = tw_str_of(name);
	char piece[PIECE_BYTES];

	if (found || !strchr(name, '.'))
		return found;
	found = claims;
	while (rest.len && found) {
		struct tw_str one = tw_str_split(&rest, '.');

		if (one.len >= sizeof piece)
			return NULL;
		memcpy(piece, one.ptr, one.len);
		piece[one.len] = '\0';
		found = json_object_get(found, piece);
	}
	return found;
}

bool tw_claim_lists(const char *list, char sep, const char *word)
{
	struct tw_str rest = tw_str_of(list);
	size_t n = strlen(word);

	while (rest.len) {
		struct tw_str one = tw_str_trim(tw_str_split(&rest, sep));

		if (one.len == n && strncasecmp(one.ptr, word, n) == 0)
			return true;
	}
	return false;
}

static const char address[] = "email", verified[] = "email_verified";

bool tw_claim_has_address(const json_t *claims)
{
	return json_object_get(claims, address) && json_object_get(claims, verified);
}

static void forget_address(json_t *claims)
{
	(void)json_object_del(claims, address);
	(void)json_object_del(claims, verified);
}

bool tw_claim_add(json_t *claims, json_t *more)
{
	bool has_its_own = tw_claim_has_address(claims) ||
	                   (json_object_get(claims, address) && !tw_claim_has_address(more));

	forget_address(has_its_own ? more : claims);
	return json_object_update_missing(claims, more) == 0;
}

bool tw_claim_is_of(const json_t *claims, const char *domains)
{
	const char *email = json_string_value(json_object_get(claims, address));
	const char *at = email ? strrchr(email, '@') : NULL;

	return at && at[1] && json_is_true(json_object_get(claims, verified)) &&
	       tw_claim_lists(domains, ',', at + 1);
}
