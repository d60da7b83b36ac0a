/*
 * facts.c - parses section names.
 *
 * Sentences as written by ART (monitor.cc, mutex.cc, heap.cc), the framework and btrace 2.0's
 * hooks; a name that only begins like one is ignored.
 */
#include "decoder/formats/markers/facts.h"

/* Removes `prefix` from *s if s begins with it. */
static bool skip(struct tw_str *s, struct tw_str prefix)
{
	if (!tw_str_starts(*s, prefix))
		return false;
	*s = tw_str_from(*s, prefix.len);
	return true;
}

/* Removes the part before `separator`, and `separator`, from *s; false if there is no separator. */
static bool before(struct tw_str *s, struct tw_str separator, struct tw_str *ret)
{
	size_t at = tw_str_find(*s, separator);

	if (at == s->len)
		return false;
	*ret = (struct tw_str){s->ptr, at};
	*s = tw_str_from(*s, at + separator.len);
	return true;
}

static bool skip_number(struct tw_str *s, int64_t *ret)
{
	size_t n = 0;
	uint64_t v;

	while (n < s->len && s->ptr[n] >= '0' && s->ptr[n] <= '9')
		n++;
	if (!tw_str_u64((struct tw_str){s->ptr, n}, INT64_MAX, &v))
		return false;
	*s = tw_str_from(*s, n);
	*ret = (int64_t)v;
	return true;
}

static bool skip_hex(struct tw_str *s, int64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; n < s->len && n < 15; n++) {
		unsigned c = (unsigned char)s->ptr[n];
		unsigned d = c - '0' < 10 ? c - '0' : (c | 0x20) - 'a' + 10;

		if (c - '0' >= 10 && (c | 0x20) - 'a' >= 6)
			break;
		v = v << 4 | d;
	}
	if (n == 0)
		return false;
	*s = tw_str_from(*s, n);
	*ret = (int64_t)v;
	return true;
}

/* "METHOD(FILE:LINE)", where METHOD may have parameters. */
static void method_and_source(
        struct tw_fact *f, struct tw_str where, const char *method_key, const char *source_key)
{
	size_t open = tw_str_find_last(where, TW_STR("("));

	if (where.len == 0)
		return;
	if (open == where.len || where.ptr[where.len - 1] != ')') {
		tw_detail_str(&f->buffer, method_key, where);
		return;
	}
	tw_detail_str(&f->buffer, method_key, (struct tw_str){where.ptr, open});
	tw_detail_str(&f->buffer, source_key,
	        (struct tw_str){where.ptr + open + 1, where.len - open - 2});
}

static bool ends_owner(struct tw_str s)
{
	return s.len == 0 || tw_str_starts(s, TW_STR(" at ")) ||
	       tw_str_starts(s, TW_STR(" waiters=")) || tw_str_starts(s, TW_STR(" blocking from "));
}

/* "NAME (TID)": the name may contain parentheses, so the part after them must match. */
static bool owner(struct tw_fact *f, struct tw_str *s)
{
	struct tw_str rest = *s;
	struct tw_str piece;

	while (before(&rest, TW_STR(" ("), &piece)) {
		struct tw_str name = {s->ptr, (size_t)(piece.ptr + piece.len - s->ptr)};
		struct tw_str after = rest;

		if (!skip_number(&after, &f->value) || !skip(&after, TW_STR(")")) ||
		        !ends_owner(after))
			continue;
		tw_detail_str(&f->buffer, "owner", name);
		*s = after;
		return true;
	}
	return false;
}

/* "monitor contention with owner NAME (TID) at METHOD(FILE:LINE) waiters=N blocking from
 * METHOD(FILE:LINE)"; the part after the owner may be missing. */
static bool monitor(struct tw_str s, struct tw_fact *f)
{
	struct tw_str at = {0};
	struct tw_str from = {0};
	int64_t waiters;
	size_t end;

	if (!owner(f, &s))
		return false;
	f->text = TW_STR("monitor");
	end = tw_str_find_last(s, TW_STR(" blocking from "));
	if (end < s.len) {
		from = tw_str_from(s, end + sizeof " blocking from " - 1);
		s.len = end;
	}
	if (skip(&s, TW_STR(" at "))) {
		end = tw_str_find_last(s, TW_STR(" waiters="));
		at = (struct tw_str){s.ptr, end};
		s = tw_str_from(s, end);
	}
	method_and_source(f, at, "owner_method", "owner_source");
	if (skip(&s, TW_STR(" waiters=")) && skip_number(&s, &waiters))
		tw_detail_int(&f->buffer, "waiters", waiters);
	method_and_source(f, from, "method", "source");
	return true;
}

