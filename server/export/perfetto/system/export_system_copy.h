/*
 * export_system_copy.h - the device's own Perfetto trace into another file, packet for packet.
 *
 * Packets are never changed.  Of a time range, those with events in it are taken, and all that
 * others lean on: names by number, clocks, descriptions of processes and tracks.  Compressed
 * packets are unfolded for a range only.  Where packets of a sequence are left out whose times are
 * steps, one that holds nothing but the steps left out goes before the next.
 * Thread: one at a time.
 */
#ifndef TW_EXPORT_SYSTEM_COPY_H
#define TW_EXPORT_SYSTEM_COPY_H

#include "decoder/base/buf.h"
#include "server/export/perfetto/system/export_system.h"

struct tw_system_copy;

struct tw_system_range { /* on the device's trace's clock */
	bool cut;
	int64_t from_ns, to_ns;
};

/* fd stays the caller's; s outlives it. */
enum tw_status tw_system_copy_open(int fd, struct tw_system *s, const struct tw_system_range *range,
        struct tw_system_copy **ret, struct tw_err *err) TW_MUST_USE;
/* Appends the next packets.  *ret_gap: where in out, SIZE_MAX when not in this piece, packets of
 * others must stand: before the recorder first says that what came before is complete, as what
 * comes later and is older is lost; else at the end.  *ret_done: there are no more. */
enum tw_status tw_system_copy_step(struct tw_system_copy *c, struct tw_buf *out, size_t *ret_gap,
        bool *ret_done, struct tw_err *err) TW_MUST_USE;
struct tw_system_copy *tw_system_copy_close(struct tw_system_copy *c);
uint64_t tw_system_copy_packets(const struct tw_system_copy *c); /* so far */

#endif
