#include "server/base/file/disk.h"

#include <sys/statvfs.h>

bool tw_disk_of(const char *folder, struct tw_disk *ret)
{
	struct statvfs fs;

	*ret = (struct tw_disk){0};
	if (statvfs(folder, &fs) != 0)
		return false;
	ret->used_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	ret->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	ret->size_bytes = ret->used_bytes + ret->free_bytes;
	ret->total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	return true;
}

double tw_disk_free_percent(const struct tw_disk *d)
{
	return d->size_bytes ? (double)d->free_bytes * 100 / (double)d->size_bytes : 0;
}

uint64_t tw_disk_over(const struct tw_disk *d, unsigned percent)
{
	const uint64_t most = d->size_bytes / 100 * percent + d->size_bytes % 100 * percent / 100;

	return d->used_bytes > most ? d->used_bytes - most : 0;
}
