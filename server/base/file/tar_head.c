#include "server/base/file/tar_head.h"

#include <stdio.h>
#include <string.h>

#define MEMBER_MAX_BYTES (((uint64_t)1 << 33) - 1) /* eleven octal digits */

bool tw_tar_head(uint8_t ret[TW_TAR_BLOCK], const char *name, unsigned mode, uint64_t bytes)
{
	char h[TW_TAR_BLOCK] = {0};
	unsigned sum = 0;

	if (bytes > MEMBER_MAX_BYTES)
		return false;
	(void)snprintf(h, TW_TAR_NAME_BYTES, "%s", name);
	(void)snprintf(h + 100, 8, "%07o", mode & 07777U);
	(void)snprintf(h + 108, 8, "%07o", 0U);
	(void)snprintf(h + 116, 8, "%07o", 0U);
	(void)snprintf(h + 124, 12, "%011llo", (unsigned long long)bytes);
	(void)snprintf(h + 136, 12, "%011o", 0U);
	memset(h + 148, ' ', 8);
	h[156] = '0';
	memcpy(h + 257, "ustar", sizeof "ustar");
	h[263] = h[264] = '0';
	for (int i = 0; i < TW_TAR_BLOCK; i++)
		sum += (unsigned char)h[i];
	(void)snprintf(h + 148, 8, "%06o", sum & 0777777U);
	memcpy(ret, h, sizeof h);
	return true;
}
