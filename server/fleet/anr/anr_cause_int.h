/*
 * anr_cause_int.h - a cause on its way: what its parts share (anr_cause.c, anr_frames.c,
 * anr_path.c).
 */
#ifndef TW_ANR_CAUSE_INT_H
#define TW_ANR_CAUSE_INT_H

#include "decoder/base/buf.h"
#include "server/fleet/anr/anr_cause.h"

enum { TW_ANR_PATH_FRAMES = 3, TW_ANR_NAMES_MAX = 64, TW_ANR_LOOKS_MAX = 256 };

struct tw_anr_names { /* borrowed from the document */
	const char *at[TW_ANR_NAMES_MAX];
	size_t n;
};

struct tw_anr_find {
	const struct tw_anr_blame *by;
	struct tw_arena *arena;
	const json_t *process, *threads;           /* that the report is about */
	struct tw_anr_names frames, locks;         /* that the cause is told by */
	json_t *lock_list;                         /* of `detail` */
	const char *interface, *method, *consumer; /* NULL: not known */
	struct tw_buf hashed;
};

/* --- anr_frames.c --- */

const char *tw_anr_word(const json_t *o, const char *key); /* "" for none */
/* A member that is an index, as the element of a list; NULL: none. */
const json_t *tw_anr_at(const json_t *list, const json_t *o, const char *key);
/* Names of the app's frames that may be blamed, from the frame `from` of a thread outwards, at most
 * max, added to *io; of repeated ones the first.  Without any, the frame that tells what it does.
 */
void tw_anr_blamed(const struct tw_anr_find *f, const json_t *thread, size_t from, size_t max,
        struct tw_anr_names *io);
/* The same of names, the deepest first. */
void tw_anr_blamed_names(
        const struct tw_anr_find *f, const json_t *names, size_t max, struct tw_anr_names *io);
/* The outermost frame of a thread that took the object; json_array_size of its frames: none. */
size_t tw_anr_taken_at(const json_t *thread, const char *object);
/* Interface and method that a stack waits for in another process: of frames, the innermost first.
 * False: it does not. */
bool tw_anr_binder(struct tw_anr_find *f, const json_t *frames);
/* The process that had the processors while this one waited for them; NULL: they were not all
 * taken, or by this one. */
const char *tw_anr_consumer(const struct tw_anr_find *f, const json_t *doc);

/* --- anr_path.c --- */

/* Of looks at the main thread, the path that at least half of them share: names, the deepest first.
 * NULL: no memory.  json_decref is owed. */
json_t *tw_anr_path_of_looks(const json_t *doc);
/* Do the names, the deepest first, end in a file, a database or the network? */
bool tw_anr_path_is_io(const json_t *names);

#endif
