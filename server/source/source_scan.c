/*
 * source_scan.c - finds declarations in one pass over tokens, with a stack of open braces.
 *
 * The statement so far decides what its brace opens: a class, a method, or code without
 * declarations. Kotlin ends statements at line ends, so a declaration without a brace stays pending
 * until a line begins that cannot continue it.
 */
#include "server/source/source_name.h"

#include "server/source/source_lex.h"

enum { SCOPES_MAX = 512, CLASSES_MAX = 32, NAME_SHOWN = 200 };
#define NO_DECL UINT32_MAX

enum pending { NOTHING, CLASS_NAME, CLASS_HEAD, FUN_NAME, FUN_HEAD, EXPRESSION, VALUE_NAME, VALUE };

struct scope {
	bool is_class, is_code;
	unsigned classes;     /* number of enclosing classes */
	const char *path;     /* of the enclosing class; "": none */
	struct tw_str simple; /* the path's last name */
	uint32_t decl;        /* the declaration that its brace ends */
	uint32_t paren;
	/* of the current statement */
	enum pending pending;
	uint32_t at;        /* the pending declaration */
	uint32_t lead;      /* its first line; 0: none */
	struct tw_str name; /* the last word that may be its name */
	uint32_t angle;
	bool assigned, throws, companion, object, supers, skip;
	bool anon; /* `new` or `object` was read at these parentheses */
	uint32_t anon_paren;
	uint32_t bodyless; /* a class that just ended without a brace */
};

struct scan {
	struct tw_lexer lexer;
	struct tw_arena *a;
	struct tw_decls *to;
	struct scope *scopes;
	size_t n;
	size_t unstacked; /* braces deeper than the stack */
	struct tw_token prev;
	bool annotation; /* an annotation's name is being read */
	bool parameter;  /* `val` or `var` of a constructor was read */
	struct tw_jvm jvm;
	bool failed;
};

static struct scope *top(struct scan *s)
{
	return &s->scopes[s->n - 1];
}

/* --- declarations --- */

static uint32_t declare(
        struct scan *s, enum tw_decl_kind kind, const char *in, struct tw_str name, uint32_t line)
{
	struct tw_decls *d = s->to;
	uint32_t lead = top(s)->lead;

	s->failed = s->failed || !in;
	if (d->n == d->cap) {
		d->cut = true;
		return NO_DECL;
	}
	d->at[d->n] = (struct tw_decl){kind, in, name, lead ? lead : line, line, line,
	        .object = top(s)->object, .companion = top(s)->companion};
	tw_jvm_take(&s->jvm, d->at[d->n].jvm);
	return (uint32_t)d->n++;
}

static const char *inside(struct scan *s, struct tw_str name)
{
	const char *path = top(s)->path;
	int len = (int)(name.len < NAME_SHOWN ? name.len : NAME_SHOWN);

	return tw_arena_printf(s->a, "%s%s%.*s", path, *path ? "$" : "", len, name.ptr);
}

static void end_decl(struct scan *s, uint32_t at, uint32_t line)
{
	if (at != NO_DECL && line > s->to->at[at].last)
		s->to->at[at].last = line;
}

static void begin_statement(struct scope *c)
{
	c->pending = NOTHING;
	c->lead = 0;
	c->angle = 0;
	c->assigned = c->throws = c->companion = c->object = c->supers = c->anon = false;
	c->name = (struct tw_str){0};
}

/* Ends the pending declaration at the previous token. */
static void end_pending(struct scan *s)
{
	struct scope *c = top(s);

	if (c->pending == NOTHING)
		return;
	if (c->pending != CLASS_NAME && c->pending != FUN_NAME && c->pending != VALUE_NAME)
		end_decl(s, c->at, s->prev.line);
	c->bodyless = c->pending == CLASS_HEAD ? c->at : NO_DECL;
	if (c->bodyless != NO_DECL)
		s->to->at[c->at].head = s->to->at[c->at].last;
	begin_statement(c);
}