/* "Lock contention on NAME (owner tid: TID)" */
static bool lock(struct tw_str s, struct tw_fact *f)
{
	static const struct tw_str separator = {" (owner tid: ", sizeof " (owner tid: " - 1};
	size_t at = tw_str_find_last(s, separator);
	struct tw_str rest;

	if (at == s.len)
		return false;
	rest = tw_str_from(s, at + separator.len);
	f->text = (struct tw_str){s.ptr, at};
	return skip_number(&rest, &f->value) && tw_str_eq(rest, TW_STR(")"));
}

/* "0xHEX)" or "0xHEX, timeout:N)" after "CALL(obj:" */
static bool object(struct tw_str s, struct tw_fact *f)
{
	int64_t number;

	if (!skip(&s, TW_STR("0x")) || !skip_hex(&s, &f->value))
		return false;
	if (skip(&s, TW_STR(", timeout:")) && skip_number(&s, &number))
		tw_detail_int(&f->buffer, "timeout_ms", number);
	else if (skip(&s, TW_STR(", time:")) && skip_number(&s, &number))
		tw_detail_int(&f->buffer, "time", number);
	return true;
}

static bool created(struct tw_str s, struct tw_fact *f)
{
	f->text = TW_STR("");
	return skip_number(&s, &f->value) && s.len == 0 && f->value > 0;
}

/* Everything after the prefix; not empty. */
static bool rest(struct tw_str s, struct tw_fact *f)
{
	f->text = s;
	return s.len > 0;
}

/* "PATH" or "PATH,size:N" or "PATH,size:N,offset:N" */
static bool file(struct tw_str s, struct tw_fact *f)
{
	size_t at = tw_str_find_last(s, TW_STR(",size:"));
	struct tw_str tail = tw_str_from(s, at);
	int64_t offset;

	f->text = (struct tw_str){s.ptr, at};
	if (skip(&tail, TW_STR(",size:")) && !skip_number(&tail, &f->value))
		return false;
	if (skip(&tail, TW_STR(",offset:")) && skip_number(&tail, &offset))
		tw_detail_int(&f->buffer, "offset", offset);
	return f->text.len > 0;
}

static bool sync_all(struct tw_str s, struct tw_fact *f)
{
	f->text = TW_STR("sync");
	return s.len == 0;
}

/* "CLASS(LAYOUT@ID)": views of an application; other sections begin with these verbs too. */
static bool node(struct tw_str s, struct tw_fact *f)
{
	f->text = s;
	return s.len > 2 && s.ptr[s.len - 1] == ')' && tw_str_find(s, TW_STR("(")) < s.len &&
	       tw_str_find_last(s, TW_STR("@")) < s.len;
}

/* "INTERFACE:METHOD|CODE]" */
static bool transact(struct tw_str s, struct tw_fact *f)
{
	size_t bar = tw_str_find_last(s, TW_STR("|"));
	struct tw_str rest = bar < s.len ? tw_str_from(s, bar + 1) : TW_STR("");
	int64_t code;

	f->text = (struct tw_str){s.ptr, bar};
	if (!skip_number(&rest, &code) || !tw_str_eq(rest, TW_STR("]")))
		return false;
	tw_detail_int(&f->buffer, "code", code);
	return true;
}

/* "LANGUAGE::INTERFACE::METHOD::SIDE" */
static bool aidl(struct tw_str s, struct tw_fact *f)
{
	size_t at = tw_str_find_last(s, TW_STR("::"));

	if (at == s.len)
		return false;
	f->text = (struct tw_str){s.ptr, at};
	tw_detail_str(&f->buffer, "side", tw_str_from(s, at + 2));
	return at > 0;
}

