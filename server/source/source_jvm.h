/*
 * source_jvm.h - recognises names in a Kotlin file that differ in class files: @JvmName of
 * functions, accessors and the file; and the begin of a property's accessors.
 *
 * Call with each token in order.  Pure.  Thread: any.
 */
#ifndef TW_SOURCE_JVM_H
#define TW_SOURCE_JVM_H

#include "server/source/source_lex.h"

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
bool tw_jvm_is_accessor(const struct tw_lexer *behind, const struct tw_token *t);

/* Returns whether the token is part of an annotation's name, or the parenthesis after it.  was: the
 * result for the previous token. */
bool tw_jvm_names_annotation(bool was, const struct tw_token *prev, const struct tw_token *t);

#endif
