/*
 * config.c - reads settings from flags, environment and file, using one table (config.def).
 *
 * The sources are searched in that order and the first with the setting wins; values are validated
 * the same way for all sources, and error messages name the source.
 */
#include "server/base/config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/buf.h"
#include "server/base/file/io.h"
#include "server/base/role.h"
#include "server/base/text/find.h"

enum kind { STR, BOOL, COUNT, BYTES };

struct setting {
	enum kind kind;
	size_t at; /* offset in struct tw_config */
	const char *flag, *dflt;
	uint64_t min, max; /* of the number, or of the text's length */
	const char *meaning;
};

static const struct setting settings[] = {
#define SETTING(kind, field, flag, dflt, min, max, meaning)                                        \
	{kind, offsetof(struct tw_config, field), flag, dflt, min, max, meaning},
#include "server/base/config.def"
#undef SETTING
};

enum {
	N_SETTINGS = sizeof settings / sizeof *settings,
	MAX_FILE = 64 << 10,
	MAX_ENV = 64,
	MAX_MESSAGE = 1100
};

/* A few threads must always be free while others wait for the disk. */
enum { MIN_QUERY_THREADS = 4 };

struct source { /* a value and the name of its source for error messages */
	const char *value;
	const char *where;
};

struct loading {
	struct tw_arena *arena;
	struct source flags[N_SETTINGS];
	struct source lines[N_SETTINGS]; /* of the file */
	const char *file;
};

static size_t setting_of(struct tw_str name)
{
	for (size_t i = 0; i < N_SETTINGS; i++) {
		const char *flag = settings[i].flag;
		size_t at = 0;

		while (at < name.len && flag[at] &&
		        (flag[at] == name.ptr[at] || (flag[at] == '-' && name.ptr[at] == '_')))
			at++;
		if (at == name.len && !flag[at])
			return i;
	}
	return N_SETTINGS;
}

/* The setting most similar to the name, with dashes or underscores; NULL: none. */
static const char *nearest(struct tw_str name)
{
	struct tw_near_match near = {NULL, 0};
	char word[MAX_ENV];
	size_t n = name.len < sizeof word ? name.len : sizeof word - 1;

	for (size_t i = 0; i < n; i++)
		word[i] = (char)(name.ptr[i] == '_' ? '-' : name.ptr[i]);
	word[n] = '\0';
	for (size_t i = 0; i < N_SETTINGS; i++)
		tw_near_match_try(&near, word, settings[i].flag);
	return near.best;
}

/* `what` is "unknown flag --" or similar.  A flag's value is not shown, as it may be a secret. */
static enum tw_status unknown(
        const char *what, struct tw_str name, const char *before, struct tw_err *err)
{
	const char *meant = nearest(name);

	return tw_fail(err, TW_BAD_REQUEST, "%s%.*s%s%s%s%s", what,
	        (int)(name.len < 64 ? name.len : 64), name.ptr, meant ? "; did you mean " : "",
	        meant ? before : "", meant ? meant : "", meant ? "?" : "");
}

/* --name value, --name=value; a BOOL needs no value. */
static enum tw_status read_flag(
        struct loading *l, int argc, char **argv, int *at, struct tw_err *err)
{
	const char *arg = argv[*at];
	struct tw_str name = tw_str_of(arg);
	struct tw_str key;
	const char *value = NULL;
	size_t i;

	if (name.len < 3 || strncmp(arg, "--", 2) != 0)
		return tw_fail(err, TW_BAD_REQUEST, "unexpected argument %s", arg);
	name = tw_str_of(arg + 2);
	key = tw_str_split(&name, '=');
	if (arg[2 + key.len] == '=')
		value = name.ptr;
	i = setting_of(key);
	if (i == N_SETTINGS && !tw_str_eq(key, TW_STR("config")))
		return unknown("unknown flag --", key, "--", err);
	if (!value && i < N_SETTINGS && settings[i].kind == BOOL)
		value = "true";
	if (!value && *at + 1 < argc)
		value = argv[++*at];
	if (!value)
		return tw_fail(err, TW_BAD_REQUEST, "%s needs a value", arg);
	if (i == N_SETTINGS)
		l->file = value;
	else
		l->flags[i] = (struct source){value, "--"};
	return TW_OK;
}

static enum tw_status read_line(
        struct loading *l, struct tw_str line, unsigned number, struct tw_err *err)
{
	struct tw_str value = tw_str_trim(line);
	struct tw_str name;
	char what[MAX_MESSAGE];
	size_t i;

