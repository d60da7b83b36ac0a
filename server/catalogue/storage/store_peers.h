/*
 * store_peers.h - coordination between servers that share a catalogue and a store: no server
 * deletes an object that another is writing.
 *
 * A writer holds the lock of a key shared until the store confirmed the object; a deleter holds it
 * exclusively, and skips recently written objects, as their rows may not be committed yet.
 */
#ifndef TW_STORE_PEERS_H
#define TW_STORE_PEERS_H

struct tw_blobs;
struct tw_catalogue;

/* Call at start.  Does nothing for a single server, or if files are in its folder. */
void tw_store_peers_honour(struct tw_blobs *b, struct tw_catalogue *c);

#endif
