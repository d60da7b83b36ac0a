/*
 * http_slots.h - upload slots, shared so that no key or address takes them all.
 *
 * A key may have three times as many slots as are free: alone 3/4 of all, with a second one 3/7
 * each. An address may have seven times as many, because many keys may come from one proxy. So a
 * new caller always finds free slots, however many the others hold.
 * Thread: any.
 */
#ifndef TW_HTTP_SLOTS_H
#define TW_HTTP_SLOTS_H

#include <stdbool.h>

#include "decoder/base/err.h"

struct tw_slots;

struct tw_slot { /* zeroed: none is held */
	bool held;
	unsigned counters[2]; /* of the key and of the address */
};

enum tw_status tw_slots_new(unsigned limit, struct tw_slots **ret, struct tw_err *err) TW_MUST_USE;
struct tw_slots *tw_slots_free(struct tw_slots *s); /* accepts NULL; returns NULL */
/* `key`: id of the key or person, "" if none.  TW_BUSY if all slots or the caller's share are in
 * use. */
enum tw_status tw_slots_take(struct tw_slots *s, const char *key, const char *address,
        struct tw_slot *ret, struct tw_err *err) TW_MUST_USE;
void tw_slots_release(struct tw_slots *s, struct tw_slot *slot);
/* Whether more than half of the slots are taken. */
bool tw_slots_scarce(const struct tw_slots *s);

#endif
