/*
 * resume_watermark.c - the watermark: how much of a resumable upload survives a power failure.
 *
 * A killed server loses nothing that it wrote, so its next start continues at the end of the part
 * file. A power failure may leave that file longer than the data that reached the disk, with zeros
 * or old bytes at its end. <id>.watermark records the synced length and the boot of the machine in
 * which it was written: after another boot only bytes below the watermark are trusted.
 *
 * The watermark is one line of fixed length, far smaller than a sector, written in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/str.h"
#include "server/base/file/io.h"
#include "server/ingest/tus/resume_int.h"

enum { PATH_BYTES = 1500, OFFSET = 20, BOOT = 36, LINE_BYTES = OFFSET + 1 + BOOT + 1 };

static const char no_boot[] = "no-boot-id-is-known-on-this-machine-";

/* Without a boot id, each start counts as the same boot, and a part is trusted as stored. */
static void read_boot(char ret[BOOT + 1])
{
	(void)tw_file_text("/proc/sys/kernel/random/boot_id", ret, BOOT + 1);
	if (strlen(ret) != BOOT)
		memcpy(ret, no_boot, BOOT + 1);
}

enum tw_status tw_resume_write_watermark(
        const struct tw_blobs *b, const char *id, uint64_t offset, struct tw_err *err)
{
	char path[PATH_BYTES], boot[BOOT + 1], line[LINE_BYTES + 1];
	enum tw_status st = TW_OK;
	int fd;

	read_boot(boot);
	(void)snprintf(line, sizeof line, "%0*" PRIu64 " %s\n", OFFSET, offset, boot);
	tw_resume_path(b, id, ".watermark", path, sizeof path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return tw_file_fail("open", path, err);
	if (!tw_pwrite_all(fd, line, LINE_BYTES, 0) || fdatasync(fd) != 0)
		st = tw_file_fail("write", path, err);
	(void)close(fd);
	return st;
}

uint64_t tw_resume_trusted_bytes(
        const struct tw_blobs *b, const char *id, uint64_t size, bool *ret_of_this_boot)
{
	char path[PATH_BYTES], boot[BOOT + 1], line[LINE_BYTES + 1];
	uint64_t offset = 0;
	bool whole;

	*ret_of_this_boot = true;
	tw_resume_path(b, id, ".watermark", path, sizeof path);
	/* It exists before the first byte is received, except for uploads of older versions. */
	if (!tw_file_text(path, line, sizeof line)) {
		*ret_of_this_boot = errno == ENOENT;
		return *ret_of_this_boot ? size : 0;
	}
	whole = strlen(line) == LINE_BYTES &&
	        tw_str_u64((struct tw_str){line, OFFSET}, UINT64_MAX, &offset);
	read_boot(boot);
	*ret_of_this_boot = whole && memcmp(line + OFFSET + 1, boot, BOOT) == 0;
	if (!whole || *ret_of_this_boot)
		return whole ? size : 0;
	return offset < size ? offset : size;
}
