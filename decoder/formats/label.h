/*
 * label.h - names of frames and threads, as profile files write them.
 *
 * Some frames need their line to resolve their name: R8 writes one file name for all classes, and
 * one of its lines may stand for several methods that were inlined into each other.  Such a frame
 * keeps its line after its name, "a.b.m(:12)" (symbols/names.h).  A frame whose file is named after
 * its class is reduced to class and method.
 */
#ifndef TW_LABEL_H
#define TW_LABEL_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/str.h"

enum { TW_FRAME_NAME_BYTES = 2048 };

/* where: "SourceFile:12", with or without a trailing ')'.  Returns the name itself, or the name
 * with its line in buf. */
struct tw_str tw_frame_name(char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str where);
struct tw_str tw_frame_name_at(
        char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str file, uint64_t line);
/* The same for "a.b.m(SourceFile:12)". */
struct tw_str tw_frame_name_of(char buf[TW_FRAME_NAME_BYTES], struct tw_str text);

/* Thread names with an id, as profile files write them.
 *
 *   main (1234)           this server's exports
 *   main (1234, sampled)
 *   [main tid=1234]       async-profiler
 *
 * False: no id in this label.  *ret_name is a part of the label. */
bool tw_thread_label(struct tw_str label, struct tw_str *ret_name, uint64_t *ret_tid);

#endif
