/*
 * thread_label.h - thread names with an id, as profile files write them.
 *
 *   main (1234)           this server's exports
 *   main (1234, sampled)
 *   [main tid=1234]       async-profiler
 */
#ifndef TW_THREAD_LABEL_H
#define TW_THREAD_LABEL_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/str.h"

/* False: no id in this label.  *ret_name is a part of the label. */
bool tw_thread_label(struct tw_str label, struct tw_str *ret_name, uint64_t *ret_tid);

#endif
