/*
 * anr_frame.h - reduces a method's name to the part that is equal in all builds.
 *
 * Compilers number anonymous classes and methods (Main$2, lambda$onCreate$0, Main$$Lambda$14), mark
 * changed ones (load-0d7_KjU, load$app_release) and add methods that only call another one.  Equal
 * causes must have equal names nevertheless.  Pure.  Thread: any.
 */
#ifndef TW_ANR_FRAME_H
#define TW_ANR_FRAME_H

#include "decoder/base/str.h"

/* Writes the name without numbers and compiler suffixes, valid UTF-8 and NUL-terminated, truncated
 * to cap (> 0). */
size_t tw_anr_frame_plain(struct tw_str name, char *out, size_t cap);

/* Returns whether it is a compiler-generated method that only calls the one above it on the
 * stack. */
bool tw_anr_frame_is_bridge(struct tw_str name);

#endif