static void name_class(struct scan *s, struct tw_str name)
{
	struct scope *c = top(s);

	c->name = name;
	c->at = declare(s, TW_DECL_CLASS, inside(s, name), name, s->prev.line);
	c->pending = CLASS_HEAD;
}

static void declare_in(struct scan *s, enum tw_decl_kind kind, struct tw_str name, uint32_t line)
{
	struct scope *c = top(s);

	c->at = declare(s, kind, c->path, name, line);
	c->pending = kind == TW_DECL_METHOD ? FUN_HEAD : VALUE;
}

/* --- scopes --- */

static void push(struct scan *s, struct scope what)
{
	what.bodyless = NO_DECL;
	what.classes = top(s)->classes + what.is_class;
	if (what.classes > CLASSES_MAX) {
		what.is_class = false;
		what.is_code = true;
	}
	if (s->n == SCOPES_MAX)
		s->unstacked++;
	else
		s->scopes[s->n++] = what;
}

static void push_code(struct scan *s, uint32_t decl)
{
	const struct scope *c = top(s);

	push(s, (struct scope){
	                .is_code = true, .path = c->path, .simple = c->simple, .decl = decl});
}

static void push_nameless(struct scan *s)
{
	const char *path = inside(s, TW_STR("?"));

	s->failed = s->failed || !path;
	push(s, (struct scope){.is_class = true, .path = path ? path : "", .decl = NO_DECL});
}

static void push_class(struct scan *s)
{
	struct scope *c = top(s);
	struct scope what = {.is_class = true, .path = c->path, .simple = c->name, .decl = c->at};

	if (c->at != NO_DECL) {
		what.path = s->to->at[c->at].in ? s->to->at[c->at].in : "";
		s->to->at[c->at].head = s->prev.line;
	}
	begin_statement(c);
	push(s, what);
}

/* A brace in a class body that no declaration explains. */
static void push_in_class(struct scan *s)
{
	struct scope *c = top(s);
	const char *initial = s->lexer.kotlin ? "init" : "static";

	if (tw_token_is(&s->prev, initial))
		push_code(s, declare(s, TW_DECL_METHOD, c->path,
		                     s->lexer.kotlin ? TW_STR("<init>") : TW_STR("<clinit>"),
		                     s->prev.line));
	else if (s->prev.kind == TW_TOKEN_WORD ||
	         (s->lexer.kotlin && tw_token_is_sign(&s->prev, ')')))
		push_nameless(s); /* of an enum constant */
	else
		push_code(s, NO_DECL);
}

static bool opens_nameless(const struct scan *s, const struct scope *c)
{
	return c->anon && c->paren == c->anon_paren &&
	       (s->lexer.kotlin || tw_token_is_sign(&s->prev, ')'));
}

static void open_brace(struct scan *s)
{
	struct scope *c = top(s);
	bool free = c->paren == 0 && s->unstacked == 0;

	if (free && c->pending == CLASS_NAME) /* an object without a name */
		name_class(s, c->companion ? TW_STR("Companion") : TW_STR("?"));
	if (s->unstacked) {
		s->unstacked++;
	} else if (free && c->pending == CLASS_HEAD) {
		push_class(s);
	} else if (free && c->pending == FUN_HEAD) {
		uint32_t at = c->at;

		begin_statement(c);
		push_code(s, at);
	} else if (opens_nameless(s, c)) {
		c->anon = false;
		push_nameless(s);
	} else if (free && c->is_class && c->pending == NOTHING && !c->assigned) {
		push_in_class(s);
	} else {
		push_code(s, NO_DECL);
	}
}

static void close_brace(struct scan *s, uint32_t line)
{
	struct scope *c;

	if (s->unstacked) {
		s->unstacked--;
		return;
	}
	end_pending(s);
	if (s->n == 1)
		return;
	end_decl(s, top(s)->decl, line);
	s->n--;
	c = top(s);
	if (c->paren == 0 && c->pending == NOTHING && !c->assigned)
		begin_statement(c);
}

