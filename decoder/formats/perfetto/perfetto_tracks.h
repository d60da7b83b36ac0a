/*
 * perfetto_tracks.h - Perfetto's tracks and their events.
 *
 * A track is a thread, a process, a counter or any named track, top-level or below another.  Begins
 * and ends are paired here, per track.  Slices on a thread's track or on a track below it are calls
 * of that thread; all other slices are notes.
 */
#ifndef TW_PERFETTO_TRACKS_H
#define TW_PERFETTO_TRACKS_H

#include "decoder/base/pbread.h"
#include "decoder/formats/markers/markers.h"
#include "decoder/formats/perfetto/perfetto_intern.h"

struct tw_perfetto_open { /* a span that has begun */
	int64_t start_ns;
	uint64_t offset;
	uint32_t name; /* a text's number */
};

struct tw_perfetto_track {
	uint64_t uuid, parent; /* parent 0: none */
	bool of_thread_id;     /* uuid is pid << 32 | tid: a thread without its own track */
	bool incremental;
	bool apart;            /* forbids to be merged with others of its thread */
	struct tw_tid *thread; /* NULL: no thread is known */
	struct tw_tid *own;    /* separate thread for its calls; NULL: they belong to `thread` */
	uint32_t pid, name, title; /* title: of its own thread */
	int64_t multiplier, sum;   /* of a counter */
	struct tw_perfetto_open *open;
	uint32_t n_open, cap_open, hidden; /* hidden: open spans deeper than the limit */
};

struct tw_perfetto_entry {
	struct tw_perfetto_track *track;
};

struct tw_perfetto_tracks {
	struct tw_arena *arena;
	struct tw_markers *markers;
	struct tw_perfetto_intern *texts;
	struct tw_perfetto_entry *list;
	uint32_t *slots; /* index + 1 by hash; 0 free */
	uint32_t n, cap, max_depth;
	uint32_t pid; /* of the only process with calls so far; 0 none yet */
	bool many_pids;
	uint32_t n_own;                 /* number of tracks with a separate thread */
	struct tw_perfetto_track *last; /* the one requested last; NULL: none */
};

struct tw_perfetto_event {
	int64_t ts_ns;
	uint64_t offset;
	uint32_t name; /* a text's number; 0: none */
};

void tw_perfetto_tracks_init(struct tw_perfetto_tracks *t, struct tw_arena *a,
        const struct tw_limits *limits, struct tw_markers *markers,
        struct tw_perfetto_intern *texts);

/* A TrackDescriptor.  A later one for the same track extends the first. */
enum tw_status tw_perfetto_tracks_describe(struct tw_perfetto_tracks *t, struct tw_pb message,
        uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* A ThreadDescriptor or ProcessDescriptor; ret_* are 0 if absent. */
enum tw_status tw_perfetto_tracks_thread(struct tw_perfetto_tracks *t, struct tw_pb message,
        uint64_t offset, uint32_t *ret_pid, uint64_t *ret_tid, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_perfetto_tracks_process(struct tw_perfetto_tracks *t, struct tw_pb message,
        uint64_t offset, uint32_t *ret_pid, struct tw_err *err) TW_MUST_USE;

/* A ProcessTree: stored, and used for the threads that have other events. */
enum tw_status tw_perfetto_tracks_tree(struct tw_perfetto_tracks *t, struct tw_pb message,
        uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* Sets a thread's process and name from the tree. */
void tw_perfetto_tracks_known(struct tw_perfetto_tracks *t, struct tw_tid *k);

/* The track of a uuid or of a thread; *ret NULL: too many tracks. */
enum tw_status tw_perfetto_tracks_get(struct tw_perfetto_tracks *t, uint64_t uuid,
        bool of_thread_id, uint64_t offset, struct tw_perfetto_track **ret,
        struct tw_err *err) TW_MUST_USE;

enum tw_status tw_perfetto_tracks_begin(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, struct tw_err *err) TW_MUST_USE;
/* Ends the innermost span, or the innermost with that name. */
enum tw_status tw_perfetto_tracks_end(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, struct tw_err *err) TW_MUST_USE;
/* A span with both ends. */
enum tw_status tw_perfetto_tracks_span(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, int64_t dur_ns, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_perfetto_tracks_instant(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_perfetto_tracks_count(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, int64_t value, struct tw_err *err) TW_MUST_USE;

/* The thread that owns the track or one of its parents; NULL: none known. */
struct tw_tid *tw_perfetto_tracks_owner(
        const struct tw_perfetto_tracks *t, struct tw_perfetto_track *k);

/* Open spans end at the latest time; unnamed threads get the name of their process. */
enum tw_status tw_perfetto_tracks_finish(
        struct tw_perfetto_tracks *t, struct tw_err *err) TW_MUST_USE;

#endif
