#include "server/base/text/near_match.h"

#include <string.h>

enum { LONGEST = 63, FAR = 99, MOST = 3 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Three rows of the table: two letters back (for swaps), one back, current. */
unsigned tw_near_distance(const char *a, const char *b)
{
	unsigned rows[3][LONGEST + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > LONGEST || m > LONGEST)
		return FAR;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *swap = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			now[j] = least(before[j - 1] + (a[i - 1] != b[j - 1]),
			        1 + least(before[j], now[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], swap[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

void tw_near_match_try(struct tw_near_match *n, const char *word, const char *name)
{
	size_t len = strlen(word);
	unsigned d = tw_near_distance(word, name);

	if (len >= 2 && strncmp(word, name, len) == 0)
		d = 1;
	if (d > MOST || d > (len + 2) / 3 || (n->best && d >= n->distance))
		return;
	n->best = name;
	n->distance = d;
}
