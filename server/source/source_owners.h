/*
 * source_owners.h - who owns a file, by a CODEOWNERS file as GitHub and GitLab read it.
 *
 * A line is a pattern and owners; the last line that fits wins, and one without owners takes them
 * away.  Lines in brackets begin GitLab's sections: each has a last line of its own, and its own
 * default owners.  Bytes come from whoever may commit: work is bounded by size of file times length
 * of path.  Pure.  Thread: any.
 */
#ifndef TW_SOURCE_OWNERS_H
#define TW_SOURCE_OWNERS_H

#include "decoder/base/str.h"

enum { TW_OWNERS_SECTIONS = 16, TW_OWNERS_FILE_BYTES = 1 << 20, TW_OWNERS_PATH_BYTES = 1024 };

/* The line that decides, of one section. */
struct tw_owners_hit {
	struct tw_str section; /* "": none */
	struct tw_str owners;  /* with blanks between; "": nobody */
	uint32_t line;
};

/* Fills hits with the deciding line of each of the first sections and returns how many.  path is
 * relative to the root of the repository, without a slash in front. */
size_t tw_owners_find(
        struct tw_str file, struct tw_str path, struct tw_owners_hit ret_hits[TW_OWNERS_SECTIONS]);

/* Does a pattern of such a file fit the path? */
bool tw_owners_fits(struct tw_str pattern, struct tw_str path);

#endif
