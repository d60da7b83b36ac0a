/*
 * s3_xml.h - reads text between tags in the XML responses of stores.  Pure.
 *
 * The input is untrusted: only the requested tags are read, and no reference is resolved.
 */
#ifndef TW_S3_XML_H
#define TW_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/str.h"

/* The text between the next <tag> and </tag>; *text continues after it. */
bool tw_xml_next(struct tw_str *text, const char *tag, struct tw_str *ret);
/* The first such text, with entities decoded, truncated to `cap`; "" if there is none. */
void tw_xml_text(struct tw_str text, const char *tag, char *out, size_t cap);

#endif