	if (value.len == 0 || value.ptr[0] == '#')
		return TW_OK;
	name = tw_str_trim(tw_str_split(&value, '='));
	value = tw_str_trim(value);
	i = setting_of(name);
	(void)snprintf(what, sizeof what, "%s line %u: unknown setting ", l->file, number);
	if (i == N_SETTINGS)
		return unknown(what, name, "", err);
	l->lines[i].value = tw_arena_str(l->arena, value);
	l->lines[i].where = tw_arena_printf(l->arena, "%s line %u: ", l->file, number);
	return l->lines[i].value && l->lines[i].where ? TW_OK : tw_oom(err);
}

static enum tw_status read_all(
        const char *path, char *out, size_t cap, size_t *ret, struct tw_err *err)
{
	const ssize_t n = tw_file_read(path, out, cap);

	if (n < 0)
		return tw_fail_errno(err, TW_IO, "%s", path);
	if ((size_t)n == cap)
		return tw_fail(err, TW_TOO_LARGE, "%s is too long for a configuration", path);
	*ret = (size_t)n;
	return TW_OK;
}

static enum tw_status read_file(struct loading *l, struct tw_err *err)
{
	char *text = tw_arena_alloc(l->arena, MAX_FILE, 1);
	size_t len = 0;
	enum tw_status st;
	struct tw_str rest;

	if (!text)
		return tw_oom(err);
	st = read_all(l->file, text, MAX_FILE, &len, err);
	rest = (struct tw_str){text, len};
	for (unsigned number = 1; st == TW_OK && rest.len; number++)
		st = read_line(l, tw_str_split(&rest, '\n'), number, err);
	return st;
}

static const char *environment(const char *flag)
{
	char name[MAX_ENV] = "TRACEWELL_";
	size_t at = strlen(name);

	for (; *flag && at < sizeof name - 1; flag++)
		name[at++] = (char)(*flag == '-' ? '_' : toupper((unsigned char)*flag));
	name[at] = '\0';
	return getenv(name);
}

static bool is_one_of(const char *word, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(word, *names) == 0)
			return true;
	return false;
}

/* Converts the name after TRACEWELL_ to the spelling of a flag; false: not such a variable. */
static bool flag_of(const char *variable, char ret[MAX_ENV])
{
	static const char prefix[] = "TRACEWELL_";
	size_t n = 0;

	if (strncmp(variable, prefix, sizeof prefix - 1) != 0)
		return false;
	for (const char *p = variable + sizeof prefix - 1; *p && *p != '='; p++) {
		if (n == MAX_ENV - 1)
			return false;
		ret[n++] = (char)(*p == '_' ? '-' : tolower((unsigned char)*p));
	}
	ret[n] = '\0';
	return true;
}

void tw_config_each_misspelt(void (*each)(const char *flag, const char *meant))
{
	static const char *const others[] = {"config", "key", NULL};
	char flag[MAX_ENV];

	for (char **e = environ; *e; e++) {
		const char *meant = NULL;

		if (flag_of(*e, flag) && !is_one_of(flag, others) &&
		        setting_of(tw_str_of(flag)) == N_SETTINGS)
			meant = nearest(tw_str_of(flag));
		if (meant)
			each(flag, meant);
	}
}

static bool parse_bytes(struct tw_str s, uint64_t *ret)
{
	unsigned shift = 0;
	uint64_t n;

	if (s.len) {
		static const char suffixes[] = "KMGT";
		const char *at = strchr(suffixes, s.ptr[s.len - 1] & ~0x20);

		if (at && *at && s.ptr[s.len - 1] > '9') {
			shift = 10 * (unsigned)(at - suffixes + 1);
			s.len--;
		}
	}
	if (!tw_str_u64(s, UINT64_MAX >> shift, &n))
		return false;
	*ret = n << shift;
	return true;
}

static bool parse_bool(struct tw_str s, bool *ret)
{
	*ret = tw_str_eq(s, TW_STR("true")) || tw_str_eq(s, TW_STR("1")) ||
	       tw_str_eq(s, TW_STR("yes"));
	return *ret || tw_str_eq(s, TW_STR("false")) || tw_str_eq(s, TW_STR("0")) ||
	       tw_str_eq(s, TW_STR("no"));
}

