/*
 * anr_line.c - the grammar of ANR reports, Dalvik to Android 15, line by line.
 *
 *   "NAME" [daemon] prio=5 tid=1 STATE [(still starting up)]      ART, Dalvik, Play console
 *   "NAME" prio=5 (not attached)         "NAME" sysTid=12         native threads
 *   NAME (state):tid=1 systid=12                                  Crashlytics
 *     | attributes                at a.B.c(B.java:1)              - lock lines
 *     native: #00 pc 12  PATH (FUNCTION+4) (BuildId: ab)          kernel: FUNCTION+0x1/0x2
 *   a.b.ANRError: message         Caused by: ..._Thread: NAME (state = BLOCKED)
 *
 * A name may contain quotes, so it ends at the last one of its line; if it contains line breaks,
 * the end of it is used.  Lines from logcat have its prefix, in any of its usual forms.
 */
#include "decoder/formats/anr/anr_line.h"

#include "decoder/formats/anr/anr_scan.h"

static const struct {
	const char *name, *prefix;
	bool of_file;
} facts[TW_ANR_FACTS] = {
#define FILE                      true
#define DUMP                      false
#define FACT(name, prefix, scope) {#name, prefix, scope},
#include "decoder/formats/anr/anr_facts.def"
#undef FACT
#undef FILE
#undef DUMP
};

const char *tw_anr_fact_name(enum tw_anr_fact fact)
{
	return facts[fact].name;
}

bool tw_anr_fact_of_file(enum tw_anr_fact fact)
{
	return facts[fact].of_file;
}

/* --- logcat's prefixes --- */

static bool is_level(char c)
{
	return c && strchr("VDIWEFA", c);
}

/* "E/Tag( 12): " or "I/art: " */
static bool eat_brief(struct tw_str *s)
{
	size_t end = tw_anr_find(*s, ": ");

	if (s->len < 4 || !is_level(s->ptr[0]) || s->ptr[1] != '/' || end == s->len || end > 64)
		return false;
	if (memchr(s->ptr, '(', end) && s->ptr[end - 1] != ')')
		return false;
	*s = tw_str_from(*s, end + 2);
	return true;
}

/* " 12  34 E Tag: " */
static bool eat_thread_time(struct tw_str *s)
{
	struct tw_str rest = tw_anr_skip_blanks(*s);
	uint64_t number;
	size_t end;

	if (!tw_anr_eat_number(&rest, &number))
		return false;
	rest = tw_anr_skip_blanks(rest);
	if (!tw_anr_eat_number(&rest, &number))
		return false;
	rest = tw_anr_skip_blanks(rest);
	end = tw_anr_find(rest, ":");
	if (end < 2 || end == rest.len || !is_level(rest.ptr[0]) || rest.ptr[1] != ' ')
		return false;
	*s = tw_str_from(rest, end + 1);
	(void)tw_anr_eat(s, " ");
	return true;
}

static struct tw_str without_log(struct tw_str line, int64_t *ret_at_ns)
{
	struct tw_str rest = line;
	int64_t at_ns;

	if (line.len > 1 && line.ptr[1] == '/' && eat_brief(&rest))
		return rest;
	if (!line.len || line.ptr[0] < '0' || line.ptr[0] > '9' || !tw_anr_eat_date(&rest, &at_ns))
		return line;
	if (eat_thread_time(&rest)) {
		*ret_at_ns = at_ns;
		return rest;
	}
	rest = tw_anr_skip_blanks(rest);
	if (!eat_brief(&rest))
		return line;
	*ret_at_ns = at_ns;
	return rest;
}

/* --- threads --- */

