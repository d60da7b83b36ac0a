#include "server/base/ulid.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t last_ms;
static uint8_t random_part[10];

static void next_bits(int64_t now_ms, uint8_t bits[16])
{
	(void)pthread_mutex_lock(&lock);
	if (now_ms <= last_ms && last_ms - now_ms < 1000) {
		for (int i = 9; i >= 0 && ++random_part[i] == 0; i--)
			continue;
	} else {
		last_ms = now_ms;
		randombytes_buf(random_part, sizeof random_part);
		random_part[0] &= 0x7F; /* leaves space to count up */
	}
	for (int i = 0; i < 6; i++)
		bits[i] = (uint8_t)((uint64_t)last_ms >> (40 - 8 * i));
	memcpy(bits + 6, random_part, sizeof random_part);
	(void)pthread_mutex_unlock(&lock);
}

void tw_ulid_new(int64_t now_ms, char ret[TW_ID_BYTES])
{
	uint8_t bits[16];
	unsigned acc = 0;
	int n_acc = 2; /* 26 characters of 5 bits hold 128 bits with two leading zero bits */
	int at = 0;

	next_bits(now_ms, bits);
	for (int i = 0; i < 16; i++) {
		acc = (acc << 8 | bits[i]) & 0xFFF;
		n_acc += 8;
		while (n_acc >= 5) {
			n_acc -= 5;
			ret[at++] = alphabet[acc >> n_acc & 31];
		}
	}
	ret[at] = '\0';
}

bool tw_ulid_valid(const char *id)
{
	if (strlen(id) != TW_ID_BYTES - 1 || id[0] > '7')
		return false;
	for (const char *p = id; *p; p++)
		if (!strchr(alphabet, *p))
			return false;
	return true;
}

void tw_ulid_first(int64_t ms, char ret[TW_ID_BYTES])
{
	memset(ret, alphabet[0], TW_ID_BYTES - 1);
	for (int i = 9; i >= 0; i--, ms >>= 5)
		ret[i] = alphabet[ms & 31];
	ret[TW_ID_BYTES - 1] = '\0';
}

int64_t tw_ulid_ms(const char *id)
{
	int64_t ms = 0;

	for (int i = 0; i < 10; i++) /* 48 bits */
		ms = ms << 5 | (strchr(alphabet, id[i]) - alphabet);
	return ms;
}
