#include "server/source/source_name.h"

#include <stdio.h>
#include <string.h>

/* --- names of traces --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_number(const char *s)
{
	while (is_digit(*s))
		s++;
	return *s == '\0';
}

static enum tw_status no_name(struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST,
	        "method is the name of a Java or Kotlin method, like com.example.Feed.load");
}

static bool is_utf8(const char *s)
{
	size_t len = strlen(s), n = 1;

	for (size_t i = 0; i < len && n; i += n)
		n = tw_utf8_len(s + i, len - i);
	return n > 0;
}

/* Letters, digits and _ $ < > - as in class files. */
static bool is_name(const char *s)
{
	for (const char *p = s; *p; p++) {
		unsigned char c = (unsigned char)*p;
		bool in = c >= 0x80 || is_digit(*p) || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
		          strchr("_$<>-.", *p);

		if (!in || (*p == '.' && (p == s || p[1] == '.' || !p[1])))
			return false;
	}
	return *s != '\0' && is_utf8(s);
}

/* The text before `delimiter`, from `from` on; NULL if `delimiter` is absent. */
static char *until(struct tw_arena *a, const char *from, const char *delimiter)
{
	const char *end = strstr(from, delimiter);

	return end && end > from ? tw_arena_str(a, (struct tw_str){from, (size_t)(end - from)})
	                         : NULL;
}

/* Removes suffixes of generated accessors: "access$getRows$cp", "getX$delegate". */
static char *without_end(struct tw_arena *a, const char *name)
{
	static const char *const ends[] = {"$p", "$cp", "$default", "$delegate"};
	struct tw_str s = tw_str_of(name);

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t n = strlen(ends[i]);

		if (s.len > n && strcmp(name + s.len - n, ends[i]) == 0)
			return tw_arena_str(a, (struct tw_str){name, s.len - n});
	}
	return tw_arena_str(a, s);
}

/* Maps a generated method to the one it was generated from. */
static void read_method(struct tw_arena *a, struct tw_source_name *n)
{
	static const char *const lambdas[] = {"$lambda$", "$lambda-", "$lambda", "$r8$lambda"};
	static const char *const same[] = {
	        "$default", "$annotations", "$app_", "$suspendImpl", "-"};
	char *plain = NULL;

	if (strncmp(n->raw, "lambda$", 7) == 0)
		plain = until(a, n->raw + 7, "$");
	else if (strncmp(n->raw, "access$", 7) == 0 && !is_number(n->raw + 7))
		plain = without_end(a, n->raw + 7);
	n->lambda = plain && n->raw[0] == 'l';
	for (size_t i = 0; !plain && i < sizeof lambdas / sizeof *lambdas; i++) {
		plain = until(a, n->raw, lambdas[i]);
		n->lambda = plain != NULL;
	}
	for (size_t i = 0; !plain && i < sizeof same / sizeof *same; i++)
		plain = until(a, n->raw, same[i]);
	if (!plain && strstr(n->raw, "$delegate"))
		plain = without_end(a, n->raw);
	n->method = plain ? plain : n->raw;
}

static void read_pieces(struct tw_arena *a, struct tw_source_name *n, struct tw_str rest)
{
	while (rest.ptr && n->n < TW_NAME_PIECES) {
		size_t end = tw_str_find(rest, TW_STR("$"));
		char *piece = tw_arena_str(a, (struct tw_str){rest.ptr, end});

		if (!piece)
			return;
		n->pieces[n->n++] = piece;
		rest = end < rest.len ? tw_str_from(rest, end + 1) : (struct tw_str){0};
	}
}

/* "-$$Lambda$Feed$x1Y2" is a lambda of Feed. */
static struct tw_str without_front(struct tw_str cls, bool *ret_lambda)
{
	static const char front[] = "-$$Lambda$";

	*ret_lambda = tw_str_starts(cls, tw_str_of(front));
	return *ret_lambda ? tw_str_from(cls, sizeof front - 1) : cls;
}

