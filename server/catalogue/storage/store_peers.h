/*
 * store_peers.h - servers that share a catalogue share a store: what one deletes no other puts.
 *
 * Whoever puts a key has it with others until the store said that it is there; whoever deletes it
 * has it alone, and leaves alone what was put a short while ago, as its row may be on its way.
 */
#ifndef TW_STORE_PEERS_H
#define TW_STORE_PEERS_H

struct tw_blobs;
struct tw_catalogue;

/* At start.  Nothing to heed where the server is alone, or files are in its folder. */
void tw_store_peers_heed(struct tw_blobs *b, struct tw_catalogue *c);

#endif
