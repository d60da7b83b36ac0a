/*
 * ticket.h - signed links that let other tools fetch one resource.
 *
 * A tool on another origin sends neither the page's cookie nor a key, and some drop the query.  So
 * the target of one GET, the readable project and the expiry are part of the path, signed with
 * HMAC-SHA256 by a key created at the start of the process.  Servers that share a catalogue derive
 * one key from secret.key, and accept each other's tickets.  Nothing is stored; a restart
 * invalidates all tickets.  That is intended: they are used for the minutes in which a tool loads,
 * and a key on disk would be a secret in every backup.
 * Thread: any.
 */
#ifndef TW_TICKET_H
#define TW_TICKET_H

#include "decoder/base/arena.h"
#include "server/auth/auth.h"

enum { TW_TICKET_KEY_BYTES = 32, TW_TICKET_TARGET_MAX = 2048 };

struct tw_ticket {
	int64_t expires_ms; /* Unix time */
	char project_id[TW_ID_BYTES];
	const char *target; /* path and query, "/api/v1/traces/..." */
};

/* The ticket as one path segment, in the arena. */
enum tw_status tw_ticket_sign(const uint8_t key[TW_TICKET_KEY_BYTES], const struct tw_ticket *t,
        struct tw_arena *a, const char **ret, struct tw_err *err) TW_MUST_USE;
/* TW_NO_TOKEN: not signed with this key, or expired at now_ms.  Texts are in the arena. */
enum tw_status tw_ticket_open(const uint8_t key[TW_TICKET_KEY_BYTES], const char *text,
        int64_t now_ms, struct tw_arena *a, struct tw_ticket *ret, struct tw_err *err) TW_MUST_USE;

#endif
