/*
 * ticket.h - links that other tools may fetch: who may read what, until when, in the link itself.
 *
 * A tool on another origin sends neither the page's cookie nor a key, and some send
 * no query.  So the target of one GET, the project it may read and the time it
 * ends are written into the path and signed (HMAC-SHA256) with a key that the
 * process makes when it starts.  Nothing is stored; a restart ends all tickets.  Servers that
 * share a catalogue derive one key from secret.key, and accept each other's.  That is
 * meant: they are for the minutes in which a tool loads, and a key on disk would be a secret in
 * every backup.
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

enum tw_status tw_ticket_key_new(
        uint8_t ret_key[TW_TICKET_KEY_BYTES], struct tw_err *err) TW_MUST_USE;
/* The ticket as text for one piece of a path, in the arena. */
enum tw_status tw_ticket_seal(const uint8_t key[TW_TICKET_KEY_BYTES], const struct tw_ticket *t,
        struct tw_arena *a, const char **ret, struct tw_err *err) TW_MUST_USE;
/* TW_NO_TOKEN: not signed with this key, or over at now_ms.  Texts live in the arena. */
enum tw_status tw_ticket_open(const uint8_t key[TW_TICKET_KEY_BYTES], const char *text,
        int64_t now_ms, struct tw_arena *a, struct tw_ticket *ret, struct tw_err *err) TW_MUST_USE;

#endif
