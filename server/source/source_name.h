/*
 * source_name.h - parses a method's name as in traces and finds its declaration in a file.
 *
 * "com.example.feed.FeedAdapter$Holder.bind" is searched as FeedAdapter or FeedAdapterKt in
 * com/example/feed, and by @file:JvmName; "Feeds__MoreKt" in More.kt.  Compilers rename: lambdas,
 * accessors, default arguments and mangled names are mapped to the method from which they were
 * generated, and the result is marked as approximate.  Pure.  Thread: any.
 */
#ifndef TW_SOURCE_NAME_H
#define TW_SOURCE_NAME_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/source/source_lex.h"

/* --- declarations of classes and methods in a Java or Kotlin file --- */

/* Not a compiler: it uses braces, brackets and the words before them. The lines of a method are
 * from the first annotation to its closing brace; of a Kotlin function without braces, to the
 * end of its expression. A class is named as in a trace, Outer$Inner; the name of an anonymous
 * one ends in "$?". Top-level functions of Kotlin are in the class "". Files may have any
 * content: time is linear, and at most TW_SCAN_DECLS declarations are kept. Pure. */
/*
 * Recognises names in a Kotlin file that differ in class files: @JvmName of functions, accessors
 * and the file; and the begin of a property's accessors.
 *
 * Call with each token in order.  Pure.
 */

enum { TW_JVM_NAMES = 2 }; /* per declaration: of a property's get and set */

struct tw_jvm {
	struct tw_str names[TW_JVM_NAMES]; /* not yet assigned to a declaration */
	struct tw_str file;                /* @file:JvmName, "" none */
	enum { TW_JVM_NOTHING, TW_JVM_AT, TW_JVM_NAMED, TW_JVM_OPEN } state;
	bool of_file;
};

/* True: this token completed the name of a declaration. */
bool tw_jvm_step(struct tw_jvm *j, const struct tw_token *t);

/* Moves the names that were read to free entries of `to`. */
void tw_jvm_take(struct tw_jvm *j, struct tw_str to[TW_JVM_NAMES]);

/* Returns whether the token begins "get", "private set", "@JvmName("x") get". */
bool tw_jvm_is_accessor(const struct tw_lexer *after, const struct tw_token *t);

/* Returns whether the token is part of an annotation's name, or the parenthesis after it.  was: the
 * result for the previous token. */
bool tw_jvm_names_annotation(bool was, const struct tw_token *prev, const struct tw_token *t);

enum { TW_SCAN_DECLS = 20000 };

enum tw_decl_kind { TW_DECL_CLASS, TW_DECL_METHOD, TW_DECL_PROPERTY };

struct tw_decl {
	enum tw_decl_kind kind;
	const char *in;       /* the enclosing class; for a class its own name */
	struct tw_str name;   /* in the text; "<init>" and "<clinit>" for nameless ones */
	uint32_t first, last; /* lines, from 1 */
	uint32_t head;        /* of a class: the line of its brace, or its last */
	struct tw_str jvm[TW_JVM_NAMES]; /* its names in class files, by @JvmName */
	/* for a Kotlin class */
	bool primary; /* its head declares a constructor */
	bool object;  /* it is an object; companion: of the enclosing class */
	bool companion;
};

struct tw_decls {
	struct tw_decl *at;
	size_t n, cap;
	bool cut;             /* incomplete */
	struct tw_str facade; /* @file:JvmName: the class of top-level functions, "" none */
};

/* Results point into text and arena. */
enum tw_status tw_source_scan(struct tw_str text, bool kotlin, struct tw_arena *a,
        struct tw_decls *ret, struct tw_err *err) TW_MUST_USE;

enum { TW_SOURCE_METHOD_BYTES = 2048, TW_NAME_PIECES = 12, TW_LOCATION_RANGES = 16 };

struct tw_source_name {
	const char *package; /* "com.example.feed", "" none */
	const char *folder;  /* "com/example/feed" */
	const char *outer;   /* "FeedAdapter" */
	const char *file;    /* its file's name: without the Kt of top-level functions */
	const char *pieces[TW_NAME_PIECES]; /* parts after dollar signs; may be "1" and "" */
	size_t n;
	const char *method; /* as in the source */
	const char *raw;    /* as in the trace */
	bool lambda;        /* inside the method of that name */
};

/* TW_BAD_REQUEST: not the name of a Java or Kotlin method. */
enum tw_status tw_source_name_read(const char *method, struct tw_arena *a,
        struct tw_source_name *ret, struct tw_err *err) TW_MUST_USE;

struct tw_range {
	uint32_t first, last; /* lines, from 1 */
};

struct tw_source_location {
	struct tw_range at[TW_LOCATION_RANGES]; /* more than one: overloads */
	size_t n;                               /* 0: not even the class was found */
	bool is_method;                         /* false: only the lines of the class */
	const char *note;                       /* reason why it is approximate, otherwise NULL */
};

/* line: from the trace or the mapping, 0 unknown. */
void tw_source_location(const struct tw_decls *decls, const struct tw_source_name *name,
        uint32_t line, struct tw_source_location *ret);

#endif