static bool head_word(struct tw_anr_line *l, struct tw_str word)
{
	int32_t priority;

	if (tw_anr_eat(&word, "prio=") && tw_anr_eat_signed(&word, &priority)) {
		l->priority = priority;
		return true;
	}
	if (tw_anr_eat(&word, "tid="))
		return tw_anr_eat_number(&word, &l->tid);
	if (tw_anr_eat(&word, "sysTid="))
		return tw_anr_eat_number(&word, &l->sys_tid);
	if (tw_str_eq(word, TW_STR("daemon")))
		l->daemon = true;
	else if (tw_str_eq(word, TW_STR("(not")))
		l->attached = false;
	else if (tw_str_eq(word, TW_STR("(still")))
		l->starting = true;
	else if (!l->text.len && word.len && word.ptr[0] >= 'A' && word.ptr[0] <= 'z')
		l->text = word;
	return false;
}

/* Parses the part after the name. */
static enum tw_anr_kind parse_head(struct tw_anr_line *l, struct tw_str name, struct tw_str rest)
{
	bool known = false;

	l->name = name;
	l->attached = true;
	while (rest.len) {
		struct tw_str word = tw_anr_take_word(&rest);

		known = head_word(l, word) || known;
		if (l->starting || !l->attached)
			break; /* the rest are the remaining words in parentheses */
	}
	if (l->tid == 0)
		l->attached = false;
	return known ? TW_ANR_THREAD : TW_ANR_OTHER;
}

static enum tw_anr_kind parse_thread(struct tw_anr_line *l, struct tw_str s)
{
	size_t quote = tw_anr_find_last(s, "\"");
	struct tw_str rest = tw_str_from(s, quote == s.len ? quote : quote + 1);

	if (quote == 0 || rest.len == 0 || rest.ptr[0] != ' ')
		return TW_ANR_OTHER;
	return parse_head(l, (struct tw_str){s.ptr + 1, quote - 1}, rest);
}

/* Parses the last line of a name with line breaks, and the part after it. */
static enum tw_anr_kind parse_end_of_name(struct tw_anr_line *l, struct tw_str s)
{
	static const char *const suffixes[] = {"\" prio=", "\" daemon prio=", "\" sysTid="};
	size_t quote = tw_anr_find_last(s, "\"");

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		struct tw_str rest = tw_str_from(s, quote);

		if (tw_anr_eat(&rest, suffixes[i]))
			return parse_head(
			        l, (struct tw_str){s.ptr, quote}, tw_str_from(s, quote + 1));
	}
	return TW_ANR_OTHER;
}

/* main (timed waiting):tid=1 systid=12 */
static enum tw_anr_kind parse_named_thread(struct tw_anr_line *l, struct tw_str s)
{
	size_t at = tw_anr_find(s, "):tid=");
	struct tw_str head = {s.ptr, at};
	size_t open = tw_anr_find_last(head, " (");

	if (at == s.len || open == head.len || !tw_anr_number_after(s, "):tid=", &l->tid))
		return TW_ANR_OTHER;
	(void)tw_anr_number_after(s, "systid=", &l->sys_tid);
	l->name = (struct tw_str){s.ptr, open};
	l->text = tw_str_from(head, open + 2);
	l->attached = true;
	return TW_ANR_THREAD;
}

static enum tw_anr_kind parse_times(struct tw_anr_line *l, struct tw_str s)
{
	size_t at = tw_anr_find(s, "schedstat=(");
	struct tw_str rest = tw_str_from(s, at == s.len ? at : at + 11);

	if (tw_anr_eat(&s, "state=") && s.len)
		l->text = (struct tw_str){s.ptr, 1};
	rest = tw_anr_skip_blanks(rest);
	if (tw_anr_eat_number(&rest, &l->run_ns)) {
		rest = tw_anr_skip_blanks(rest);
		(void)tw_anr_eat_number(&rest, &l->queue_ns);
	}
	(void)tw_anr_number_after(s, " utm=", &l->user_ticks);
	(void)tw_anr_number_after(s, " stm=", &l->kernel_ticks);
	return TW_ANR_TIMES;
}

static enum tw_anr_kind parse_attribute(struct tw_anr_line *l, struct tw_str s)
{
	struct tw_str rest = tw_anr_skip_blanks(tw_str_from(s, 1));
	size_t nice = tw_anr_find(rest, " nice=");