static void read_class(struct tw_arena *a, struct tw_source_name *n, struct tw_str cls)
{
	bool lambda;
	size_t end;
	struct tw_str file;

	cls = without_front(cls, &lambda);
	end = cls.len > 1 ? 1 + tw_str_find(tw_str_from(cls, 1), TW_STR("$")) : cls.len;
	file = (struct tw_str){cls.ptr, end};
	n->outer = tw_arena_str(a, file);
	if (file.len > 2 && memcmp(file.ptr + file.len - 2, "Kt", 2) == 0) {
		/* part of a facade of several files */
		size_t part = tw_str_find(file, TW_STR("__"));

		file.len -= 2;
		if (part + 2 < file.len)
			file = tw_str_from(file, part + 2);
	}
	n->file = tw_arena_str(a, file);
	if (end < cls.len && !lambda)
		read_pieces(a, n, tw_str_from(cls, end + 1));
	n->lambda = n->lambda || lambda;
}

enum tw_status tw_source_name_read(
        const char *method, struct tw_arena *a, struct tw_source_name *ret, struct tw_err *err)
{
	struct tw_source_name n = {0};
	struct tw_str name = tw_str_of(method);
	size_t end = tw_str_find(name, TW_STR("(")); /* remove the signature */
	size_t dot, pkg;
	char *folder;

	if (!method)
		return no_name(err);
	name.len = end;
	method = tw_arena_str(a, name);
	if (!method || name.len > TW_SOURCE_METHOD_BYTES || !is_name(method))
		return no_name(err);
	dot = tw_str_find_last(name, TW_STR("."));
	if (dot == name.len)
		return no_name(err);
	pkg = tw_str_find_last((struct tw_str){name.ptr, dot}, TW_STR("."));
	n.raw = method + dot + 1;
	n.package = pkg < dot ? tw_arena_str(a, (struct tw_str){name.ptr, pkg}) : "";
	folder = n.package ? tw_arena_str(a, tw_str_of(n.package)) : NULL;
	read_method(a, &n);
	pkg = pkg < dot ? pkg + 1 : 0;
	read_class(a, &n, (struct tw_str){name.ptr + pkg, dot - pkg});
	if (!folder || !n.outer || !n.file || !n.method)
		return tw_oom(err);
	for (char *p = folder; *p; p++)
		if (*p == '.')
			*p = '/';
	n.folder = folder;
	*ret = n;
	return TW_OK;
}

/* --- the declaration --- */

struct search {
	const struct tw_decls *decls;
	const struct tw_source_name *name;
	char path[TW_SOURCE_METHOD_BYTES + 64]; /* the classes as far as the file declares them */
	const char *owner; /* the method that contains a nameless class; NULL: none */
	bool nameless;
	uint32_t line;
	struct tw_source_location *to;
};

static const struct tw_decl *class_of(const struct search *s, const char *path)
{
	for (size_t i = 0; i < s->decls->n; i++)
		if (s->decls->at[i].kind == TW_DECL_CLASS && strcmp(s->decls->at[i].in, path) == 0)
			return &s->decls->at[i];
	return NULL;
}

/* Renamed by @JvmName. */
static bool is_named(const struct tw_decl *d, const char *name)
{
	for (size_t i = 0; i < TW_JVM_NAMES; i++)
		if (d->jvm[i].len && tw_str_eq(d->jvm[i], tw_str_of(name)))
			return true;
	return false;
}

static bool is_called(const struct tw_decl *d, const char *name)
{
	return tw_str_eq(d->name, tw_str_of(name)) || is_named(d, name);
}

static bool has_method(const struct search *s, const char *path, const char *name)
{
	for (size_t i = 0; i < s->decls->n; i++)
		if (s->decls->at[i].kind != TW_DECL_CLASS && is_called(&s->decls->at[i], name) &&
		        strcmp(s->decls->at[i].in, path) == 0)
			return true;
	return false;
}

/* Whether the class holds the file's functions: FileKt, or the name of @file:JvmName; if several
 * files share that name, each part is like "Feeds__FileKt". */
static bool is_facade(const struct search *s)
{
	const struct tw_str outer = tw_str_of(s->name->outer), named = s->decls->facade;

	return strcmp(s->name->outer, s->name->file) != 0 || (named.len && tw_str_eq(named, outer));
}

/* Descends as far as the file declares classes of these names. */
static bool find_class(struct search *s)
{
	const struct tw_source_name *n = s->name;

	(void)snprintf(s->path, sizeof s->path, "%s", n->outer);
	if (!class_of(s, s->path)) {
		if (!is_facade(s))
			return false;
		s->path[0] = '\0'; /* functions of the file */
	}
	for (size_t i = 0; i < n->n && !s->nameless; i++) {
		char deeper[sizeof s->path + 2];

		if (strcmp(n->pieces[i], "DefaultImpls") == 0) /* bodies of interface methods */
			continue;
		int len = snprintf(deeper, sizeof deeper, "%s%s%s", s->path, s->path[0] ? "$" : "",
		        n->pieces[i]);

		if (len < (int)sizeof s->path && class_of(s, deeper)) {
			(void)snprintf(
			        s->path, sizeof s->path, "%.*s", (int)sizeof s->path - 1, deeper);
			continue;
		}
		s->nameless = true;
		if (!is_number(n->pieces[i]) && has_method(s, s->path, n->pieces[i]))
			s->owner = n->pieces[i];
	}
	return true;
}