/* --- words --- */

static void meet_class(struct scan *s)
{
	struct scope *c = top(s);

	end_pending(s);
	c->pending = CLASS_NAME;
	c->bodyless = NO_DECL;
}

/* `object` is a declaration where one may be, and otherwise an expression. */
static void meet_object(struct scan *s)
{
	struct scope *c = top(s);

	if (c->paren == 0 && !c->is_code && c->pending == NOTHING) {
		meet_class(s);
		c->object = true;
		c->companion = tw_token_is(&s->prev, "companion");
		return;
	}
	c->anon = true;
	c->anon_paren = c->paren;
}

static void meet_constructor(struct scan *s, uint32_t line)
{
	struct scope *c = top(s);

	if (c->bodyless != NO_DECL) { /* of the class itself, on a separate line */
		c->at = c->bodyless;
		c->name = s->to->at[c->at].name;
		c->bodyless = NO_DECL;
		c->pending = CLASS_HEAD;
	} else if (c->is_class) {
		declare_in(s, TW_DECL_METHOD, TW_STR("<init>"), line);
	}
}

static void keyword_kotlin(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);
	bool open = c->paren == 0 && !c->is_code;

	if (tw_token_is(t, "object"))
		meet_object(s);
	else if (c->paren == 0 && (tw_token_is(t, "class") || tw_token_is(t, "interface")))
		meet_class(s);
	if (!open || c->pending != NOTHING)
		return;
	if (tw_token_is(t, "fun"))
		c->pending = FUN_NAME;
	else if (tw_token_is(t, "val") || tw_token_is(t, "var"))
		c->pending = VALUE_NAME;
	else if (tw_token_is(t, "constructor"))
		meet_constructor(s, t->line);
	if (c->pending == FUN_NAME || c->pending == VALUE_NAME)
		c->bodyless = NO_DECL;
}

static void keyword_java(struct scan *s, const struct tw_token *t)
{
	static const char *const classes[] = {"class", "interface", "enum", NULL};
	struct scope *c = top(s);

	if (tw_token_is(t, "new")) {
		c->anon = true;
		c->anon_paren = c->paren;
	} else if (c->paren == 0 && c->pending == NOTHING &&
	           (tw_token_is_any(t, classes) ||
	                   (!c->is_code && !c->assigned && tw_token_begins_record(&s->lexer, t)))) {
		meet_class(s);
	} else if (tw_token_is(t, "throws")) {
		c->throws = true;
	}
}

/* Whether the word is the expected name. */
static bool take_name(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);
	bool of_value = c->pending == VALUE_NAME;

	if (c->paren)
		return false;
	if (c->pending == CLASS_NAME && !tw_token_is(t, "class") && !tw_token_is(t, "interface")) {
		s->prev.line = t->line;
		name_class(s, t->word);
		return true;
	}
	if ((c->pending != FUN_NAME && !of_value) || c->angle)
		return false;
	if (tw_token_is(t, "interface")) /* fun interface */
		c->pending = CLASS_NAME;
	else if (of_value && c->name.len && (tw_token_is(t, "by") || tw_token_is(t, "get")))
		declare_in(s, TW_DECL_PROPERTY, c->name, t->line);
	else
		c->name = t->word;
	return true;
}

/* `val x` and `var x` of a class's constructor are properties too. */
static void meet_parameter(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);
	const uint32_t lead = c->lead;

	if (!s->lexer.kotlin || c->pending != CLASS_HEAD || c->paren != 1 || c->supers ||
	        c->at == NO_DECL)
		return;
	if (s->parameter) {
		c->lead = 0;
		(void)declare(s, TW_DECL_PROPERTY, s->to->at[c->at].in, t->word, t->line);
		c->lead = lead;
	}
	s->parameter = !s->parameter && (tw_token_is(t, "val") || tw_token_is(t, "var"));
}