#define PATTERNS(P)                                                                                \
	P("monitor contention with owner ", monitor, NULL, contention, false)                      \
	P("Lock contention on ", lock, NULL, contention, false)                                    \
	P("Object#wait(obj:", object, NULL, wait, false)                                           \
	P("Object#notify(obj:", object, "notify", notify, true)                                    \
	P("Object#notifyAll(obj:", object, "notifyAll", notify, true)                              \
	P("Unsafe#park(obj:", object, NULL, park, false)                                           \
	P("Unsafe#unpark(obj:", object, NULL, unpark, true)                                        \
	P("pthread_create tid=", created, NULL, thread_created, true)                              \
	P("GC: ", rest, NULL, gc, false)                                                           \
	P("DefineClass ", rest, "define", class_load, false)                                       \
	P("VerifyClass ", rest, "verify", class_load, false)                                       \
	P("ClassFileLoad:", rest, "load", class_load, false)                                       \
	P("write:", file, "write", io, false)                                                      \
	P("__write_chk:", file, "write", io, false)                                                \
	P("pwrite:", file, "pwrite", io, false)                                                    \
	P("read:", file, "read", io, false)                                                        \
	P("__read_chk:", file, "read", io, false)                                                  \
	P("pread:", file, "pread", io, false)                                                      \
	P("readv:", file, "readv", io, false)                                                      \
	P("fsync:", file, "fsync", io, false)                                                      \
	P("fdatasync:", file, "fdatasync", io, false)                                              \
	P("open:", file, "open", io, false)                                                        \
	P("io:sync", sync_all, "sync", io, false)                                                  \
	P("draw ", node, "draw", render, false)                                                    \
	P("prepare ", node, "prepare", render, false)                                              \
	P("render ", node, "render", render, false)                                                \
	P("prepareRoot ", node, "prepareRoot", render, false)                                      \
	P("binder transact[", transact, NULL, binder, false)                                       \
	P("AIDL::", aidl, NULL, binder, false)

static const struct pattern {
	struct tw_str prefix;
	bool (*read)(struct tw_str rest, struct tw_fact *f);
	const char *what; /* NULL: the kind is enough */
	enum tw_note_kind kind;
	bool moment;
} patterns[] = {
#define P(prefix, read, what, kind, moment)                                                        \
	{{prefix, sizeof(prefix) - 1}, read, what, TW_NOTE_##kind, moment},
        PATTERNS(P)
#undef P
};

/* Whether a pattern begins with this letter: most names begin with another one. */
static bool may_match(char first)
{
#define LETTER(prefix, ...) | UINT64_C(1) << (prefix[0] & 63)
	return (UINT64_C(0) PATTERNS(LETTER)) >> (first & 63) & 1;
#undef LETTER
}

static void begin(const struct pattern *p, struct tw_fact *f)
{
	f->kind = p->kind;
	f->moment = p->moment;
	f->value = -1;
	f->text = TW_STR("");
	f->detail = TW_STR("");
	f->buffer.len = 0;
	if (p->what)
		tw_detail_str(&f->buffer, "call", tw_str_of(p->what));
}

static bool is_collection(struct tw_str name)
{
	return name.len > 3 && memcmp(name.ptr + name.len - 3, " GC", 3) == 0;
}

bool tw_fact_of(struct tw_str name, struct tw_fact *ret)
{
	static const struct pattern collection = {.kind = TW_NOTE_gc};
	bool may = name.len && may_match(name.ptr[0]);

	for (size_t i = 0; may && i < sizeof patterns / sizeof *patterns; i++) {
		const struct pattern *p = &patterns[i];

		if (name.ptr[0] != p->prefix.ptr[0] || !tw_str_starts(name, p->prefix))
			continue;
		begin(p, ret);
		if (p->read(tw_str_from(name, p->prefix.len), ret)) {
			ret->detail = tw_detail_text(&ret->buffer);
			return true;
		}
	}
	if (!is_collection(name))
		return false;
	begin(&collection, ret);
	ret->text = (struct tw_str){name.ptr, name.len - 3};
	return true;
}

bool tw_fact_binder_draft(struct tw_str name, struct tw_str *ret_before,
        struct tw_str *ret_interface, uint64_t *ret_code)
{
	struct tw_str rest = name;
	struct tw_str head;
	struct tw_str interface;
	struct tw_str code;

	if (!before(&rest, TW_STR("<rhea-draft>"), &head) ||
	        !skip(&rest, TW_STR("binder transact[")) ||
	        !before(&rest, TW_STR(":"), &interface) || !before(&rest, TW_STR("]"), &code) ||
	        !tw_str_u64(code, UINT32_MAX, ret_code))
		return false;
	*ret_before = head;
	*ret_interface = interface;
	return true;
}
