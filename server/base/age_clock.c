#include "server/base/age_clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/log.h"

enum { PATH_BYTES = 1500, TEXT_BYTES = 64, STORE_EVERY_MS = 10 * 60 * 1000 };

struct tw_age_clock {
	pthread_mutex_t lock;
	char data_dir[PATH_BYTES - 32]; /* "": of due times, not stored */
	int64_t time_ms, mono_ms;       /* the time, when the monotonic clock was at mono_ms */
	int64_t ahead_ms;               /* uptime since the clock was found ahead */
	int64_t stored_ms;              /* monotonic time of the last write */
	bool known, is_ahead, logged;
};

/* --- between starts --- */

static void path_of(const struct tw_age_clock *c, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/" TW_AGE_CLOCK_FILE, c->data_dir);
}

static void load(struct tw_age_clock *c)
{
	char path[PATH_BYTES], text[TEXT_BYTES];
	uint64_t time_ms = 0, ahead_ms = 0;
	struct tw_str line;

	path_of(c, path);
	c->known = tw_file_text(path, text, sizeof text) || errno != ENOENT;
	line = tw_str_trim(tw_str_of(text));
	if (c->known && (!tw_str_u64(tw_str_split(&line, ' '), INT64_MAX, &time_ms) ||
	                        !tw_str_u64(line, INT64_MAX, &ahead_ms))) {
		time_ms = ahead_ms = 0;
		c->logged = true;
		tw_log(TW_LOG_WARN, "retention_clock", tw_log_text("file", path),
		        tw_log_text("reason",
		                "file cannot be read: no data expires for a day of uptime"));
	}
	c->time_ms = (int64_t)time_ms;
	c->ahead_ms = (int64_t)ahead_ms;
	c->is_ahead = c->ahead_ms > 0;
}

static void store(struct tw_age_clock *c)
{
	char path[PATH_BYTES], text[TEXT_BYTES];
	const int n =
	        snprintf(text, sizeof text, "%" PRId64 " %" PRId64 "\n", c->time_ms, c->ahead_ms);
	struct tw_err err;
	enum tw_status st;

	c->stored_ms = c->mono_ms;
	if (!c->data_dir[0])
		return;
	path_of(c, path);
	st = tw_file_replace(path, text, (size_t)n, &err);
	if (st == TW_OK && !tw_sync_folder(c->data_dir))
		st = tw_fail_errno(&err, TW_IO, "%.120s cannot be synced", c->data_dir);
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "retention_clock", path, &err);
}

enum tw_status tw_age_clock_open(
        const char *data_dir, int64_t mono_ms, struct tw_age_clock **ret, struct tw_err *err)
{
	struct tw_age_clock *c = *ret = tw_mem_zalloc(1, sizeof *c);

	if (!c)
		return tw_oom(err);
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)snprintf(c->data_dir, sizeof c->data_dir, "%s", data_dir);
	c->mono_ms = c->stored_ms = mono_ms;
	load(c);
	return TW_OK;
}

struct tw_age_clock *tw_age_clock_close(struct tw_age_clock *c)
{
	if (!c)
		return NULL;
	if (c->known)
		store(c);
	(void)pthread_mutex_destroy(&c->lock);
	tw_mem_free(c);
	return NULL;
}

/* --- the time --- */

static void log_ahead(struct tw_age_clock *c, int64_t unix_ms)
{
	if (!c->logged && c->data_dir[0])
		tw_log(TW_LOG_WARN, "retention_clock",
		        tw_log_number("days_ahead", (unix_ms - c->time_ms) / TW_DAY_MS),
		        tw_log_text("reason", "clock jumped forward, or the server was stopped: "
		                              "deletion by age pauses for a day of uptime"));
	c->logged = true;
}

int64_t tw_age_clock_at(struct tw_age_clock *c, int64_t unix_ms, int64_t mono_ms)
{
	int64_t elapsed_ms, time_ms;
	bool was_ahead, was_known;

	(void)pthread_mutex_lock(&c->lock);
	was_known = c->known;
	was_ahead = c->is_ahead;
	elapsed_ms = mono_ms - c->mono_ms;
	c->mono_ms = mono_ms;
	c->time_ms += elapsed_ms;
	c->is_ahead = c->known && unix_ms - c->time_ms > TW_DAY_MS;
	if (c->is_ahead && was_ahead)
		c->ahead_ms += elapsed_ms;
	if (c->is_ahead && c->ahead_ms < TW_DAY_MS) {
		log_ahead(c, unix_ms);
	} else {
		c->time_ms = unix_ms;
		c->ahead_ms = 0;
		c->known = true;
		c->is_ahead = c->logged = false;
	}
	if (!was_known || c->is_ahead != was_ahead || mono_ms - c->stored_ms >= STORE_EVERY_MS)
		store(c);
	time_ms = c->time_ms;
	(void)pthread_mutex_unlock(&c->lock);
	return time_ms;
}

static _Atomic(struct tw_age_clock *) in_use;

void tw_age_clock_use(struct tw_age_clock *c)
{
	atomic_store(&in_use, c);
}

int64_t tw_age_ms(void)
{
	struct tw_age_clock *c = atomic_load(&in_use);

	return c ? tw_age_clock_at(c, tw_unix_ms(), tw_monotonic_ms()) : tw_unix_ms();
}

int64_t tw_wait_ms(void)
{
	static struct tw_age_clock waits = {.lock = PTHREAD_MUTEX_INITIALIZER};

	return tw_age_clock_at(&waits, tw_unix_ms(), tw_monotonic_ms());
}