static bool is_below(const char *in, const char *path)
{
	size_t len = strlen(path);

	return strncmp(in, path, len) == 0 && (len == 0 || in[len] == '$') && strchr(in, '?');
}

static void take(struct search *s, const struct tw_decl *d)
{
	struct tw_source_location *p = s->to;
	struct tw_range at = {d->first, d->last};

	if (s->line && p->n && s->line >= at.first && s->line <= at.last) {
		p->at[0] = at; /* the line selects one */
		p->n = 1;
		return;
	}
	if (s->line && p->n == 1 && s->line >= p->at[0].first && s->line <= p->at[0].last)
		return;
	if (p->n < TW_LOCATION_RANGES)
		p->at[p->n++] = at;
}

/* Adds declarations of that name; `below`: also in nameless classes inside the class. */
static void take_named(struct search *s, const char *name, enum tw_decl_kind kind, bool below)
{
	for (size_t i = 0; i < s->decls->n; i++) {
		const struct tw_decl *d = &s->decls->at[i];

		if (d->kind == kind && is_called(d, name) &&
		        (below ? is_below(d->in, s->path) : strcmp(d->in, s->path) == 0))
			take(s, d);
	}
}

/* Adds the property of "getTitle", "isOpen" or "setTitle". */
static void take_property(struct search *s)
{
	const char *m = s->name->method;
	char name[TW_SOURCE_METHOD_BYTES + 1];
	bool is = strncmp(m, "is", 2) == 0;

	for (size_t i = 0; i < s->decls->n; i++)
		if (s->decls->at[i].kind == TW_DECL_PROPERTY && is_named(&s->decls->at[i], m) &&
		        strcmp(s->decls->at[i].in, s->path) == 0)
			take(s, &s->decls->at[i]);
	if (is)
		take_named(s, m, TW_DECL_PROPERTY, false);
	if (s->to->n || is || (strncmp(m, "get", 3) != 0 && strncmp(m, "set", 3) != 0) || !m[3])
		return;
	(void)snprintf(name, sizeof name, "%s", m + 3);
	take_named(s, name, TW_DECL_PROPERTY, false);
	if (name[0] >= 'A' && name[0] <= 'Z')
		name[0] = (char)(name[0] + 32);
	take_named(s, name, TW_DECL_PROPERTY, false);
	(void)snprintf(name, sizeof name, "is%s", m + 3); /* setOpen for isOpen */
	if (s->to->n == 0 && m[0] == 's')
		take_named(s, name, TW_DECL_PROPERTY, false);
}

/* The companion of the current class; NULL: none. */
static const struct tw_decl *companion_of(const struct search *s)
{
	const size_t n = strlen(s->path);

	for (size_t i = 0; i < s->decls->n; i++) {
		const struct tw_decl *d = &s->decls->at[i];

		if (d->companion && d->kind == TW_DECL_CLASS && n &&
		        strncmp(d->in, s->path, n) == 0 && d->in[n] == '$' &&
		        tw_str_eq(d->name, tw_str_of(d->in + n + 1)))
			return d;
	}
	return NULL;
}

/* Falls back to the first lines of the class. */
static void take_head(struct search *s, const char *note)
{
	const struct tw_decl *c = class_of(s, s->path);

	if (!c)
		return;
	s->to->at[0] = (struct tw_range){c->first, c->head};
	s->to->n = 1;
	s->to->note = note;
}

static void note_method(struct search *s)
{
	s->to->is_method = s->to->n > 0;
	if (s->to->n > 1)
		s->to->note = "several methods have this name and no line number selects one";
}

static void take_values(struct search *s, const char *path)
{
	for (size_t i = 0; i < s->decls->n; i++)
		if (s->decls->at[i].kind == TW_DECL_PROPERTY &&
		        strcmp(s->decls->at[i].in, path) == 0)
			take(s, &s->decls->at[i]);
}

