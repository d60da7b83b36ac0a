/*
 * source_jvm.h - what a Kotlin file says of the names that its declarations have in class files:
 * @JvmName of functions, accessors and the file; and where accessors of a property begin.
 *
 * Fed with each token in turn.  Pure.  Thread: any.
 */
#ifndef TW_SOURCE_JVM_H
#define TW_SOURCE_JVM_H

#include "server/source/source_lex.h"

enum { TW_JVM_NAMES = 2 }; /* of a declaration: of a property's get and set */

struct tw_jvm {
	struct tw_str names[TW_JVM_NAMES]; /* that no declaration took yet */
	struct tw_str file;                /* @file:JvmName, "" none */
	enum { TW_JVM_NOTHING, TW_JVM_AT, TW_JVM_NAMED, TW_JVM_OPEN } state;
	bool of_file;
};

/* True: a name of a declaration was read just now. */
bool tw_jvm_step(struct tw_jvm *j, const struct tw_token *t);

/* Moves what was read to where there is room. */
void tw_jvm_take(struct tw_jvm *j, struct tw_str to[TW_JVM_NAMES]);

/* Does the token begin "get", "private set", "@JvmName("x") get"? */
bool tw_jvm_is_accessor(const struct tw_lexer *behind, const struct tw_token *t);

/* Is the token part of an annotation's name, or the parenthesis behind it?  was: was the one
 * before? */
bool tw_jvm_names_annotation(bool was, const struct tw_token *prev, const struct tw_token *t);

#endif