/* Writes the value into its field; false if it is invalid. */
static bool store(const struct setting *s, const char *value, struct tw_config *c)
{
	void *field = (char *)c + s->at;
	struct tw_str text = tw_str_of(value);
	uint64_t n = text.len;

	if (s->kind == BOOL)
		return parse_bool(text, field);
	if (s->kind == BYTES && !parse_bytes(text, &n))
		return false;
	if (s->kind == COUNT && !tw_str_u64(text, UINT32_MAX, &n))
		return false;
	if (n < s->min || n > s->max)
		return false;
	if (s->kind == STR)
		*(const char **)field = value;
	else if (s->kind == BYTES)
		*(uint64_t *)field = n;
	else
		*(unsigned *)field = (unsigned)n;
	return true;
}

/* "64K" for multiples of 1024. */
static void write_bytes(uint64_t n, char out[24])
{
	static const char units[] = "KMGT";
	int at = -1;

	while (n && n % 1024 == 0 && at < 3) {
		n /= 1024;
		at++;
	}
	(void)snprintf(out, 24, "%" PRIu64 "%.*s", n, at >= 0, at >= 0 ? &units[at] : "");
}

/* Describes the values that a setting accepts. */
static void describe(const struct setting *s, char *out, size_t cap)
{
	char least[24], most[24];

	if (s->kind == BOOL)
		(void)snprintf(out, cap, "true or false");
	else if (s->kind == COUNT)
		(void)snprintf(out, cap, "a number from %" PRIu64 " to %" PRIu64, s->min, s->max);
	else if (s->kind == STR)
		(void)snprintf(
		        out, cap, "%" PRIu64 " to %" PRIu64 " bytes of text", s->min, s->max);
	else {
		write_bytes(s->min, least);
		write_bytes(s->max, most);
		(void)snprintf(out, cap, "a size from %s to %s", least, most);
	}
}

static enum tw_status finalize(
        const struct loading *l, size_t i, struct tw_config *c, struct tw_err *err)
{
	struct source from = l->flags[i];
	char right[96];

	if (!from.value)
		from = (struct source){environment(settings[i].flag), "in the environment, "};
	if (!from.value)
		from = l->lines[i];
	if (!from.value)
		from = (struct source){settings[i].dflt, "by default, "};
	if (store(&settings[i], from.value, c))
		return TW_OK;
	describe(&settings[i], right, sizeof right);
	return tw_fail(err, TW_BAD_REQUEST, "%s%s must be %s, not \"%.60s\": %s", from.where,
	        settings[i].flag, right, from.value, settings[i].meaning);
}

bool tw_listen_split(const char *listen, char *host, size_t cap, uint16_t *ret_port)
{
	const char *colon = strrchr(listen, ':');
	size_t len = colon ? (size_t)(colon - listen) : 0;
	uint64_t port;

	if (!colon || !tw_str_u64(tw_str_of(colon + 1), 65535, &port))
		return false;
	if (len >= 2 && listen[0] == '[' && listen[len - 1] == ']') {
		listen++;
		len -= 2;
	}
	if (len == 0 || len >= cap)
		return false;
	memcpy(host, listen, len);
	host[len] = '\0';
	*ret_port = (uint16_t)port;
	return true;
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
	       strcmp(host, "localhost") == 0;
}

static enum tw_status check_proxies(struct tw_config *c, struct tw_err *err)
{
	const char *header = c->proxy_user_header;

	if (header[strspn(
	            header, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")])
		return tw_fail(err, TW_BAD_REQUEST,
		        "--proxy-user-header must be the name of a header, not \"%.60s\"", header);
	if (*header && !*c->trusted_proxies)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--proxy-user-header needs --trusted-proxies: without it, any client could "
		        "set the header");
	if (*header && c->oidc.create)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--oidc-create with --proxy-user-header: a user of the provider could take "
		        "the name of a user of the proxy; create accounts manually");
	/* many clients share the address of a proxy */
	if (c->behind_proxy || *c->trusted_proxies)
		c->connections_per_address = 0;
	return tw_proxies_parse(c->trusted_proxies, &c->proxies, err);
}

/* A single server must have all roles. */
static enum tw_status check_roles(struct tw_config *c, struct tw_err *err)
{
	enum tw_status st = tw_roles_parse(c->role, &c->roles, err);

	if (st == TW_OK && c->roles != TW_ROLE_ALL && !c->several)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--role %s is for one of several servers: --several-servers is missing",
		        c->role);
	return st;
}

/* The name is used in labels and log lines. */
static enum tw_status check_node(const struct tw_config *c, struct tw_err *err)
{
	static const char fine[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	if (c->node[strspn(c->node, fine)] == '\0')
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "--node must be letters, digits, . _ and -, not \"%.60s\"", c->node);
}