	if (tw_anr_number_after(rest, "sysTid=", &l->sys_tid)) {
		struct tw_str value = tw_str_from(rest, nice == rest.len ? nice : nice + 6);

		(void)tw_anr_eat_signed(&value, &l->nice);
		return TW_ANR_IDS;
	}
	if (tw_anr_find(rest, "schedstat=(") < rest.len)
		return parse_times(l, rest);
	return TW_ANR_ATTRIBUTE;
}

/* --- frames --- */

/* a.B.c(B.java:1), a.B.c (B.java:1), a.B.c; java.base@11/a.B.c */
static bool split_frame(struct tw_anr_line *l, struct tw_str s)
{
	size_t open = tw_anr_find(s, "(");
	struct tw_str name = {s.ptr, open};
	size_t slash = tw_anr_find_last(name, "/");
	struct tw_str where = tw_str_from(s, open == s.len ? open : open + 1);
	size_t close = tw_anr_find_last(where, ")");

	if (slash < name.len)
		name = tw_str_from(name, slash + 1);
	l->name = tw_str_trim(name);
	if (l->name.len && l->name.ptr[l->name.len - 1] == '!')
		l->name.len--; /* Android 5 to 7 mark calls without a state change this way */
	l->text = (struct tw_str){where.ptr, close};
	return l->name.len && memchr(l->name.ptr, '.', l->name.len);
}

/* "f" of "f+12", "f + 12" */
static struct tw_str without_distance(struct tw_str s)
{
	size_t n = s.len;

	while (n && s.ptr[n - 1] >= '0' && s.ptr[n - 1] <= '9')
		n--;
	if (n == s.len || n == 0)
		return s;
	s.len = n;
	s = tw_str_trim(s);
	if (s.len == 0 || s.ptr[s.len - 1] != '+')
		return s;
	s.len--;
	return tw_str_trim(s);
}

static struct tw_str base_name(struct tw_str path)
{
	size_t n = path.len;

	while (n && path.ptr[n - 1] != '/' && path.ptr[n - 1] != '!')
		n--;
	return tw_str_trim(tw_str_from(path, n));
}

/* Parses the part after "#": 00 pc 12  PATH (deleted) (offset 12) (FUNCTION+4) (BuildId: ab) */
static enum tw_anr_kind parse_native(struct tw_anr_line *l, struct tw_str s)
{
	struct tw_str tail, id;
	size_t at;

	if (!tw_anr_eat(&s, "#") || !tw_anr_eat_number(&s, &l->number))
		return tw_anr_find(s, "nwind failed") < s.len ? TW_ANR_FAILED : TW_ANR_REMARK;
	s = tw_anr_skip_blanks(s);
	if (!tw_anr_eat(&s, "pc ") || !tw_anr_eat_hex(&s, &l->number))
		return TW_ANR_REMARK;
	s = tw_anr_skip_blanks(s);
	at = tw_anr_find(s, " (");
	l->text = base_name((struct tw_str){s.ptr, at});
	tail = tw_str_from(s, at);
	at = tw_anr_find_last(tail, " (BuildId: ");
	id = tw_str_from(tail, at);
	if (tw_anr_eat(&id, " (BuildId: "))
		l->build_id = (struct tw_str){id.ptr, tw_anr_find(id, ")")};
	tail.len = at;
	(void)tw_anr_eat(&tail, " (deleted)");
	if (tw_anr_find(tail, " (offset ") == 0)
		tail = tw_str_from(tail, tw_anr_find(tail, ")"));
	(void)tw_anr_eat(&tail, ")");
	if (tw_anr_eat(&tail, " (")) {
		tail.len = tw_anr_find_last(tail, ")");
		l->name = without_distance(tail);
		if (tw_str_eq(l->name, TW_STR("???")))
			l->name.len = 0;
	}
	return TW_ANR_NATIVE;
}

/* --- locks --- */

