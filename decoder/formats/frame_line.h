/*
 * frame_line.h - sampled frames whose line is needed to resolve their name.
 *
 * R8 writes one file name for all classes, and one of its lines may stand for several methods
 * that were inlined into each other.  Such a frame keeps its line after its name, "a.b.m(:12)"
 * (symbols/names.h).  A frame whose file is named after its class is reduced to class and
 * method.
 */
#ifndef TW_FRAME_LINE_H
#define TW_FRAME_LINE_H

#include "decoder/base/str.h"

enum { TW_FRAME_NAME_BYTES = 2048 };

/* where: "SourceFile:12", with or without a trailing ')'.  Returns the name itself, or the name
 * with its line in buf. */
struct tw_str tw_frame_name(char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str where);
struct tw_str tw_frame_name_at(
        char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str file, uint64_t line);
/* The same for "a.b.m(SourceFile:12)". */
struct tw_str tw_frame_name_of(char buf[TW_FRAME_NAME_BYTES], struct tw_str text);

#endif
