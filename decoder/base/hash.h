/*
 * hash.h - hashes of numbers and strings.
 *
 * The sender of an input chooses its keys.  With a constant hash it could make a million keys
 * collide, so hash tables of keys from the input use a hash with a random salt (limits.h).  Output
 * must not depend on the order of entries in such a table.
 */
#ifndef TW_HASH_H
#define TW_HASH_H

#include <stdint.h>
#include <string.h>

#include "decoder/base/str.h"

/* All 64 bits are well mixed: any subset can be used. */
static inline uint64_t tw_hash_id(uint64_t id, uint64_t salt)
{
	uint64_t h = id ^ (salt + 1) * 0x9E3779B97F4A7C15u;

	h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
	h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
	return h ^ h >> 32;
}

/* XOR of the product's two halves: each bit depends on all bits of a and b. */
static inline uint64_t tw_hash_fold(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide p = (wide)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Eight bytes per step, each multiplied by a factor derived from the salt: strings that collide
 * under one salt do not under another. */
static inline uint64_t tw_hash_str(struct tw_str s, uint64_t salt)
{
	const uint64_t odd = tw_hash_id(0xD1B54A32D192ED03u, salt) | 1;
	uint64_t h = tw_hash_id(s.len, salt);
	uint64_t word;

	for (; s.len >= sizeof word; s.ptr += sizeof word, s.len -= sizeof word) {
		memcpy(&word, s.ptr, sizeof word);
		h = tw_hash_fold(h ^ word, odd);
	}
	word = 0;
	if (s.len)
		memcpy(&word, s.ptr, s.len);
	return tw_hash_fold(h ^ word, odd);
}

/* FNV-1a, continued from h: the same in every process and version.  For values that are stored or
 * shown, and for small tables whose keys a sender does not choose. */
#define TW_FNV64_BASIS UINT64_C(0xCBF29CE484222325)
static inline uint64_t tw_fnv64(uint64_t h, struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * UINT64_C(0x100000001B3);
	return h;
}

/* FNV-1a of one string in 32 bits, for the same uses. */
static inline uint32_t tw_fnv32(struct tw_str s)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * 16777619U;
	return h;
}

#endif
