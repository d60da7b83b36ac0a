/*
 * Resumable uploads.  If the first byte is odd, the rest is parsed as a header; otherwise it is a
 * sequence of steps of two bytes on one upload: pieces, also truncated, verified and abandoned,
 * kills, power cuts.  After each step all accepted bytes are stored, and the assembled upload
 * equals the bytes sent.
 */
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "server/ingest/tus/resume.h"

enum { STEPS = 60, LENGTH_MOST = 6000, PIECE_MOST = 700, ARENA_BYTES = 1 << 20 };

struct upload {
	struct tw_blobs *blobs;
	struct tw_resumes *rs;
	char id[TW_ID_BYTES]; /* "": none */
	uint64_t length, written, accepted;
	uint8_t salt;
	bool done;
};

static const struct tw_caller caller = {.project_id = "P", .key_id = "K"};
static const char trace_id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

static uint8_t byte_at(const struct upload *u, uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) + u->salt);
}

static void path_of(const struct upload *u, const char *suffix, char path[200])
{
	(void)snprintf(path, 200, "%s/uploads/%s%s", tw_blobs_dir(u->blobs), u->id, suffix);
}

static void open_all(struct upload *u)
{
	static const struct tw_resume_limits limits = {4, 1 << 20, 1000};
	struct tw_err err = {0};

	FUZZ_CHECK(tw_resumes_open(u->blobs, &limits, &u->rs, &err) == TW_OK);
}

/* The part contains the bytes sent, up to the reported offset. */
static void check_content(const struct upload *u, struct tw_resume *r)
{
	uint8_t bytes[LENGTH_MOST];
	struct tw_err err = {0};
	int fd = -1;

	if (u->done || r->offset == 0)
		return;
	FUZZ_CHECK(tw_resume_open(u->rs, r, &fd, &err) == TW_OK);
	FUZZ_CHECK(read(fd, bytes, sizeof bytes) == (ssize_t)r->offset);
	for (uint64_t i = 0; i < r->offset; i++)
		FUZZ_CHECK(bytes[i] == byte_at(u, i));
	(void)close(fd);
}

/* *ret in the arena of the caller. */
static void look(const struct upload *u, struct tw_arena *a, struct tw_resume *ret)
{
	struct tw_err err = {0};

	FUZZ_CHECK(tw_resume_progress_of(u->rs, "P", u->id, ret, a, &err) == TW_OK);
	FUZZ_CHECK(ret->length == u->length && strcmp(ret->metadata, "a dGV4dA==") == 0);
	FUZZ_CHECK(strcmp(ret->trace_id, u->done ? trace_id : "") == 0);
	FUZZ_CHECK(tw_resume_progress_of(u->rs, "other", u->id, ret, a, &err) == TW_NOT_FOUND);
	FUZZ_CHECK(tw_resume_progress_of(u->rs, "P", u->id, ret, a, &err) == TW_OK);
	check_content(u, ret);
}

static void check_offset(struct upload *u, struct tw_arena *a, bool after_power_cut)
{
	struct tw_resume r;

	if (!u->id[0])
		return;
	look(u, a, &r);
	if (after_power_cut && !u->done) {
		FUZZ_CHECK(r.offset >= u->accepted && r.offset <= u->written);
		u->written = r.offset;
	}
	FUZZ_CHECK(r.offset == u->written);
}

static void begin(struct upload *u, unsigned arg)
{
	struct tw_err err = {0};

	u->length = 1 + (uint64_t)arg * 23 % LENGTH_MOST;
	u->salt = (uint8_t)arg;
	u->written = u->accepted = 0;
	u->done = false;
	FUZZ_CHECK(
	        tw_resume_new(u->rs, &caller, u->length, "a dGV4dA==", "", u->id, &err) == TW_OK);
}

/* Writes up to n bytes in pieces of `step`; how many were taken. */
static uint64_t send(
        struct upload *u, struct tw_resume *r, uint64_t from, uint64_t n, uint64_t step)
{
	uint8_t bytes[PIECE_MOST];
	struct tw_err err = {0};

	for (uint64_t at = 0; at < n; at += step) {
		uint64_t k = n - at < step ? n - at : step;

		for (uint64_t i = 0; i < k; i++)
			bytes[i] = byte_at(u, from + at + i);
		if (from + at + k > u->length) {
			FUZZ_CHECK(tw_resume_write(u->rs, r, bytes, k, &err) == TW_TOO_LARGE);
			return at;
		}
		FUZZ_CHECK(tw_resume_write(u->rs, r, bytes, k, &err) == TW_OK);
	}
	return n;
}

enum end { KEPT, GIVEN_UP, KILLED };

