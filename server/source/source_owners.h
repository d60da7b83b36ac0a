/*
 * source_owners.h - finds the owners of a file in a CODEOWNERS file, as GitHub and GitLab do.
 *
 * A line is a pattern and owners; the last matching line decides, and one without owners removes
 * them. Lines in brackets begin GitLab's sections: the last matching line decides per section, and
 * each has default owners.  The file is untrusted: work is bounded by size of file times length of
 * path.  Pure. Thread: any.
 */
#ifndef TW_SOURCE_OWNERS_H
#define TW_SOURCE_OWNERS_H

#include "decoder/base/str.h"

enum { TW_OWNERS_SECTIONS = 16, TW_OWNERS_FILE_BYTES = 1 << 20, TW_OWNERS_PATH_BYTES = 1024 };

/* The deciding line of one section. */
struct tw_owners_hit {
	struct tw_str section; /* "": none */
	struct tw_str owners;  /* separated by spaces; "": no owners */
	uint32_t line;
};

/* Fills hits with the deciding line of each of the first sections and returns their number.  path
 * is relative to the root of the repository, without a leading slash. */
size_t tw_owners_find(
        struct tw_str file, struct tw_str path, struct tw_owners_hit ret_hits[TW_OWNERS_SECTIONS]);

/* Returns whether a pattern of such a file matches the path. */
bool tw_owners_fits(struct tw_str pattern, struct tw_str path);

#endif
