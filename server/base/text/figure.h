/*
 * figure.h - figures in messages, notifications and reports.  The page writes the same
 * (web/src/i18n/format.ts, interval.ts).
 * Thread: any.
 */
#ifndef TW_FIGURE_H
#define TW_FIGURE_H

#include <stdbool.h>

enum { TW_FIGURE_BYTES = 32, TW_INTERVAL_BYTES = 96 };

/* 0.18: "18 %", with a sign "+18 %". */
const char *tw_percent_text(double share, bool sign, char out[TW_FIGURE_BYTES]);

/* "+31 % to +33 %" of an interval's ends; "about +32 %" if both round to the same figure. */
const char *tw_interval_text(const char *low, const char *high, char out[TW_INTERVAL_BYTES]);

#endif