static const struct {
	const char *prefix;
	enum tw_anr_how how;
} lock_phrases[] = {
        {"locked ", TW_ANR_LOCKED}, {"waiting to lock ", TW_ANR_WANTED},
        {"waiting for lock inflation of ", TW_ANR_INFLATION}, {"waiting on ", TW_ANR_WAITING},
        {"sleeping on ", TW_ANR_SLEEPING},
        {"parking to wait for ", TW_ANR_WAITING}, /* as in other virtual machines than Android's */
};

/* <0x0d3a2f0a> (a a.B) held by thread 5; Dalvik: held by tid=5 (name) */
static enum tw_anr_kind parse_object(struct tw_anr_line *l, struct tw_str s)
{
	size_t held = tw_anr_find_last(s, " held by t");
	struct tw_str holder = tw_str_from(s, held);
	bool address;

	s.len = held;
	s = tw_anr_skip_blanks(s);
	if (!tw_anr_eat(&s, "<"))
		return tw_anr_find(s, "unknown object") < s.len ? TW_ANR_NO_LOCK : TW_ANR_REMARK;
	address = tw_anr_eat(&s, "@addr=");
	if (!tw_anr_eat_hex(&s, &l->object) || !tw_anr_eat(&s, ">"))
		return TW_ANR_REMARK;
	l->object = (l->object & ~TW_ANR_ADDRESS) | (address ? TW_ANR_ADDRESS : 0);
	if (tw_anr_eat(&s, " (a "))
		l->text = (struct tw_str){s.ptr, tw_anr_find_last(s, ")")};
	if (tw_anr_eat(&holder, " held by thread ") || tw_anr_eat(&holder, " held by tid=") ||
	        tw_anr_eat(&holder, " held by threadid="))
		(void)tw_anr_eat_number(&holder, &l->holder);
	return TW_ANR_LOCK;
}

static enum tw_anr_kind parse_lock(struct tw_anr_line *l, struct tw_str s)
{
	for (size_t i = 0; i < sizeof lock_phrases / sizeof *lock_phrases; i++)
		if (tw_anr_eat(&s, lock_phrases[i].prefix)) {
			l->how = lock_phrases[i].how;
			return parse_object(l, s);
		}
	return TW_ANR_REMARK;
}

/* --- heads --- */

static enum tw_anr_kind parse_dashes(struct tw_anr_line *l, struct tw_str s)
{
	enum tw_anr_kind kind = TW_ANR_OTHER;
	size_t at;

	if (tw_anr_eat(&s, "----- pid "))
		kind = TW_ANR_PROCESS;
	else if (tw_anr_eat(&s, "----- Waiting Channels: pid "))
		kind = TW_ANR_CHANNELS;
	else if (tw_anr_eat(&s, "----- dumping pid: "))
		kind = TW_ANR_DUMPING;
	else if (tw_anr_eat(&s, "----- end "))
		kind = TW_ANR_END;
	if (kind == TW_ANR_OTHER || !tw_anr_eat_number(&s, &l->pid))
		return TW_ANR_OTHER;
	at = tw_anr_find(s, " at ");
	if (at < s.len && kind != TW_ANR_DUMPING) {
		s = tw_str_from(s, at + 4);
		(void)tw_anr_eat_date(&s, &l->at_ns);
	}
	return kind;
}

static enum tw_anr_kind parse_cause(struct tw_anr_line *l, struct tw_str s)
{
	size_t at = tw_anr_find(s, "_Thread: ");
	size_t state;

	if (at == s.len)
		return TW_ANR_CAUSE;
	s = tw_str_from(s, at + 9);
	state = tw_anr_find_last(s, " (state = ");
	l->name = (struct tw_str){s.ptr, state};
	if (state < s.len) {
		s = tw_str_from(s, state + 10);
		l->text = (struct tw_str){s.ptr, tw_anr_find_last(s, ")")};
	}
	return TW_ANR_CAUSE;
}

static bool class_like(struct tw_str s)
{
	bool dot = false;

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		dot = dot || c == '.';
		if (c <= ' ' || memchr("()[]{}<>:;,/\\\"'=|", c, 18))
			return false;
	}
	return dot;
}

