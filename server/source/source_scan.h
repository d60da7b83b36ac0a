/*
 * source_scan.h - finds the declarations of classes and methods in a Java or Kotlin file.
 *
 * Not a compiler: it uses braces, brackets and the words before them.  The lines of a method are
 * from the first annotation to its closing brace; of a Kotlin function without braces, to the end
 * of its expression.  A class is named as in a trace, Outer$Inner; the name of an anonymous one
 * ends in "$?". Top-level functions of Kotlin are in the class "".  Files may have any content:
 * time is linear, and at most TW_SCAN_DECLS declarations are kept.  Pure.  Thread: any.
 */
#ifndef TW_SOURCE_SCAN_H
#define TW_SOURCE_SCAN_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/source/source_jvm.h"

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

#endif