static void on_word(struct scan *s, const struct tw_token *t)
{
	bool member = tw_token_is_sign(&s->prev, '.') || tw_token_is_sign(&s->prev, ':');

	meet_parameter(s, t);
	if (take_name(s, t))
		return;
	if (!top(s)->is_code && (tw_token_is(t, "import") || tw_token_is(t, "package")))
		top(s)->skip = true;
	if (member || t->quoted)
		return;
	if (s->lexer.kotlin)
		keyword_kotlin(s, t);
	else
		keyword_java(s, t);
}

/* --- signs --- */

static void meet_primary(struct scan *s)
{
	const struct scope *c = top(s);

	if (s->lexer.kotlin && c->paren == 0 && c->pending == CLASS_HEAD && !c->supers &&
	        c->at != NO_DECL)
		s->to->at[c->at].primary = true;
}

/* A parenthesis after a name begins a method, where methods may be declared. */
static void open_parenthesis(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);

	meet_primary(s);
	if (c->paren == 0 && c->pending == FUN_NAME) {
		if (c->name.len)
			declare_in(s, TW_DECL_METHOD, c->name, t->line);
		else
			c->pending = NOTHING;
	} else if (!s->lexer.kotlin && c->paren == 0 && c->is_class && c->pending == NOTHING &&
	           !c->assigned && !s->annotation && s->prev.kind == TW_TOKEN_WORD) {
		bool constructs = tw_str_eq(s->prev.word, c->simple);

		declare_in(s, TW_DECL_METHOD, constructs ? TW_STR("<init>") : s->prev.word,
		        s->prev.line);
	}
	c->paren++;
}

static void on_equals(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);

	if (c->paren)
		return;
	if (!s->lexer.kotlin)
		c->assigned = true;
	else if (c->pending == FUN_HEAD)
		c->pending = EXPRESSION;
	else if (c->pending == VALUE_NAME)
		declare_in(s, TW_DECL_PROPERTY, c->name, t->line);
}

static void on_colon(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);

	if (c->paren)
		return;
	if (c->pending == CLASS_NAME)
		name_class(s, c->companion ? TW_STR("Companion") : TW_STR("?"));
	c->supers = c->supers || (c->pending == CLASS_HEAD && !c->angle);
	if (c->pending == VALUE_NAME && c->name.len)
		declare_in(s, TW_DECL_PROPERTY, c->name, t->line);
}

static void on_comma(struct scan *s)
{
	struct scope *c = top(s);

	if (c->anon && c->paren == c->anon_paren)
		c->anon = false;
	if (c->paren || c->angle || !c->is_class || c->pending == CLASS_HEAD || c->throws)
		return;
	if (c->pending == NOTHING || (c->pending == FUN_HEAD && !s->lexer.kotlin)) {
		c->pending = NOTHING;
		c->lead = 0;
	}
}

static void end_statement(struct scan *s, uint32_t line)
{
	struct scope *c = top(s);

	if (c->paren)
		return;
	s->prev.line = line;
	end_pending(s);
	begin_statement(c);
}

static void on_angle(struct scope *c, bool kotlin, bool opens)
{
	const bool of_class = c->pending == CLASS_HEAD && !c->supers;
	const bool of_name = c->pending == FUN_NAME || c->pending == VALUE_NAME;

	if (c->paren || !(kotlin ? of_name || of_class : c->pending == NOTHING))
		return;
	c->angle = opens ? c->angle + 1 : c->angle - (c->angle > 0);
}

static void on_sign(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);

	switch (t->sign) {
	case '{':
		open_brace(s);
		break;
	case '}':
		close_brace(s, t->line);
		break;
	case '(':
		open_parenthesis(s, t);
		break;
	case '[':
		c->paren++;
		break;
	case ')':
	case ']':
		c->paren -= c->paren > 0;
		break;
	case ';':
		end_statement(s, t->line);
		break;
	case '=':
		on_equals(s, t);
		break;
	case ':':
		on_colon(s, t);
		break;
	case ',':
		on_comma(s);
		break;
	case '<':
	case '>':
		on_angle(c, s->lexer.kotlin, t->sign == '<');
		break;
	default:
		break;
	}
}

