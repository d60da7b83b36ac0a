/*
 * anr_fixture.h - one ANR report decoded, and its document, for tests.
 */
#ifndef TW_ANR_FIXTURE_H
#define TW_ANR_FIXTURE_H

#include <jansson.h>

#include "tests/fixtures/event_log.h"

struct anr_report {
	struct event_log log;
	json_t *doc; /* NULL: none */
};

/* End both with anr_done.  The second requires that the input is read, as an ANR report. */
struct anr_report anr_read(const char *text, size_t n, const struct tw_limits *limits);
struct anr_report anr_read_text(const char *text);
void anr_done(struct anr_report *r);

const char *anr_word(const json_t *o, const char *key);  /* "(none)" */
json_int_t anr_number(const json_t *o, const char *key); /* -1 none */
size_t anr_count(const json_t *o, const char *key);      /* of an array */
json_t *anr_process(const struct anr_report *r, size_t i);
json_t *anr_thread(const struct anr_report *r, size_t i); /* of the first process */

/* A main thread that waits for thread 2, which has to follow. */
#define ANR_MAIN_WANTS                                                                             \
	"\"main\" prio=5 tid=1 Blocked\n"                                                          \
	"  at a.b.Screen.draw(Screen.java:1)\n"                                                    \
	"  - waiting to lock <0x01> (a a.b.Store) held by thread 2\n"                              \
	"  at android.os.Looper.loop(Looper.java:2)\n\n"

#endif
