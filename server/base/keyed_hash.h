/*
 * keyed_hash.h - hashes by which names and addresses of clients share slots. With the secret,
 * clients cannot choose values that meet in one.
 */
#ifndef TW_KEYED_HASH_H
#define TW_KEYED_HASH_H

#include <arpa/inet.h>
#include <sodium.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t tw_keyed_hash(
        const uint8_t secret[crypto_shorthash_KEYBYTES], const void *p, size_t n)
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t ret;

	(void)crypto_shorthash(hash, p, n, secret);
	memcpy(&ret, hash, sizeof ret);
	return ret;
}

/* A household has 64 bits of IPv6 addresses, which are one caller. */
static inline uint64_t tw_keyed_hash_of_address(
        const uint8_t secret[crypto_shorthash_KEYBYTES], const char *address)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET6, address, bytes) == 1)
		return tw_keyed_hash(secret, bytes, 8);
	return tw_keyed_hash(secret, address, strlen(address));
}

#endif