/* Kotlin initialises values of an object, a file or a companion in static code. */
static void take_static_values(struct search *s)
{
	const struct tw_decl *c = class_of(s, s->path), *companion = companion_of(s);

	if (!*s->path || (c && c->object && !c->companion))
		take_values(s, s->path);
	if (companion)
		take_values(s, companion->in);
	s->to->is_method = s->to->n > 0;
	if (s->to->n)
		s->to->note = "initial values: shows the properties that may have one";
}

/* The class header, which declares the primary constructor, comes first. */
static void take_constructors(struct search *s)
{
	const struct tw_decl *c = class_of(s, s->path);

	if (c && c->primary)
		take(s, &(struct tw_decl){.first = c->first, .last = c->head});
	take_named(s, "<init>", TW_DECL_METHOD, false);
	note_method(s);
	if (c && c->primary && s->to->n > 1)
		s->to->note = "the class's head, initial values and constructors: no line number "
		              "selects one";
}

static void take_initial(struct search *s)
{
	bool of_class = strcmp(s->name->method, "<clinit>") == 0;

	if (of_class) {
		take_named(s, s->name->method, TW_DECL_METHOD, false);
		note_method(s);
	} else {
		take_constructors(s);
	}
	if (of_class && s->to->n == 0)
		take_static_values(s);
	if (s->to->n == 0)
		take_head(s, of_class ? "the initial values of the class: shows its head"
		                      : "no explicit constructor: shows the head of the class");
}

static void take_in_lambda(struct search *s)
{
	const char *owner = s->owner ? s->owner : s->name->method;

	if (!s->name->lambda)
		take_named(s, s->name->method, TW_DECL_METHOD, true);
	if (s->to->n == 0)
		take_named(s, owner, TW_DECL_METHOD, false);
	if (s->to->n == 0)
		take_named(s, owner, TW_DECL_PROPERTY, false);
	s->to->is_method = s->to->n > 0;
	s->to->note = "in a lambda or an anonymous class: shows the enclosing code";
}

/* "load$core_debug": the compiler appends the module to internal functions. */
static void take_internal(struct search *s)
{
	const char *end = strchr(s->name->raw + 1, '$');
	char name[TW_SOURCE_METHOD_BYTES + 1];

	if (s->to->n || !end || s->name->raw[0] == '$')
		return;
	(void)snprintf(name, sizeof name, "%.*s", (int)(end - s->name->raw), s->name->raw);
	take_named(s, name, TW_DECL_METHOD, false);
	if (s->to->n)
		s->to->note = "the compiler extended its name";
}

static void take_here(struct search *s)
{
	take_named(s, s->name->method, TW_DECL_METHOD, false);
	if (s->to->n == 0 && strcmp(s->name->raw, s->name->method) != 0)
		take_named(s, s->name->raw, TW_DECL_METHOD, false);
	if (s->to->n == 0) {
		take_property(s);
		if (s->to->n)
			s->to->note = "the accessor of a property";
	}
	take_internal(s);
}

/* @JvmStatic creates a method of the class; the code is in the companion. */
static void take_plain(struct search *s)
{
	const struct tw_decl *companion;

	take_here(s);
	companion = s->to->n ? NULL : companion_of(s);
	if (companion) {
		(void)snprintf(s->path, sizeof s->path, "%s", companion->in);
		take_here(s);
		if (s->to->n == 0) /* falls back to the class's first lines */
			s->path[strlen(companion->in) - companion->name.len - 1] = '\0';
	}
	note_method(s);
}

void tw_source_location(const struct tw_decls *decls, const struct tw_source_name *name,
        uint32_t line, struct tw_source_location *ret)
{
	struct search s = {.decls = decls, .name = name, .line = line, .to = ret};

	*ret = (struct tw_source_location){0};
	if (!find_class(&s))
		return;
	if (s.nameless || name->lambda)
		take_in_lambda(&s);
	else if (name->method[0] == '<')
		take_initial(&s);
	else
		take_plain(&s);
	if (ret->n == 0)
		take_head(&s,
		        decls->cut
		                ? "the file has too many declarations: shows the head of the class"
		                : "the class does not declare it: it is inherited or made by a "
		                  "compiler");
}

/* --- names of the JVM --- */

enum { ANNOTATION_TOKENS = 40, NAME_MOST = 200 };

/* "Foo" for a plain string literal; "" if it must be computed. */
static struct tw_str name_in(struct tw_str text)
{
	struct tw_str name = {text.ptr + 1, text.len < 2 ? 0 : text.len - 2};

