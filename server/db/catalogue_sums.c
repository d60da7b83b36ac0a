#include "server/db/catalogue_sums.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "server/base/log.h"

enum { NOTES = 128, NAME_BYTES = 256 };

static struct {
	pthread_mutex_t lock;
	struct {
		char file[NAME_BYTES]; /* the end of a long name */
		uint64_t page;
	} notes[NOTES];
	size_t n;         /* in use */
	uint64_t damaged; /* total number; the next entry is this modulo NOTES */
} noted = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool tw_sums_are_stored(const uint8_t *header)
{
	return memcmp(header, "SQLite format 3", 16) == 0 && header[16] << 8 == TW_SUMS_PAGE &&
	       header[17] == 0 && header[20] == TW_SUMS_BYTES;
}

static void put_word(uint8_t *p, uint32_t w)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(w >> 8 * i);
}

/* Any change of one word changes the sum: each step is a bijection of the previous sum. */
static void sum(const uint8_t *page, uint8_t ret[TW_SUMS_BYTES])
{
	uint32_t a = 0;
	uint32_t b = 0;

	for (size_t at = 0; at < TW_SUMS_PAGE - TW_SUMS_BYTES; at += 8) {
		a += tw_u32le(page + at) + b;
		b += tw_u32le(page + at + 4) + a;
	}
	put_word(ret, a);
	put_word(ret + 4, b);
}

void tw_sums_put(uint8_t *page)
{
	sum(page, page + TW_SUMS_PAGE - TW_SUMS_BYTES);
}

bool tw_sums_fit(const uint8_t *page)
{
	uint8_t is[TW_SUMS_BYTES];

	sum(page, is);
	return memcmp(is, page + TW_SUMS_PAGE - TW_SUMS_BYTES, TW_SUMS_BYTES) == 0;
}

static const char *end_of(const char *file)
{
	size_t n = strlen(file);

	return n < NAME_BYTES ? file : file + n - NAME_BYTES + 1;
}

static bool is_noted(const char *name, uint64_t page)
{
	for (size_t i = 0; i < noted.n; i++)
		if (noted.notes[i].page == page && strcmp(noted.notes[i].file, name) == 0)
			return true;
	return false;
}

void tw_sums_note(const char *file, uint64_t page)
{
	const char *name = end_of(file);
	bool is_new, is_logged;

	(void)pthread_mutex_lock(&noted.lock);
	is_new = !is_noted(name, page);
	is_logged = is_new && noted.damaged < NOTES;
	if (is_new) {
		size_t at = noted.damaged++ % NOTES;

		(void)snprintf(noted.notes[at].file, NAME_BYTES, "%s", name);
		noted.notes[at].page = page;
		noted.n += noted.n < NOTES;
	}
	(void)pthread_mutex_unlock(&noted.lock);
	if (is_logged)
		tw_log(TW_LOG_ERROR, "catalogue_damaged", tw_log_text("file", name),
		        tw_log_number("page", (int64_t)page),
		        tw_log_text("hint", "run tracewell check"));
}

size_t tw_sums_noted(const char *file, void (*each)(void *arg, uint64_t page), void *arg)
{
	const char *name = end_of(file);
	size_t n = 0;

	(void)pthread_mutex_lock(&noted.lock);
	for (size_t i = 0; i < noted.n; i++) {
		if (strcmp(noted.notes[i].file, name) != 0)
			continue;
		each(arg, noted.notes[i].page);
		n++;
	}
	(void)pthread_mutex_unlock(&noted.lock);
	return n;
}

uint64_t tw_sums_damaged(void)
{
	uint64_t n;

	(void)pthread_mutex_lock(&noted.lock);
	n = noted.damaged;
	(void)pthread_mutex_unlock(&noted.lock);
	return n;
}
