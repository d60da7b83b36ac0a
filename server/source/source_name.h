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

#include "server/source/source_scan.h"

enum { TW_NAME_BYTES = 2048, TW_NAME_PIECES = 12, TW_CLOCK_SYNC_RANGES = 16 };

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
	struct tw_range at[TW_CLOCK_SYNC_RANGES]; /* more than one: overloads */
	size_t n;                                 /* 0: not even the class was found */
	bool is_method;                           /* false: only the lines of the class */
	const char *note;                         /* reason why it is approximate, otherwise NULL */
};

/* line: from the trace or the mapping, 0 unknown. */
void tw_source_location(const struct tw_decls *decls, const struct tw_source_name *name,
        uint32_t line, struct tw_source_location *ret);

#endif