/* --- lines of Kotlin --- */

static bool goes_on_with(const struct scan *s, const struct scope *c, const struct tw_token *t)
{
	static const char *const anywhere[] = {"else", "as", "where", "by", NULL};

	if (t->kind == TW_TOKEN_SIGN && strchr(".?&|:=)", t->sign))
		return true;
	if (c->pending == CLASS_HEAD || c->pending == FUN_HEAD)
		return tw_token_is_sign(t, '{') || tw_token_is_sign(t, '(') ||
		       tw_token_is(t, "constructor") || tw_token_is(t, "where");
	if (c->pending == VALUE && tw_jvm_is_accessor(&s->lexer, t))
		return true;
	return tw_token_is_any(t, anywhere);
}

static void begin_line(struct scan *s, const struct tw_token *t)
{
	struct scope *c = top(s);

	if (c->skip && c->paren == 0) {
		c->skip = false;
		c->lead = 0;
	}
	if (!s->lexer.kotlin || c->paren || c->pending == NOTHING || c->pending == CLASS_NAME ||
	        c->pending == FUN_NAME)
		return;
	if (tw_token_joins(&s->prev) || goes_on_with(s, c, t))
		return;
	if (c->pending == VALUE_NAME && c->name.len) /* neither a type nor a value */
		declare_in(s, TW_DECL_PROPERTY, c->name, s->prev.line);
	end_pending(s);
}

/* Inside a property it belongs to the accessor. */
static void meet_jvm_name(struct scan *s, const struct tw_token *t)
{
	const struct scope *c = top(s);

	if (tw_jvm_step(&s->jvm, t) && c->pending == VALUE && c->at != NO_DECL)
		tw_jvm_take(&s->jvm, s->to->at[c->at].jvm);
}

static void step(struct scan *s, const struct tw_token *t)
{
	struct scope *c;

	if (t->begins)
		begin_line(s, t);
	c = top(s);
	if (s->lexer.kotlin)
		meet_jvm_name(s, t);
	if (c->lead == 0 && c->paren == 0 && (t->kind == TW_TOKEN_WORD || tw_token_is_sign(t, '@')))
		c->lead = t->line;
	s->annotation = tw_jvm_names_annotation(s->annotation, &s->prev, t);
	if (t->kind == TW_TOKEN_WORD)
		on_word(s, t);
	else if (t->kind == TW_TOKEN_SIGN)
		on_sign(s, t);
	if (tw_token_is_sign(t, '('))
		s->annotation = false;
	s->prev = *t;
}

enum tw_status tw_source_scan(struct tw_str text, bool kotlin, struct tw_arena *a,
        struct tw_decls *ret, struct tw_err *err)
{
	struct tw_decls found = {.cap = TW_SCAN_DECLS};
	struct scan s = {.a = a, .to = &found, .n = 1};
	struct tw_token t;

	found.at = tw_arena_alloc(a, found.cap, sizeof *found.at);
	s.scopes = tw_arena_zalloc(a, SCOPES_MAX, sizeof *s.scopes);
	if (!found.at || !s.scopes)
		return tw_oom(err);
	s.scopes[0] = (struct scope){.path = "", .decl = NO_DECL, .bodyless = NO_DECL};
	tw_lexer_begin(&s.lexer, text, kotlin);
	while ((t = tw_lexer_next(&s.lexer)).kind != TW_TOKEN_END && !s.failed)
		step(&s, &t);
	while (s.n > 1 && !s.failed) /* unclosed braces */
		close_brace(&s, s.prev.line);
	if (s.failed)
		return tw_oom(err);
	end_pending(&s);
	found.facade = s.jvm.file;
	*ret = found;
	return TW_OK;
}