static enum tw_status check(struct tw_config *c, struct tw_err *err)
{
	static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
	static const char *const formats[] = {"logfmt", "json", NULL};
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	char host[128];
	uint16_t port;
	enum tw_status st;

	if (!tw_listen_split(c->listen, host, sizeof host, &port))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--listen must be ADDRESS:PORT or [ADDRESS]:PORT, not \"%.60s\"",
		        c->listen);
	if (!*c->tls_cert != !*c->tls_key)
		return tw_fail(
		        err, TW_BAD_REQUEST, "TLS needs both --tls-cert and --tls-key, or neither");
	if (!is_loopback(host) && !c->behind_proxy && !*c->tls_cert)
		return tw_fail(err, TW_BAD_REQUEST,
		        "%s is reachable from other machines without TLS: set --tls-cert and "
		        "--tls-key, or use a proxy and set --behind-proxy",
		        c->listen);
	if (!is_one_of(c->log_level, levels))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--log-level must be debug, info, warn or error, not \"%.60s\"",
		        c->log_level);
	if (!is_one_of(c->log_format, formats))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--log-format must be logfmt or json, not \"%.60s\"", c->log_format);
	if (*c->public_url && strncmp(c->public_url, "http://", 7) != 0 &&
	        strncmp(c->public_url, "https://", 8) != 0)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--public-url must begin with http:// or https://, not \"%.60s\"",
		        c->public_url);
	if (c->query_threads == 0)
		c->query_threads = cores > MIN_QUERY_THREADS ? (unsigned)cores : MIN_QUERY_THREADS;
	if (c->decode_workers == 0)
		c->decode_workers = cores > 0 ? (unsigned)cores : 1;
	c->limits.max_memory_bytes = c->worker_memory_bytes;
	st = check_roles(c, err);
	if (st == TW_OK)
		st = check_node(c, err);
	return st == TW_OK ? check_proxies(c, err) : st;
}

enum tw_status tw_config_load(
        struct tw_arena *a, int argc, char **argv, struct tw_config *ret, struct tw_err *err)
{
	struct loading l = {.arena = a, .file = getenv("TRACEWELL_CONFIG")};
	struct tw_config c = {.limits = tw_limits_default()};
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && i < argc; i++)
		st = read_flag(&l, argc, argv, &i, err);
	if (st == TW_OK && l.file && *l.file)
		st = read_file(&l, err);
	for (size_t i = 0; st == TW_OK && i < N_SETTINGS; i++)
		st = finalize(&l, i, &c, err);
	if (st == TW_OK)
		st = check(&c, err);
	if (st == TW_OK)
		*ret = c;
	return st;
}

void tw_config_help(void)
{
	printf("Each setting is a flag --name, an environment variable TRACEWELL_NAME, or a line\n"
	       "`name = value` of the file given by --config; the first of these wins.\n\n");
	for (size_t i = 0; i < N_SETTINGS; i++)
		printf("  --%-24s %s (default %s)\n", settings[i].flag, settings[i].meaning,
		        settings[i].dflt[0] ? settings[i].dflt : "empty");
}

enum { PATH_BYTES = 1520, TEXT_MAX = 16 << 10 };

enum tw_status tw_settings_record_read(
        const char *path, struct tw_arena *a, struct tw_config *ret, struct tw_err *err)
{
	char flag[] = "--config", file[PATH_BYTES];
	char *args[] = {flag, file};

	(void)snprintf(file, sizeof file, "%s", path);
	return access(path, F_OK) == 0 ? tw_config_load(a, 2, args, ret, err) : TW_OK;
}

enum tw_status tw_settings_record_write(const char *path, const char *comment,
        const struct tw_setting_line *lines, size_t n, struct tw_err *err)
{
	struct tw_buf text;
	enum tw_status st;

	if (!lines[0].value[0]) {
		(void)unlink(path);
		return TW_OK;
	}
	tw_buf_init(&text, TEXT_MAX);
	(void)tw_buf_printf(&text, "# %s\n", comment);
	for (size_t i = 0; i < n; i++)
		if (lines[i].value[0])
			(void)tw_buf_printf(&text, "%s = %s\n", lines[i].name, lines[i].value);
	st = tw_buf_status(&text) == TW_OK ? tw_file_replace(path, text.data, text.len, err)
	                                   : tw_oom(err);
	tw_buf_done(&text);
	return st;
}
