/* blob_int.h - a server's folder and storage engine, shared by blob.c and blob_piece.c. */
#ifndef TW_BLOB_INT_H
#define TW_BLOB_INT_H

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

/* --- claims, which prevent the deletion of an object that is being written --- */

/* Equal content is one object. A writer holds a claim on its key until its row exists; a deleter
 * claims the key exclusively and looks for rows again after that. A claim can linger, for
 * writers that create their row later. */
struct tw_key_claims;

struct tw_key_claims *tw_key_claims_new(void);
struct tw_key_claims *tw_key_claims_free(struct tw_key_claims *c); /* accepts NULL; returns NULL */

/* Waits while the key is claimed for deletion. */
enum tw_status tw_claim(struct tw_key_claims *c, const char *key, struct tw_err *err) TW_MUST_USE;
/* Releases the claim after linger_ms. */
void tw_claim_end(struct tw_key_claims *c, const char *key, int64_t linger_ms);
/* False: it is claimed already. */
bool tw_claim_exclusive(struct tw_key_claims *c, const char *key);
void tw_claim_exclusive_end(struct tw_key_claims *c, const char *key);

enum { TW_BLOB_SPOOL = 96, TW_BLOB_PATH = 1400 };

struct tw_blobs {
	unsigned min_free_percent;
	uint64_t reserve_bytes;  /* disk.h; 0: none */
	unsigned probes_missing; /* probes that found no reserve */
	const struct tw_store_engine *engine;
	void *store;
	struct tw_key_claims *claims; /* NULL unless the engine is remote */
	_Atomic uint64_t serial;
	pthread_rwlock_t use; /* tw_blob_use_begin */
	int in_use;           /* remote engines: descriptor of data/storage.lock */
	struct tw_blob_peers peers;
	struct tw_blob_rows rows;
	uint64_t held_exclusive;   /* of the one key claimed exclusively, from peers.hold */
	int spool_lock;            /* of this server's spool folder; -1: it uses spool/ itself */
	char spool[TW_BLOB_SPOOL]; /* relative to dir */
	char dir[];
};

struct tw_blob_writer {
	struct tw_blobs *blobs;
	int fd;
	uint64_t bytes, max_bytes, next_check;
	gnutls_hash_hd_t sha;
	bool stored, claimed;
	struct tw_store_put put; /* once stored, with the fields below */
	char sha256[TW_SHA256_HEX];
	char key[TW_STORE_KEY];
	char path[TW_BLOB_PATH];
};

#endif
