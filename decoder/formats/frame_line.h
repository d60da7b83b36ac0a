/*
 * frame_line.h - sampled frames whose line a mapping needs.
 *
 * R8 writes one file name for all classes, and one of its lines may stand for several methods that
 * were inlined into each other.  Such a frame keeps its line behind its name, "a.b.m(:12)"
 * (symbols/names.h); a frame of a file that is named after its class is the class and method alone.
 */
#ifndef TW_FRAME_LINE_H
#define TW_FRAME_LINE_H

#include "decoder/base/str.h"

enum { TW_FRAME_NAME_BYTES = 2048 };

/* where: "SourceFile:12", with or without the ')' after it.  The name itself, or the name with its
 * line in buf. */
struct tw_str tw_frame_name(char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str where);
struct tw_str tw_frame_name_at(
        char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str file, uint64_t line);
/* Of "a.b.m(SourceFile:12)". */
struct tw_str tw_frame_name_of(char buf[TW_FRAME_NAME_BYTES], struct tw_str text);

#endif
