/*
 * disk.c - a library for LD_PRELOAD that makes a folder's file system as large as TRACEWELL_DISK
 * bytes, of which the folder's files are all that is in use.
 */
#define _FILE_OFFSET_BITS 64
#include <ftw.h>
#include <stdlib.h>
#include <sys/statvfs.h>

enum { FOLDERS = 16, BLOCK = 512 };

static _Thread_local unsigned long long used;

static int add(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)path;
	(void)kind;
	(void)ftw;
	used += (unsigned long long)st->st_blocks;
	return 0;
}

int statvfs(const char *folder, struct statvfs *ret)
{
	const char *size = getenv("TRACEWELL_DISK");
	const unsigned long long all = size ? strtoull(size, NULL, 10) / BLOCK : 0;

	used = 0;
	if (nftw(folder, add, FOLDERS, FTW_PHYS) != 0)
		return -1;
	*ret = (struct statvfs){.f_bsize = BLOCK, .f_frsize = BLOCK, .f_blocks = all};
	ret->f_bfree = ret->f_bavail = used < all ? all - used : 0;
	return 0;
}
