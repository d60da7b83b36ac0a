/*
 * anr_cause_int.h - state shared while a cause is determined (anr_cause.c,
 * anr_frames.c).
 */
#ifndef TW_ANR_CAUSE_INT_H
#define TW_ANR_CAUSE_INT_H

#include "decoder/base/buf.h"
#include "server/fleet/anr/anr_cause.h"

enum { TW_ANR_PATH_FRAMES = 3, TW_ANR_NAMES_MAX = 64, TW_ANR_SAMPLES_MAX = 256 };

struct tw_anr_names { /* borrowed from the document */
	const char *at[TW_ANR_NAMES_MAX];
	size_t n;
};

struct tw_anr_find {
	const struct tw_anr_blame *by;
	struct tw_arena *arena;
	const json_t *process, *threads;           /* of the report's process */
	struct tw_anr_names frames, locks;         /* that identify the cause */
	json_t *lock_list;                         /* of `detail` */
	const char *interface, *method, *consumer; /* NULL: unknown */
	struct tw_buf hashed;
};

/* --- anr_frames.c --- */

/* The element of a list whose index is a member of o; NULL: none. */
const json_t *tw_anr_at(const json_t *list, const json_t *o, const char *key);
/* Adds the names of the app's frames that may be blamed to *io, from frame `from` of a thread
 * outwards, at most max; repeated ones once.  Without any, adds the frame that describes the
 * activity. */
void tw_anr_blamed(const struct tw_anr_find *f, const json_t *thread, size_t from, size_t max,
        struct tw_anr_names *io);
/* The same for names, the deepest first. */
void tw_anr_blamed_names(
        const struct tw_anr_find *f, const json_t *names, size_t max, struct tw_anr_names *io);
/* The index of the outermost frame of a thread that took the object; json_array_size of its frames
 * if none did. */
size_t tw_anr_taken_at(const json_t *thread, const char *object);
/* Sets the interface and method of another process that a stack waits for; frames with the
 * innermost first.  False: it does not wait for one. */
bool tw_anr_binder(struct tw_anr_find *f, const json_t *frames);
/* The process that used the processors while this one waited for them; NULL: they were not all in
 * use, or used by this one. */
const char *tw_anr_consumer(const struct tw_anr_find *f, const json_t *doc);

#endif