static void piece(struct upload *u, unsigned arg, bool apart, enum end end)
{
	struct tw_err err = {0};
	struct tw_resume *r = NULL, *again = NULL;
	uint64_t sent;

	FUZZ_CHECK(tw_resume_acquire(u->rs, "P", u->id, &r, &err) == TW_OK);
	FUZZ_CHECK(tw_resume_acquire(u->rs, "P", u->id, &again, &err) == TW_LOCKED);
	FUZZ_CHECK(tw_resume_begin_piece(u->rs, r, apart, &err) == TW_OK);
	sent = send(u, r, u->written, arg * 3 % PIECE_MOST, 1 + arg % 97);
	u->written += apart && end != KEPT ? 0 : sent;
	if (end == KILLED) { /* no response was sent */
		u->rs = tw_resumes_close(u->rs);
		open_all(u);
		return;
	}
	FUZZ_CHECK(tw_resume_end_piece(u->rs, r, end == KEPT, &err) == TW_OK);
	u->accepted = end == KEPT ? u->written : u->accepted;
	tw_resume_release(u->rs, r);
}

/* Replaces unsynced bytes and restarts the machine: its boot id changes. */
static void cut_power(struct upload *u)
{
	static const uint8_t rubbish[LENGTH_MOST];
	char path[200];
	int fd;

	u->rs = tw_resumes_close(u->rs);
	path_of(u, ".part", path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		uint64_t n = u->written - u->accepted;

		FUZZ_CHECK(pwrite(fd, rubbish, n, (off_t)u->accepted) == (ssize_t)n);
		(void)close(fd);
	}
	path_of(u, ".watermark", path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		FUZZ_CHECK(pwrite(fd, "another-boot", 12, 21) == 12);
		(void)close(fd);
	}
	open_all(u);
}

static void finish(struct upload *u)
{
	struct tw_err err = {0};
	struct tw_resume *r = NULL;

	if (u->written < u->length || u->done)
		return;
	FUZZ_CHECK(tw_resume_acquire(u->rs, "P", u->id, &r, &err) == TW_OK);
	FUZZ_CHECK(r->offset == r->length);
	check_content(u, r);
	FUZZ_CHECK(tw_resume_done(u->rs, r, trace_id, &err) == TW_OK);
	tw_resume_release(u->rs, r);
	u->done = true;
	u->accepted = u->written;
}

static void drop(struct upload *u)
{
	struct tw_err err = {0};
	struct tw_resume *r = NULL;
	char path[200];
	struct stat s;

	FUZZ_CHECK(tw_resume_acquire(u->rs, "P", u->id, &r, &err) == TW_OK);
	tw_resume_drop(u->rs, r, NULL);
	tw_resume_release(u->rs, r);
	FUZZ_CHECK(tw_resume_acquire(u->rs, "P", u->id, &r, &err) == TW_NOT_FOUND);
	for (int i = 0; i < 4; i++) {
		path_of(u, (const char *[]){".json", ".part", ".watermark", ".new"}[i], path);
		FUZZ_CHECK(stat(path, &s) != 0);
	}
	u->id[0] = '\0';
}

static void step(struct upload *u, struct tw_arena *a, unsigned op, unsigned arg)
{
	bool power = op % 8 == 5;

	if (!u->id[0]) {
		begin(u, arg);
		return;
	}
	if (op % 8 < 4 && !u->done)
		piece(u, arg, op & 8, op % 8 < 2 ? KEPT : op % 8 == 2 ? GIVEN_UP : KILLED);
	else if (op % 8 == 4)
		finish(u);
	else if (power)
		cut_power(u);
	else if (op % 8 == 6 && arg % 4 == 0)
		drop(u);
	check_offset(u, a, power);
	tw_arena_reset(a);
}

static char dir[] = "/dev/shm/tw-fuzz-resume-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void remove_folder(void)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void play(const uint8_t *data, size_t size)
{
	static struct tw_blobs *blobs;
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_err err = {0};
	struct upload u = {.id = ""};

	if (!blobs)
		FUZZ_CHECK(mkdtemp(dir) && atexit(remove_folder) == 0 &&
		           tw_blobs_open(dir, 0, &blobs, &err) == TW_OK);
	FUZZ_CHECK(a);
	u.blobs = blobs;
	open_all(&u);
	for (size_t i = 0; i + 1 < size && i < (size_t)2 * STEPS; i += 2)
		step(&u, a, data[i], data[i + 1]);
	if (u.id[0])
		drop(&u);
	u.rs = tw_resumes_close(u.rs);
	tw_arena_free(a);
}

static void read_header(const uint8_t *data, size_t size)
{
	struct tw_ingest_pair pairs[TW_RESUME_PAIRS];
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	char *text = a ? tw_arena_str(a, (struct tw_str){(const char *)data, size}) : NULL;
	struct tw_err err = {0};
	struct tw_resume_sum sum;
	size_t n = 0;

	FUZZ_CHECK(text || size > ARENA_BYTES / 2);
	if (text && tw_resume_read_metadata(a, text, pairs, &n, &err) == TW_OK) {
		FUZZ_CHECK(n <= TW_RESUME_PAIRS);
		for (size_t i = 0; i < n; i++)
			FUZZ_CHECK(pairs[i].name && pairs[i].value && !strchr(pairs[i].name, ','));
	} else {
		FUZZ_CHECK(!text || err.msg[0]);
	}
	if (text && tw_resume_read_sum(a, text, &sum, &err) == TW_OK)
		FUZZ_CHECK(sum.len == (sum.sha1 ? 20u : 32u));
	tw_arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		read_header(data + 1, size - 1);
	else
		play(data + 1, size - 1);
	return 0;
}