	if (text.len < 3 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"' ||
	        name.len > NAME_MOST)
		return (struct tw_str){0};
	for (size_t i = 0; i < name.len; i++)
		if (strchr("\"\\${}\n", name.ptr[i]))
			return (struct tw_str){0};
	return name;
}

static bool keep(struct tw_jvm *j, struct tw_str name)
{
	if (j->of_file) {
		j->file = j->file.len ? j->file : name;
		return false;
	}
	for (size_t i = 0; i < TW_JVM_NAMES; i++) {
		if (j->names[i].len)
			continue;
		j->names[i] = name;
		return name.len > 0;
	}
	return false;
}

/* After an @: "file:", "get:", "kotlin.jvm.", "[". */
static void step_at(struct tw_jvm *j, const struct tw_token *t)
{
	if (tw_token_is(t, "JvmName"))
		j->state = TW_JVM_NAMED;
	else if (tw_token_is(t, "file"))
		j->of_file = true;
	else if (t->kind != TW_TOKEN_WORD && !tw_token_is_sign(t, ':') &&
	         !tw_token_is_sign(t, '.') && !tw_token_is_sign(t, '['))
		j->state = TW_JVM_NOTHING;
}

bool tw_jvm_step(struct tw_jvm *j, const struct tw_token *t)
{
	const bool named = j->state == TW_JVM_OPEN && t->kind == TW_TOKEN_TEXT;

	if (tw_token_is_sign(t, '@')) {
		j->state = TW_JVM_AT;
		j->of_file = false;
	} else if (j->state == TW_JVM_AT) {
		step_at(j, t);
	} else if (j->state == TW_JVM_NAMED) {
		j->state = tw_token_is_sign(t, '(') ? TW_JVM_OPEN : TW_JVM_NOTHING;
	} else if (!tw_token_is(t, "name") && !tw_token_is_sign(t, '=')) {
		j->state = TW_JVM_NOTHING;
	}
	if (tw_token_is_sign(t, '{') || tw_token_is_sign(t, '}') || tw_token_is_sign(t, ';'))
		memset(j->names, 0, sizeof j->names);
	return named && keep(j, name_in(t->word));
}

void tw_jvm_take(struct tw_jvm *j, struct tw_str to[TW_JVM_NAMES])
{
	for (size_t i = 0, k = 0; i < TW_JVM_NAMES; i++) {
		while (k < TW_JVM_NAMES && to[k].len)
			k++;
		if (k < TW_JVM_NAMES && j->names[i].len)
			to[k] = j->names[i];
		j->names[i] = (struct tw_str){0};
	}
}

/* The token after an annotation whose @ was just read. */
static struct tw_token after_annotation(struct tw_lexer *l)
{
	struct tw_token t = tw_lexer_next(l);
	size_t open = 0;

	for (int i = 0; i < ANNOTATION_TOKENS && t.kind != TW_TOKEN_END; i++) {
		struct tw_token next = tw_lexer_next(l);

		open += tw_token_is_sign(&t, '(');
		open -= open && tw_token_is_sign(&t, ')');
		if (!open && !tw_token_is_sign(&next, '.') && !tw_token_is_sign(&next, '(') &&
		        !tw_token_is_sign(&t, '.'))
			return next;
		t = next;
	}
	return (struct tw_token){.kind = TW_TOKEN_END};
}

bool tw_jvm_is_accessor(const struct tw_lexer *after, const struct tw_token *t)
{
	static const char *const accessors[] = {"get", "set", NULL};
	static const char *const modifiers[] = {"private", "protected", "internal", "inline", NULL};
	struct tw_lexer ahead = *after;
	struct tw_token next = *t;

	if (tw_token_is_sign(t, '@'))
		next = after_annotation(&ahead);
	if (tw_token_is_any(&next, modifiers))
		next = tw_lexer_next(&ahead);
	return tw_token_is_any(&next, accessors);
}

bool tw_jvm_names_annotation(bool was, const struct tw_token *prev, const struct tw_token *t)
{
	if (tw_token_is_sign(t, '@'))
		return true;
	if (!was)
		return false;
	if (t->kind == TW_TOKEN_WORD)
		return tw_token_is_sign(prev, '@') || tw_token_is_sign(prev, '.');
	return tw_token_is_sign(t, '.') || tw_token_is_sign(t, '(');
}
