/*
 * s3_xml.h - the little XML that stores answer with: text between tags.  Pure.
 *
 * What comes is a stranger's: nothing but the tags asked for is looked at, and nothing is followed.
 */
#ifndef TW_S3_XML_H
#define TW_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/str.h"

/* What stands between the next <tag> and </tag>; *text is then what is behind it. */
bool tw_xml_next(struct tw_str *text, const char *tag, struct tw_str *ret);
/* The first such text, with its entities as characters, cut to `cap`; "" when there is none. */
void tw_xml_text(struct tw_str text, const char *tag, char *out, size_t cap);

#endif
