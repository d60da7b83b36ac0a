/*
 * retrace_image.h - the layout of a retrace image, for its writer and its reader.
 *
 * Header, 64 bytes: magic "TWRTR1\0\0", u32 classes, u32 members, u64 text bytes, u64 malformed
 * lines, u32 classes with a source file, then zeros.  After the members: the u32 numbers of the
 * classes with a source file, sorted by original name.
 *
 * Class record, 32 bytes:
 *    0 u32 obfuscated   4 u32 its bytes   8 u32 original  12 u32 its bytes   (offsets in the text)
 *   16 u32 first member 20 u32 members   24 u32 flags in the low 8 bits, bytes of the source
 *   file's name above   28 u32 source file's name
 *
 * Member record, 64 bytes:
 *    0 u32 obfuscated   4 u32 its bytes   8 u32 name      12 u32 its bytes
 *   16 u32 class        20 u32 its bytes (0: the class it stands in)
 *   24 u32 args         28 u32 their bytes
 *   32 u32 return type  36 u32 its bytes
 *   40 u32 first line   44 u32 last line (0: no range)   48 u32, 52 u32 original lines (0: none)
 *   56 u32 residual signature  60 u32 its bytes in the low 24 bits, flags above
 */
#ifndef TW_RETRACE_IMAGE_H
#define TW_RETRACE_IMAGE_H

#include <stdint.h>

enum { RETRACE_HEADER = 64, RETRACE_CLASS = 32, RETRACE_MEMBER = 64 };

enum {
	RETRACE_SYNTHESIZED = 1,
	RETRACE_OUTLINE = 2,
	RETRACE_INLINED = 4,   /* was inlined into the next member */
	RETRACE_RANGE = 8,     /* the line has s:e */
	RETRACE_CALLSITE = 16, /* comments after the line list the call sites of an outline */
	RETRACE_LINES = 32,    /* the line has :os */
	RETRACE_REWRITE = 64   /* comments after the line remove frames below some exceptions */
};

static const char retrace_magic[8] = "TWRTR1\0";

#endif
