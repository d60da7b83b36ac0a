/*
 * hash.h - where a number from the input lies in a table.
 *
 * Numbers are chosen by whoever wrote the input, so a hash that is the same in
 * every process could be met by a million of them in one place.  The salt is an
 * address of the job (its arena), which an uploader does not know.  Nothing that
 * is told may depend on the order in such a table.
 */
#ifndef TW_HASH_H
#define TW_HASH_H

#include <stdint.h>

/* All 64 bits are well mixed: any of them may be taken. */
static inline uint64_t tw_hash_id(uint64_t id, const void *salt)
{
	uint64_t h = id ^ (uint64_t)(uintptr_t)salt * 0x9E3779B97F4A7C15u;

	h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
	h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
	return h ^ h >> 32;
}

#endif
