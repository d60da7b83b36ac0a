/*
 * print_sink.h - a sink that writes events as text: one per line, fields separated by tabs.
 *
 *   slice   TID  TS_NS  DUR_NS  NAME      begin/end/end_all  TID  TS_NS  NAME
 *   thread  TID  NAME                     clock      PID  MONO_NS  BOOT_NS  SESSION_NS
 *                                         [SOME_NS], one of the two clocks, unknown which
 *   method  ID  NAME                      named by the trace itself
 *   note    TID  TS_NS  DUR_NS  KIND  VALUE  TEXT  DETAIL
 *   process TID  PID                      the process of a thread that was emitted without one
 *   transaction  INTERFACE  CODE  NAME
 *   repair  NAME  COUNT  OFFSET           (all at the end, tw_print_sink_end)
 * TID is PID/TID if another process had a thread of that id before.
 * The NAME of a method known by its number only is "#<id>" or the result of `resolve`.  Names are
 * made valid UTF-8 without tabs and line ends.  Used by the debugging tool and for golden files.
 */
#ifndef TW_PRINT_SINK_H
#define TW_PRINT_SINK_H

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"

struct tw_print_sink;

typedef enum tw_status (*tw_text_fn)(void *arg, const char *p, size_t n);
/* Puts the name of a method id into buf (NUL-terminated). */
typedef void (*tw_resolve_fn)(void *arg, uint64_t id, char *buf, size_t cap);

/* resolve may be NULL. */
struct tw_print_sink *tw_print_sink_new(
        struct tw_arena *a, tw_text_fn out, tw_resolve_fn resolve, void *arg);
/* Prints original names; each function writes the text to print to buf, or returns it. */
struct tw_print_names {
	void *arg;
	void (*name)(void *arg, struct tw_str name, char *buf, size_t cap);
	struct tw_note (*note)(void *arg, const struct tw_note *note);
	struct tw_str (*document)(void *arg, const char *kind, struct tw_str json);
};
void tw_print_sink_names(struct tw_print_sink *p, const struct tw_print_names *names);
struct tw_sink *tw_print_sink_of(struct tw_print_sink *p);
/* Writes the repairs; TW_NOMEM or the error of `out`. */
enum tw_status tw_print_sink_end(struct tw_print_sink *p);

#endif
