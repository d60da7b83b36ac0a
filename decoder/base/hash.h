/*
 * hash.h - where a number or a string from the input lies in a table.
 *
 * Both are chosen by whoever wrote the input, so a hash that is the same in
 * every process could be met by a million of them in one place.  The salt is
 * random (limits.h), so an uploader does not know it.  Nothing that is told may
 * depend on the order in such a table.
 */
#ifndef TW_HASH_H
#define TW_HASH_H

#include <stdint.h>
#include <string.h>

#include "decoder/base/str.h"

/* All 64 bits are well mixed: any of them may be taken. */
static inline uint64_t tw_hash_id(uint64_t id, uint64_t salt)
{
	uint64_t h = id ^ (salt + 1) * 0x9E3779B97F4A7C15u;

	h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
	h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
	return h ^ h >> 32;
}

/* The two halves of the product: each bit depends on all of both. */
static inline uint64_t tw_hash_fold(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide p = (wide)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Eight bytes a step, each multiplied by what only the salt tells: strings that lie together for
 * one salt do not for another. */
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

#endif
