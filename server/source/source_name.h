/*
 * source_name.h - a method's name as traces have it, and which declaration of a file it means.
 *
 * "com.example.feed.FeedAdapter$Holder.bind" is looked for as FeedAdapter or FeedAdapterKt in
 * com/example/feed, and what @file:JvmName calls so; "Feeds__MoreKt" in More.kt.  Compilers rename:
 * lambdas, accessors, default arguments and what is mangled go back to the method they were made
 * of, and the answer says that it is approximate.  Pure. Thread: any.
 */
#ifndef TW_SOURCE_NAME_H
#define TW_SOURCE_NAME_H

#include "server/source/source_scan.h"

enum { TW_NAME_BYTES = 2048, TW_NAME_PIECES = 12, TW_PLACE_RANGES = 16 };

struct tw_source_name {
	const char *package; /* "com.example.feed", "" none */
	const char *folder;  /* "com/example/feed" */
	const char *outer;   /* "FeedAdapter" */
	const char *file;    /* what its file is called: without the Kt of top-level functions */
	const char *pieces[TW_NAME_PIECES]; /* behind the dollar signs; "1" and "" too */
	size_t n;
	const char *method; /* as the source has it */
	const char *raw;    /* as the trace has it */
	bool lambda;        /* inside the method of that name */
};

/* TW_BAD_REQUEST: it is no name of a Java or Kotlin method. */
enum tw_status tw_source_name_read(const char *method, struct tw_arena *a,
        struct tw_source_name *ret, struct tw_err *err) TW_MUST_USE;

struct tw_range {
	uint32_t first, last; /* lines, from 1 */
};

struct tw_source_place {
	struct tw_range at[TW_PLACE_RANGES]; /* more than one: overloads */
	size_t n;                            /* 0: not even the class is here */
	bool is_method;                      /* false: lines of the class alone */
	const char *note;                    /* why it is approximate, NULL when it is not */
};

/* line: where the trace or the mapping says it is, 0 not known. */
void tw_source_place(const struct tw_decls *decls, const struct tw_source_name *name, uint32_t line,
        struct tw_source_place *ret);

#endif