static bool speaks_of_anr(struct tw_str s)
{
	static const char *const phrases[] = {"ANR", "AnrError", "ot Responding", "ot responding"};

	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
		if (tw_anr_find(s, phrases[i]) < s.len)
			return true;
	return false;
}

/* a.b.FooError: message; number is 1 if it is about an ANR. */
static enum tw_anr_kind parse_exception(struct tw_anr_line *l, struct tw_str s)
{
	size_t at = tw_anr_find(s, ": ");
	struct tw_str name = {s.ptr, at};

	if (!class_like(name) || (tw_anr_find(name, "Error") == name.len &&
	                                 tw_anr_find(name, "Exception") == name.len &&
	                                 tw_anr_find(name, "ANR") == name.len))
		return TW_ANR_OTHER;
	l->name = name;
	l->text = tw_str_from(s, at == s.len ? at : at + 2);
	l->number = speaks_of_anr(s);
	return TW_ANR_EXCEPTION;
}

static enum tw_anr_kind parse_moment(struct tw_anr_line *l, struct tw_str s)
{
	int64_t at_ns;

	(void)tw_anr_eat(&s, "stack = ");
	(void)tw_anr_eat(&s, "[");
	if (!tw_anr_eat_date(&s, &at_ns))
		return TW_ANR_OTHER;
	(void)tw_anr_eat(&s, "]");
	if (tw_str_trim(s).len)
		return TW_ANR_OTHER;
	l->at_ns = at_ns;
	return TW_ANR_MOMENT;
}

static struct tw_str without_quotes(struct tw_str s)
{
	if (s.len > 1 && s.ptr[0] == '\'' && s.ptr[s.len - 1] == '\'')
		return (struct tw_str){s.ptr + 1, s.len - 2};
	return s;
}

static enum tw_anr_kind parse_fact(struct tw_anr_line *l, struct tw_str s)
{
	for (int i = 0; i < TW_ANR_FACTS; i++)
		if (tw_anr_eat(&s, facts[i].prefix)) {
			l->fact = (enum tw_anr_fact)i;
			l->text = without_quotes(tw_str_trim(s));
			return TW_ANR_FACT;
		}
	return TW_ANR_OTHER;
}

/* 45% 12/com.a: 30% user + 15% kernel; 33% TOTAL: ... */
static enum tw_anr_kind parse_load(struct tw_anr_line *l, struct tw_str s)
{
	struct tw_str rest = s;
	uint64_t part;

	(void)(tw_anr_eat(&rest, "+") || tw_anr_eat(&rest, "-"));
	if (!tw_anr_eat_number(&rest, &part))
		return TW_ANR_OTHER;
	if (tw_anr_eat(&rest, ".") && !tw_anr_eat_number(&rest, &part))
		return TW_ANR_OTHER;
	if (!tw_anr_eat(&rest, "% "))
		return TW_ANR_OTHER;
	l->text = tw_str_trim(s);
	return TW_ANR_LOAD;
}

static enum tw_anr_kind parse_bare_frame(struct tw_anr_line *l, struct tw_str s)
{
	size_t open = tw_anr_find(s, "(");

	if (open == s.len || s.ptr[s.len - 1] != ')' || !class_like((struct tw_str){s.ptr, open}) ||
	        !split_frame(l, s))
		return TW_ANR_OTHER;
	return TW_ANR_BARE_AT;
}

static enum tw_anr_kind parse_stack_of(struct tw_anr_line *l, struct tw_str s)
{
	size_t at = tw_anr_find(s, " thread stack trace:");

	if (at == 0 || at == s.len)
		return TW_ANR_OTHER;
	l->name = (struct tw_str){s.ptr, at};
	return TW_ANR_STACK_OF;
}

