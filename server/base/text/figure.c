/* figure.c - figures in messages, notifications and reports. */
#include "server/base/text/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *tw_percent_text(double share, bool sign, char out[TW_FIGURE_BYTES])
{
	const double percent = 100 * fabs(share);
	const char *before = !sign ? "" : share < 0 ? "-" : percent > 0 ? "+" : "";

	/* as percent() of web/src/i18n/format.ts */
	if (percent > 0 && percent < 0.1)
		(void)snprintf(out, TW_FIGURE_BYTES, "%s<0.1 %%", before);
	else if (percent >= 1000 && percent < 1e6)
		(void)snprintf(out, TW_FIGURE_BYTES, "%s%ld,%03ld %%", before,
		        lround(percent) / 1000, lround(percent) % 1000);
	else
		(void)snprintf(out, TW_FIGURE_BYTES, "%s%.*f %%", before,
		        percent > 0 && percent < 9.95 ? 1 : 0, percent);
	return out;
}

const char *tw_interval_text(const char *low, const char *high, char out[TW_INTERVAL_BYTES])
{
	const bool same = strcmp(low, high) == 0;

	(void)snprintf(
	        out, TW_INTERVAL_BYTES, "%s%s%s", same ? "about " : low, same ? "" : " to ", high);
	return out;
}
