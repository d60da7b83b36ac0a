/*
 * source_scan.h - where a Java or Kotlin file declares its classes and methods.
 *
 * No compiler: braces, brackets and the words in front of them.  What is told of a method are its
 * lines from the first annotation to the brace that ends it; of a Kotlin function without braces,
 * to the end of its expression.  A class is named as in a trace, Outer$Inner; one without a name
 * ends in "$?".  Top-level functions of Kotlin are in the class "".  Files may be anything: the
 * work is that of reading them once, at most TW_SCAN_DECLS are kept.  Pure.  Thread: any.
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
	const char *in;                  /* the class around it, of a class its own name */
	struct tw_str name;              /* in the text; "<init>", "<clinit>" of what has none */
	uint32_t first, last;            /* lines, from 1 */
	uint32_t head;                   /* of a class: the line of its brace, or its last */
	struct tw_str jvm[TW_JVM_NAMES]; /* what it is called in class files, by @JvmName */
	/* of a class of Kotlin */
	bool primary; /* its head declares a constructor */
	bool object;  /* it is one; companion: of the class around it */
	bool companion;
};

struct tw_decls {
	struct tw_decl *at;
	size_t n, cap;
	bool cut;             /* there are more */
	struct tw_str facade; /* @file:JvmName: the class of top-level functions, "" none */
};

/* What is told points into text and arena. */
enum tw_status tw_source_scan(struct tw_str text, bool kotlin, struct tw_arena *a,
        struct tw_decls *ret, struct tw_err *err) TW_MUST_USE;

#endif