static enum tw_anr_kind parse_channel(struct tw_anr_line *l, struct tw_str s)
{
	if (!tw_anr_eat(&s, "sysTid=") || !tw_anr_eat_number(&s, &l->sys_tid))
		return TW_ANR_OTHER;
	s = tw_anr_skip_blanks(s);
	if (tw_anr_eat(&s, "state="))
		(void)tw_anr_take_word(&s);
	l->text = tw_str_trim(s);
	return TW_ANR_CHANNEL;
}

/* Lines that start with a word. */
static enum tw_anr_kind parse_words(struct tw_anr_line *l, struct tw_str s, bool indented)
{
	static enum tw_anr_kind (*const tries[])(struct tw_anr_line *, struct tw_str) = {parse_fact,
	        parse_load, parse_channel, parse_moment, parse_exception, parse_named_thread,
	        parse_end_of_name, parse_stack_of, parse_bare_frame};
	struct tw_str rest = s;
	enum tw_anr_kind kind = TW_ANR_OTHER;

	if (tw_anr_eat(&rest, "Caused by: "))
		return parse_cause(l, rest);
	if (tw_anr_eat(&rest, "DALVIK THREADS")) {
		if (tw_anr_eat(&rest, " ("))
			(void)tw_anr_eat_number(&rest, &l->number);
		return TW_ANR_THREADS;
	}
	if (indented && parse_load(l, s) == TW_ANR_LOAD)
		return TW_ANR_LOAD;
	if (indented)
		return parse_bare_frame(l, s);
	for (size_t i = 0; kind == TW_ANR_OTHER && i < sizeof tries / sizeof *tries; i++)
		kind = tries[i](l, s);
	return kind;
}

static enum tw_anr_kind parse_dots(struct tw_anr_line *l, struct tw_str s)
{
	if (tw_anr_eat(&s, "... repeated ") && tw_anr_eat_number(&s, &l->number) &&
	        tw_anr_eat(&s, " times"))
		return TW_ANR_REPEATED;
	return TW_ANR_REMARK; /* "... 10 more" */
}

static enum tw_anr_kind parse_kernel(struct tw_anr_line *l, struct tw_str s)
{
	if (s.len == 0 || s.ptr[0] == '(')
		return TW_ANR_REMARK;
	l->name = (struct tw_str){s.ptr, tw_anr_find(s, "+0x")};
	return l->name.len ? TW_ANR_KERNEL : TW_ANR_REMARK;
}

static enum tw_anr_kind parse(struct tw_anr_line *l, struct tw_str s, bool indented)
{
	struct tw_str rest = s;

	if (tw_anr_eat(&rest, "at "))
		return split_frame(l, rest) ? TW_ANR_AT : TW_ANR_OTHER;
	if (s.ptr[0] == '"')
		return parse_thread(l, s);
	if (s.ptr[0] == '|')
		return parse_attribute(l, s);
	if (tw_anr_eat(&rest, "native: ") || s.ptr[0] == '#')
		return parse_native(l, rest);
	if (tw_anr_eat(&rest, "kernel: "))
		return parse_kernel(l, rest);
	if (tw_anr_eat(&rest, "- "))
		return parse_lock(l, rest);
	if (tw_anr_eat(&rest, "-----"))
		return parse_dashes(l, s);
	if (s.ptr[0] == '.')
		return parse_dots(l, s);
	if (tw_anr_eat(&rest, "Not able to dump stack"))
		return TW_ANR_FAILED;
	if (s.ptr[0] == '(' || tw_anr_eat(&rest, "NOTE: ") || tw_anr_eat(&rest, "DumpLatencyMs: "))
		return TW_ANR_REMARK;
	return parse_words(l, s, indented);
}

struct tw_anr_line tw_anr_line_parse(struct tw_str line)
{
	struct tw_anr_line l = {.at_ns = -1};
	struct tw_str body = without_log(line, &l.at_ns);
	struct tw_str s = tw_str_trim(body);

	if (s.len == 0) {
		l.kind = TW_ANR_BLANK;
		return l;
	}
	l.kind = parse(&l, s, s.ptr != body.ptr);
	return l;
}
