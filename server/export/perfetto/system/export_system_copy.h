/*
 * export_system_copy.h - copies the device's own Perfetto trace into another file, packet by
 * packet.
 *
 * Packets are never changed.  For a time range, packets with events in it are copied, and all
 * packets that later ones depend on: interned names, clocks, descriptions of processes and tracks.
 * Compressed packets are unpacked only for a range.  If omitted packets of a sequence have
 * incremental times, a packet with just the sum of these steps is inserted before the next one.
 * Thread: one at a time.
 */
#ifndef TW_EXPORT_SYSTEM_COPY_H
#define TW_EXPORT_SYSTEM_COPY_H

#include "decoder/base/buf.h"
#include "server/export/perfetto/system/export_system.h"

struct tw_system_copy;

struct tw_system_range { /* on the clock of the device's trace */
	bool cut;
	int64_t from_ns, to_ns;
};

/* The caller keeps fd; s must outlive it. */
enum tw_status tw_system_copy_open(int fd, struct tw_system *s, const struct tw_system_range *range,
        struct tw_system_copy **ret, struct tw_err *err) TW_MUST_USE;
/* Appends the next packets.  *ret_gap: the offset in out for packets of others, SIZE_MAX if not in
 * this piece.  It is before the recorder's first statement that all earlier packets are complete,
 * because Perfetto loses older packets after it; without such a statement it is at the end.
 * *ret_done: complete. */
enum tw_status tw_system_copy_step(struct tw_system_copy *c, struct tw_buf *out, size_t *ret_gap,
        bool *ret_done, struct tw_err *err) TW_MUST_USE;
struct tw_system_copy *tw_system_copy_close(struct tw_system_copy *c);
uint64_t tw_system_copy_packets(const struct tw_system_copy *c); /* so far */

#endif
