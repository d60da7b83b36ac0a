/*
 * quota_file.c - the buckets on disk: a head, a line for each that is not empty, a keyed checksum.
 *
 * The file contains the secret, as slots depend on it.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/file/io.h"
#include "server/http/limit/quota_int.h"

static const char magic[8] = "TWQUOTA2";

struct head {
	char magic[8];
	uint8_t secret[crypto_shorthash_KEYBYTES];
	uint64_t lines;
	int64_t saved_us;
};

struct line {
	uint64_t who, key;
	int64_t empty_us[TW_QUOTA_WHAT];
};

static bool is_empty(const struct tw_quota_slot *s, int64_t now_us)
{
	return s->empty_us[TW_QUOTA_REQUESTS] <= now_us && s->empty_us[TW_QUOTA_BYTES] <= now_us;
}

static size_t slots_of(int who)
{
	return (size_t)TW_QUOTA_WAYS *
	       (who == TW_QUOTA_KEY ? TW_QUOTA_KEY_SETS : TW_QUOTA_DEVICE_SETS);
}

static enum tw_status put_lines(
        struct tw_quota *q, int64_t now_us, struct tw_buf *out, uint64_t *ret_lines)
{
	enum tw_status st = TW_OK;

	*ret_lines = 0;
	for (int who = 0; who < TW_QUOTA_WHO; who++)
		for (size_t i = 0; i < slots_of(who) && st == TW_OK; i++) {
			const struct tw_quota_slot *s = &q->slots[who][i];
			struct line l = {(uint64_t)who, s->key,
			        {s->empty_us[TW_QUOTA_REQUESTS], s->empty_us[TW_QUOTA_BYTES]}};

			if (!s->key || is_empty(s, now_us))
				continue;
			st = tw_buf_add(out, &l, sizeof l);
			(*ret_lines)++;
		}
	return st;
}

static enum tw_status put_all(
        struct tw_quota *q, int64_t now_us, struct tw_buf *out, struct tw_err *err)
{
	uint8_t sum[crypto_shorthash_BYTES];
	struct head h = {0};
	enum tw_status st;

	memcpy(h.magic, magic, sizeof h.magic);
	memcpy(h.secret, q->secret, sizeof h.secret);
	h.saved_us = now_us;
	st = tw_buf_add(out, &h, sizeof h);
	if (st == TW_OK)
		st = put_lines(q, now_us, out, &h.lines);
	if (st != TW_OK)
		return tw_fail(err, st, "no memory to store the quotas");
	memcpy(out->data, &h, sizeof h);
	(void)crypto_shorthash(sum, out->data, out->len, q->secret);
	st = tw_buf_add(out, sum, sizeof sum);
	return st == TW_OK ? st : tw_fail(err, st, "no memory to store the quotas");
}

static size_t most_bytes(void)
{
	return sizeof(struct head) + crypto_shorthash_BYTES +
	       (slots_of(TW_QUOTA_KEY) + slots_of(TW_QUOTA_DEVICE)) * sizeof(struct line);
}

enum tw_status tw_quota_save(
        struct tw_quota *q, const char *path, int64_t now_ms, struct tw_err *err)
{
	struct tw_buf b;
	enum tw_status st;

	tw_buf_init(&b, most_bytes());
	(void)pthread_mutex_lock(&q->lock);
	st = put_all(q, now_ms * 1000, &b, err);
	(void)pthread_mutex_unlock(&q->lock);
	if (st == TW_OK)
		st = tw_file_replace(path, b.data, b.len, err);
	tw_buf_done(&b);
	return st;
}

static bool is_intact(const uint8_t *p, size_t n, struct head *ret)
{
	uint8_t sum[crypto_shorthash_BYTES];

	if (n < sizeof *ret + sizeof sum)
		return false;
	memcpy(ret, p, sizeof *ret);
	if (memcmp(ret->magic, magic, sizeof magic) != 0 ||
	        ret->lines != (n - sizeof *ret - sizeof sum) / sizeof(struct line) ||
	        n != sizeof *ret + sizeof sum + ret->lines * sizeof(struct line))
		return false;
	(void)crypto_shorthash(sum, p, n - sizeof sum, ret->secret);
	return memcmp(sum, p + n - sizeof sum, sizeof sum) == 0;
}

static void read_lines(struct tw_quota *q, const uint8_t *p, uint64_t n, int64_t now_us)
{
	for (uint64_t i = 0; i < n; i++) {
		struct line l;
		struct tw_quota_slot *s;

		memcpy(&l, p + i * sizeof l, sizeof l);
		if (l.who >= TW_QUOTA_WHO || l.key == 0)
			continue;
		s = tw_quota_slot(q, (enum tw_quota_who)l.who, l.key, now_us);
		memcpy(s->empty_us, l.empty_us, sizeof s->empty_us);
	}
}

enum tw_status tw_quota_load(
        struct tw_quota *q, const char *path, int64_t now_ms, struct tw_err *err)
{
	size_t cap = most_bytes() + 1;
	uint8_t *bytes = tw_mem_alloc(cap, 1);
	struct head h = {0};
	const ssize_t n = bytes ? tw_file_read(path, bytes, cap) : 0;
	enum tw_status st = TW_OK;

	if (!bytes)
		st = tw_oom(err);
	else if (n < 0)
		st = tw_fail_errno(
		        err, errno == ENOENT ? TW_NOT_FOUND : TW_IO, "cannot read the quotas");
	else if (!is_intact(bytes, (size_t)n, &h))
		st = tw_fail(
		        err, TW_CORRUPT, "the stored quotas are damaged: counting starts again");
	if (st == TW_OK) {
		(void)pthread_mutex_lock(&q->lock);
		memcpy(q->secret, h.secret, sizeof q->secret);
		q->last_us = h.saved_us;
		read_lines(q, bytes + sizeof h, h.lines, now_ms * 1000);
		(void)pthread_mutex_unlock(&q->lock);
	}
	tw_mem_free(bytes);
	return st;
}
