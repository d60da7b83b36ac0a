/*
 * anr_frame.h - what stays of a method's name when the app is built again.
 *
 * Compilers number what has no name of its own (Main$2, lambda$onCreate$0, Main$$Lambda$14), mark
 * what they changed (load-0d7_KjU, load$app_release) and add methods that only call another one.
 * Equal causes must have equal names all the same.  Pure.  Thread: any.
 */
#ifndef TW_ANR_FRAME_H
#define TW_ANR_FRAME_H

#include "decoder/base/str.h"

/* Writes the name without numbers and marks, valid UTF-8 and ended by NUL, cut to cap (> 0). */
size_t tw_anr_frame_plain(struct tw_str name, char *out, size_t cap);

/* Is it a method of a compiler's, that only calls the one above it on the stack? */
bool tw_anr_frame_is_bridge(struct tw_str name);

#endif
