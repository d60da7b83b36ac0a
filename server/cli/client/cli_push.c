/*
 * cli_push.c - `tracewell push`: uploads files, or the trace files in folders.
 *
 * The Idempotency-Key is a hash of the file and its metadata: a push that is repeated, after an
 * interruption or not, creates one trace.
 */
#include <dirent.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/base/clock.h"
#include "server/base/file/sha256.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/cli/cli_term.h"
#include "server/cli/client/cli_server.h"
#include "server/cli/client/push_client.h"
#include "server/decode/compile_mapping.h"

/* --- the body of an upload --- */

/* A file's or pipe's content is read once: hashed, and compressed with zstd into an unnamed file,
 * so that a repeated request can send it again and the server knows its length first.  Files that
 * are compressed already are sent unchanged.  Memory does not grow with the file. */
struct tw_push_body {
	char path[4096];    /* the file to send */
	FILE *copy;         /* NULL: path is the original */
	uint8_t sha256[32]; /* of the content, uncompressed unless it came compressed */
};

enum {
	STEP = 1 << 20,
	LEVEL = 3,
	/* Servers refuse bodies that decompress to more than --max-ratio (200) times their size.
	 * Content that compresses better than MAX_RATIO is padded, by at most 1.6 % of its size. */
	MAX_RATIO = 64,
	SKIPPABLE_HEAD = 8,
	HEAD = 4
};

struct copy {
	FILE *from, *to; /* to: NULL if the original is sent */
	bool is_file;    /* `from` can be read again */
	ZSTD_CCtx *zstd; /* NULL: sent unchanged */
	gnutls_hash_hd_t hash;
	uint64_t in, out;
	bool in_frame;
	uint8_t *piece, *packed;
	size_t packed_size;
};

static bool is_compressed(const uint8_t *p, size_t n)
{
	if (n < HEAD)
		return false;
	return tw_u32le(p) == ZSTD_MAGICNUMBER || (p[0] == 0x1F && p[1] == 0x8B) ||
	       memcmp(p, "PK\3\4", HEAD) == 0;
}

static void leave_unchanged(struct copy *c)
{
	(void)ZSTD_freeCCtx(c->zstd);
	c->zstd = NULL;
	if (c->is_file && c->to) {
		(void)fclose(c->to);
		c->to = NULL;
	}
}

static enum tw_status put(struct copy *c, const void *p, size_t n, struct tw_err *err)
{
	c->out += n;
	if (!c->to || fwrite(p, 1, n, c->to) == n)
		return TW_OK;
	if (!c->is_file)
		return tw_fail_errno(err, TW_IO, "cannot write a temporary file");
	leave_unchanged(c); /* no space for a copy */
	return TW_OK;
}

static enum tw_status compress(struct copy *c, size_t n, ZSTD_EndDirective how, struct tw_err *err)
{
	ZSTD_inBuffer in = {c->piece, n, 0};
	enum tw_status st = TW_OK;
	size_t left = 1;

	while (st == TW_OK && c->zstd && (in.pos < n || (how == ZSTD_e_end && left > 0))) {
		ZSTD_outBuffer out = {c->packed, c->packed_size, 0};

		left = ZSTD_compressStream2(c->zstd, &out, &in, how);
		st = ZSTD_isError(left) ? tw_oom(err) : put(c, c->packed, out.pos, err);
	}
	c->in_frame = how != ZSTD_e_end;
	return st;
}

/* Writes a skippable frame, for content that compresses too well. */
static enum tw_status pad(struct copy *c, struct tw_err *err)
{
	uint64_t missing = c->in / MAX_RATIO - c->out;
	uint8_t *p = c->packed;

	if (missing > c->packed_size - SKIPPABLE_HEAD)
		missing = c->packed_size - SKIPPABLE_HEAD;
	memset(p, 0, SKIPPABLE_HEAD + (size_t)missing);
	tw_put_u64le(p, missing << 32 | ZSTD_MAGIC_SKIPPABLE_START);
	return put(c, p, SKIPPABLE_HEAD + (size_t)missing, err);
}

static enum tw_status compress_piece(struct copy *c, size_t n, struct tw_err *err)
{
	bool dense = (c->in + n) / MAX_RATIO > c->out;
	enum tw_status st = compress(c, n, dense ? ZSTD_e_end : ZSTD_e_continue, err);

	c->in += n;
	if (st == TW_OK && dense && c->in / MAX_RATIO > c->out)
		st = pad(c, err);
	return st;
}

static enum tw_status each_piece(struct copy *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool is_first = true;
	size_t n;

	while (st == TW_OK && (n = fread(c->piece, 1, STEP, c->from)) > 0) {
		(void)gnutls_hash(c->hash, c->piece, n);
		if (is_first && is_compressed(c->piece, n))
			leave_unchanged(c);
		is_first = false;
		if (c->zstd)
			st = compress_piece(c, n, err);
		else if (c->to)
			st = put(c, c->piece, n, err);
	}
	if (st == TW_OK && ferror(c->from))
		st = tw_fail_errno(err, TW_IO, "cannot read it");
	if (st == TW_OK && c->in_frame)
		st = compress(c, 0, ZSTD_e_end, err);
	if (st == TW_OK && c->to && fflush(c->to) != 0 && c->is_file)
		leave_unchanged(c);
	else if (st == TW_OK && c->to && ferror(c->to))
		st = tw_fail_errno(err, TW_IO, "cannot write a temporary file");
	return st;
}

static enum tw_status copy_open(struct copy *c, const char *path, struct tw_err *err)
{
	struct stat st;

	c->from = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!c->from || fstat(fileno(c->from), &st) != 0)
		return tw_fail_errno(err, TW_IO, "cannot read %s", path);
	c->is_file = S_ISREG(st.st_mode) && c->from != stdin;
	c->to = tmpfile();
	if (!c->to && !c->is_file)
		return tw_fail_errno(err, TW_IO, "cannot write a temporary file");
	c->packed_size = ZSTD_CStreamOutSize();
	c->piece = tw_mem_alloc(STEP, 1);
	c->packed = tw_mem_alloc(c->packed_size, 1);
	c->zstd = c->to ? ZSTD_createCCtx() : NULL;
	if (!c->piece || !c->packed || (c->to && !c->zstd))
		return tw_oom(err);
	(void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, LEVEL);
	return tw_sha256_begin(GNUTLS_DIG_SHA256, &c->hash, err);
}

static void copy_close(struct copy *c)
{
	if (c->from && c->from != stdin)
		(void)fclose(c->from);
	if (c->to)
		(void)fclose(c->to);
	if (c->hash)
		gnutls_hash_deinit(c->hash, NULL);
	(void)ZSTD_freeCCtx(c->zstd);
	tw_mem_free(c->piece);
	tw_mem_free(c->packed);
}

/* "-" is the standard input.  TW_IO with the reason; on failure there is nothing to close. */
static enum tw_status tw_push_body_open(
        const char *path, struct tw_push_body *ret, struct tw_err *err)
{
	struct copy c = {.from = NULL};
	enum tw_status st = copy_open(&c, path, err);

	if (st == TW_OK)
		st = each_piece(&c, err);
	if (st == TW_OK) {
		gnutls_hash_deinit(c.hash, ret->sha256);
		c.hash = NULL;
		ret->copy = c.to;
		c.to = NULL;
		if (ret->copy)
			(void)snprintf(
			        ret->path, sizeof ret->path, "/proc/self/fd/%d", fileno(ret->copy));
		else
			(void)snprintf(ret->path, sizeof ret->path, "%s", path);
	}
	copy_close(&c);
	return st;
}

static void tw_push_body_close(struct tw_push_body *b)
{
	if (b->copy)
		(void)fclose(b->copy);
	b->copy = NULL;
}

enum {
	MAX_META = 64,
	MAX_QUERY = 12 << 10,
	MAPPING_WAIT_S = 30, /* per request; shorter than the client's stall timeout */
	MAPPING_MOST_S = 900,
	MAPPING_EARLY_MS = 10000, /* a response before this time came without waiting */
	MAPPING_PAUSE_MS = 500,   /* the first pause, then doubled */
	MAPPING_MAX_PAUSE_MS = 8000,
	MAX_PATH_BYTES = 4096,
	MAX_FOLDERS = 16,
	MAX_SKIPPED_PRINTED = 20,
	MAX_PARTS = 8,
	ARENA = 64 << 20,
	FIRST_POLL_MS = 100,
	MAX_POLL_MS = 2000
};

struct push {
	struct tw_arena *arena;
	struct tw_push_client *client;
	const char *server, *key, *build_id, *scenario, *mapping, *retrace, *threads;
	const char *part[MAX_PARTS]; /* NAME=FILE */
	size_t n_part;
	struct tw_push_part parts[MAX_PARTS + 1];
	struct tw_push_body bodies[MAX_PARTS + 1]; /* of parts */
	size_t n_parts;
	const char *meta[MAX_META];
	size_t n_meta;
	bool wait, json;
	const char *until;   /* the awaited state: NULL, "ready" or "counted" */
	struct tw_buf query; /* "?build_id=...", NUL-terminated */
	unsigned sent, failed, skipped;
};

/* Names each skipped file up to a limit. */
static void report_skipped(struct push *p, const char *path, const char *why)
{
	if (p->skipped++ < MAX_SKIPPED_PRINTED)
		(void)fprintf(stderr, "skipped %s: %s\n", path, why);
}

static void failed(struct push *p, const char *path, const struct tw_err *err)
{
	p->failed++;
	(void)fprintf(stderr, "tracewell push: %s: %s\n", path, err->msg);
}

static const char *const untils[] = {"ready", "counted", NULL};

/* An argument of --meta or --part: NAME=VALUE. */
static bool is_pair(const char *text)
{
	return strcspn(text, "=") > 0 && strchr(text, '=');
}

static bool is_part(const char *text)
{
	return is_pair(text) && strchr(text, '=')[1];
}

static enum tw_status make_query(struct push *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (p->build_id)
		st = tw_push_client_query(p->client, &p->query, "build_id", p->build_id, err);
	if (st == TW_OK && p->scenario)
		st = tw_push_client_query(p->client, &p->query, "scenario", p->scenario, err);
	for (size_t i = 0; i < p->n_meta && st == TW_OK; i++) {
		struct tw_str value = tw_str_of(p->meta[i]);
		char *name = tw_arena_str(p->arena, tw_str_split(&value, '='));

		if (!name)
			return tw_oom(err);
		st = tw_push_client_query(p->client, &p->query, name, value.ptr, err);
	}
	if (st == TW_OK && tw_buf_add(&p->query, "", 1) != TW_OK)
		st = tw_fail(err, TW_NOMEM, "the query is too long");
	return st;
}

static void idempotency_key(const struct push *p, const struct tw_push_body *trace, char out[72])
{
	uint8_t sums[(MAX_PARTS + 3) * 32];
	const size_t n = p->n_parts + 2;
	uint8_t sum[32];
	char hex[TW_SHA256_HEX];

	tw_sha256_bytes(tw_buf_str(&p->query), sums);
	memcpy(sums + 32, trace->sha256, 32);
	for (size_t i = 0; i < p->n_parts; i++)
		memcpy(sums + 64 + 32 * i, p->bodies[i].sha256, 32);
	tw_sha256_bytes((struct tw_str){(const char *)sums, n * 32}, sum);
	tw_sha256_hex(sum, hex);
	(void)snprintf(out, 72, "push-%s", hex);
}

static bool until_counted(const struct push *p)
{
	return p->until && strcmp(p->until, "counted") == 0;
}

static enum tw_status failed_trace(const char *id, const json_t *trace, struct tw_err *err)
{
	const json_t *why = json_object_get(trace, "error");
	const char *text = json_string_value(json_object_get(why, "message"));

	return tw_fail(err, TW_CORRUPT, "trace %s failed: %s", id, text ? text : "no reason given");
}

/* Whether a ready trace is counted; one without a file is counted when it is opened. */
static enum tw_status is_counted(
        const char *id, const json_t *trace, bool *ret_done, struct tw_err *err)
{
	const char *counted = json_string_value(json_object_get(trace, "rollup_state"));

	if (!counted)
		return tw_fail(err, TW_IO,
		        "the server does not report whether trace %s is counted: it is older than "
		        "this command",
		        id);
	if (strcmp(counted, "unreadable") == 0)
		return tw_fail(err, TW_CONFLICT,
		        "trace %s will not be counted: its decoded file cannot be read", id);
	*ret_done = strcmp(counted, "counted") == 0;
	return TW_OK;
}

/* Whether the trace has reached the awaited state. */
static enum tw_status has_reached(const struct push *p, const char *id, const json_t *trace,
        bool *ret_done, struct tw_err *err)
{
	const char *state = json_string_value(json_object_get(trace, "state"));

	*ret_done = false;
	if (!state)
		return tw_fail(
		        err, TW_IO, "the response has no state: is this a tracewell server?");
	if (strcmp(state, "failed") == 0)
		return failed_trace(id, trace, err);
	*ret_done = strcmp(state, "archived") == 0 || strcmp(state, "ready") == 0;
	if (until_counted(p) && strcmp(state, "ready") == 0)
		return is_counted(id, trace, ret_done, err);
	return TW_OK;
}

/* Waits until the trace is ready, or counted. TW_CORRUPT: it failed; TW_CONFLICT: it is ready and
 * will not be counted. */
static enum tw_status wait_for(struct push *p, const char *id, struct tw_err *err)
{
	char path[128];
	bool done = false;

	(void)snprintf(path, sizeof path, "/api/v1/traces/%.32s", id);
	for (int64_t ms = FIRST_POLL_MS;; ms = ms * 2 < MAX_POLL_MS ? ms * 2 : MAX_POLL_MS) {
		json_t *trace;
		enum tw_status st = tw_push_client_send(p->client,
		        &(struct tw_push_request){.method = "GET", .path = path}, &trace, err);

		if (st != TW_OK)
			return st;
		st = has_reached(p, id, trace, &done, err);
		json_decref(trace);
		if (st != TW_OK || done)
			return st;
		tw_sleep_ms(ms);
	}
}

/* `id` NULL: the server did not accept it; `why` NULL: no error. */
static enum tw_status print_json(const char *path, const char *id, const char *state,
        const struct tw_err *why, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);

	tw_json_key_text(j, "file", path);
	if (id)
		tw_json_key_text(j, "id", id);
	tw_json_key_text(j, "state", state);
	if (why)
		tw_json_key_text(j, "error", why->msg);
	return tw_cli_line_end(&line, err);
}

/* Reports a file that could not be read, or sent. */
static void report_failed(
        struct push *p, const char *path, enum tw_status st, const struct tw_err *err)
{
	bool is_refused = st != TW_IO && st != TW_NOMEM;

	failed(p, path, err);
	if (p->json &&
	        print_json(path, NULL, is_refused ? "refused" : "unsent", err, NULL) != TW_OK)
		(void)fputs("tracewell push: the output cannot be written\n", stderr);
}

static const char *state_of(const struct push *p, enum tw_status waited)
{
	if (waited == TW_CORRUPT)
		return "failed";
	if (waited == TW_CONFLICT) /* it will not be counted */
		return "ready";
	if (waited != TW_OK || !p->wait)
		return "accepted";
	return until_counted(p) ? "counted" : "ready";
}

/* Prints the result when the server has accepted the trace; with --wait, when it is decoded or
 * counted. */
static enum tw_status report_sent(
        struct push *p, const char *path, const char *id, struct tw_err *err)
{
	struct tw_err later;
	enum tw_status st = TW_OK, printed;

	p->sent++;
	if (!p->json) {
		(void)printf("%s\n", id);
		(void)fflush(stdout);
	}
	if (p->wait)
		st = wait_for(p, id, err);
	if (!p->json)
		return st;
	printed = print_json(path, id, state_of(p, st), st == TW_OK ? NULL : err, &later);
	if (st == TW_OK && printed != TW_OK)
		tw_err_copy(err, &later);
	return st == TW_OK ? printed : st;
}

/* The caller frees *ret with json_decref. */
static enum tw_status upload(
        struct push *p, const char *path, json_t **ret, const char **ret_id, struct tw_err *err)
{
	char key[72];
	char *url = tw_arena_printf(p->arena, "/api/v1/traces%s", (const char *)p->query.data);
	struct tw_push_body body;
	enum tw_status st = url ? tw_push_body_open(path, &body, err) : tw_oom(err);

	if (st != TW_OK)
		return st;
	idempotency_key(p, &body, key);
	st = tw_push_client_send(p->client,
	        &(struct tw_push_request){.method = "POST",
	                .path = url,
	                .file = body.path,
	                .label = path,
	                .parts = p->parts,
	                .n_parts = p->n_parts,
	                .idempotency = key},
	        ret, err);
	tw_push_body_close(&body);
	if (st != TW_OK)
		return st;
	*ret_id = json_string_value(json_object_get(*ret, "id"));
	return *ret_id ? TW_OK
	               : tw_fail(err, TW_IO, "the response has no id: is this a tracewell server?");
}

/* JSON files in folders may be traces (Chrome, Sentry, Matrix, ...) or anything else: the server
 * decides. */
static bool may_be_other(const char *path, unsigned depth)
{
	const char *dot = strstr(path, ".json");

	for (const char *next = dot; next; next = strstr(next + 1, ".json"))
		dot = next;
	return depth > 0 && dot && !strchr(dot, '/');
}

static void send_trace(struct push *p, const char *path, unsigned depth)
{
	json_t *answer = NULL;
	const char *id = NULL;
	struct tw_err err;
	enum tw_status st = upload(p, path, &answer, &id, &err);

	if (st == TW_UNSUPPORTED && may_be_other(path, depth))
		report_skipped(p, path, "JSON in no known trace format");
	else if (st != TW_OK)
		report_failed(p, path, st, &err);
	else if (report_sent(p, path, id, &err) != TW_OK)
		failed(p, path, &err);
	json_decref(answer);
}

static bool is_pending(const json_t *answer)
{
	const char *state = json_string_value(json_object_get(answer, "state"));

	return state && (strcmp(state, "queued") == 0 || strcmp(state, "compiling") == 0);
}

/* Repeats the upload until the mapping is compiled. A key of scope ingest cannot read the build; a
 * repeated upload queues nothing and waits for the result. A server that is shutting down, or has
 * too many waiting requests of the project, responds without waiting. */
static enum tw_status send_until_compiled(struct push *p, const char *url, const char *label,
        const char *file, json_t **ret, struct tw_err *err)
{
	const int64_t until = tw_monotonic_ms() + INT64_C(1000) * MAPPING_MOST_S;
	int64_t pause = MAPPING_PAUSE_MS;

	for (;;) {
		const int64_t began = tw_monotonic_ms();
		json_t *answer = NULL;
		enum tw_status st = tw_push_client_send(p->client,
		        &(struct tw_push_request){
		                .method = "PUT", .path = url, .file = file, .label = label},
		        &answer, err);

		if (st != TW_OK)
			return st;
		if (!is_pending(answer)) {
			*ret = answer;
			return TW_OK;
		}
		json_decref(answer);
		if (tw_monotonic_ms() >= until)
			return tw_fail(err, TW_DEADLINE,
			        "stored, but not compiled after %d minutes: the build shows its "
			        "state",
			        MAPPING_MOST_S / 60);
		if (tw_monotonic_ms() - began >= MAPPING_EARLY_MS)
			continue;
		tw_sleep_ms(pause);
		pause = 2 * pause < MAPPING_MAX_PAUSE_MS ? 2 * pause : MAPPING_MAX_PAUSE_MS;
	}
}

static enum tw_status send_mapping(struct push *p, const char *build_id, const char *kind,
        const char *file, struct tw_err *err)
{
	struct tw_push_body body = {.copy = NULL};
	struct tw_buf path;
	json_t *answer = NULL;
	enum tw_status st;

	tw_buf_init(&path, MAX_QUERY);
	st = tw_push_client_query(p->client, &path, "b", build_id, err);
	if (st == TW_OK)
		st = tw_push_body_open(file, &body, err);
	if (st == TW_OK && tw_buf_add(&path, "", 1) != TW_OK)
		st = tw_oom(err);
	if (st == TW_OK) {
		const char *escaped = (const char *)path.data + strlen("?b=");
		char *url = tw_arena_printf(
		        p->arena, "/api/v1/builds/%s/%s?wait=%d", escaped, kind, MAPPING_WAIT_S);

		st = send_until_compiled(p, url ? url : "", file, body.path, &answer, err);
	}
	tw_push_body_close(&body);
	tw_buf_done(&path);
	if (st != TW_OK)
		return st;
	(void)fprintf(stderr, "%s of %s: %lld methods\n",
	        strcmp(kind, "retrace") == 0   ? "R8 mapping"
	        : strcmp(kind, "methods") == 0 ? "mapping"
	                                       : kind,
	        build_id,
	        (long long)json_integer_value(json_object_get(
	                answer, strcmp(kind, "retrace") == 0 ? "methods" : "entries")));
	json_decref(answer);
	return TW_OK;
}

/* --- symbols of native libraries --- */

enum { SYMBOLS_MAX_BYTES = 2047 << 20 };

static enum tw_status read_build_id(
        const char *path, char out[TW_BUILD_ID_HEX], bool *ret_elf, struct tw_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;
	bool found;

	*ret_elf = false;
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < 4 || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			(void)close(fd);
		return TW_OK; /* reported where it is sent */
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (data == MAP_FAILED)
		return TW_OK;
	*ret_elf = tw_native_is_elf((struct tw_str){data, 4});
	found = *ret_elf && st.st_size <= SYMBOLS_MAX_BYTES &&
	        tw_native_build_id((struct tw_str){data, (size_t)st.st_size}, out);
	(void)munmap(data, (size_t)st.st_size);
	if (*ret_elf && !found)
		return tw_fail(err, TW_UNSUPPORTED,
		        "a library without a build id: link it with -Wl,--build-id");
	return TW_OK;
}

/* False: not an ELF file. */
static bool send_symbols(struct push *p, const char *path)
{
	char build_id[sizeof "elf:" + TW_BUILD_ID_HEX] = "elf:";
	struct tw_err err;
	bool is_elf;
	enum tw_status st = read_build_id(path, build_id + strlen("elf:"), &is_elf, &err);

	if (!is_elf)
		return false;
	if (st == TW_OK)
		st = send_mapping(p, build_id, "symbols", path, &err);
	if (st != TW_OK)
		report_failed(p, path, st, &err);
	else if (p->sent++, p->json && print_json(path, build_id, "ready", NULL, &err) != TW_OK)
		failed(p, path, &err);
	return true;
}

/* --- files and folders --- */

static bool ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len >= n && memcmp(s + len - n, suffix, n) == 0;
}

/* Suffixes of traces; lists, texts and mappings are stored in the same folders. */
static bool is_trace_name(const char *name)
{
	static const char *const suffixes[] = {".bin", ".trace", ".perfetto-trace", ".pftrace",
	        ".zip", ".tar", ".tgz", ".systrace.html", ".json", ".blockInfo", ".so"};
	size_t len = strlen(name);

	if (name[0] == '.')
		return false;
	if (ends_with(name, len, ".zst"))
		len -= 4;
	else if (ends_with(name, len, ".gz"))
		len -= 3;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (ends_with(name, len, suffixes[i]))
			return true;
	return false;
}

static int keep_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void push_path(struct push *p, const char *path, unsigned depth);

/* NOLINTNEXTLINE(misc-no-recursion) as deep as MAX_FOLDERS allows */
static void push_folder(struct push *p, const char *path, unsigned depth)
{
	struct dirent **entries;
	int n = scandir(path, &entries, keep_visible, alphasort);

	if (n < 0) {
		report_failed(p, path, TW_IO, &(struct tw_err){.msg = "cannot read the folder"});
		return;
	}
	for (int i = 0; i < n; i++) {
		char *inner = tw_arena_printf(p->arena, "%s/%s", path, entries[i]->d_name);
		struct stat st;

		if (inner && lstat(inner, &st) == 0) {
			if (S_ISDIR(st.st_mode) ||
			        (S_ISREG(st.st_mode) && is_trace_name(entries[i]->d_name)))
				push_path(p, inner, depth + 1);
			else
				report_skipped(p, inner, "not named like a trace");
		}
		tw_mem_free(entries[i]);
	}
	tw_mem_free(entries);
}

/* NOLINTNEXTLINE(misc-no-recursion) as deep as MAX_FOLDERS allows */
static void push_path(struct push *p, const char *path, unsigned depth)
{
	bool is_input = strcmp(path, "-") == 0;
	struct stat st;
	struct tw_err err = {.msg = "folders too deep"};

	if (!is_input && stat(path, &st) != 0) {
		(void)tw_fail_errno(&err, TW_IO, "cannot read it");
		report_failed(p, path, TW_IO, &err);
	} else if (is_input || !S_ISDIR(st.st_mode)) {
		if (is_input || !send_symbols(p, path))
			send_trace(p, path, depth);
	} else if (depth < MAX_FOLDERS) {
		push_folder(p, path, depth);
	} else {
		report_failed(p, path, TW_IO, &err);
	}
}

static enum tw_status add_part(
        struct push *p, const char *name, const char *path, struct tw_err *err)
{
	struct tw_push_body *body = &p->bodies[p->n_parts];
	enum tw_status st = tw_push_body_open(path, body, err);

	if (st == TW_OK)
		p->parts[p->n_parts++] = (struct tw_push_part){name, body->path};
	return st;
}

static enum tw_status name_parts(struct push *p, struct tw_err *err)
{
	enum tw_status st = p->threads ? add_part(p, "threads", p->threads, err) : TW_OK;

	for (size_t i = 0; st == TW_OK && i < p->n_part; i++) {
		struct tw_str file = tw_str_of(p->part[i]);
		char *name = tw_arena_str(p->arena, tw_str_split(&file, '='));

		if (!name)
			return tw_oom(err);
		st = add_part(p, name, file.ptr, err);
	}
	return st;
}

static int push_all(struct push *p, int n, char **paths)
{
	struct tw_err err;
	enum tw_status st =
	        tw_push_client_new(p->server, p->key, tw_term_is(stderr), &p->client, &err);

	if (st == TW_OK)
		st = make_query(p, &err);
	if (st == TW_OK)
		st = name_parts(p, &err);
	if (st == TW_BAD_REQUEST) {
		(void)tw_cli_failed("push", &err);
		return TW_EXIT_USAGE;
	}
	if (st == TW_OK && p->mapping)
		st = send_mapping(p, p->build_id, "methods", p->mapping, &err);
	if (st == TW_OK && p->retrace)
		st = send_mapping(p, p->build_id, "retrace", p->retrace, &err);
	if (st != TW_OK)
		return tw_cli_failed("push", &err);
	for (int i = 0; i < n; i++)
		push_path(p, paths[i], 0);
	if (p->skipped)
		(void)fprintf(stderr, "%u file%s skipped, %u sent\n", p->skipped,
		        p->skipped == 1 ? "" : "s", p->sent);
	if (p->sent + p->failed == 0 && n > 0) {
		(void)fputs("tracewell push: no trace file there (*.bin, *.trace, "
		            "*.perfetto-trace, *.json, *.zip, *.tar, *.so, also "
		            ".zst and .gz); a file named on the command line is sent whatever its "
		            "extension\n",
		        stderr);
		return TW_EXIT_FAILED;
	}
	return p->failed ? TW_EXIT_FAILED : TW_EXIT_OK;
}

int tw_cli_push(int argc, char **argv)
{
	struct push p = {0};
	const struct tw_flag flags[] = {
	        TW_CLI_SERVER(&p.server),
	        TW_CLI_KEY(&p.key),
	        {"build-id", .value = &p.build_id},
	        {"scenario", .value = &p.scenario},
	        {"mapping", .value = &p.mapping},
	        {"retrace", .value = &p.retrace},
	        {"threads", .value = &p.threads},
	        {"part", .list = p.part, .max = MAX_PARTS, .n = &p.n_part, .fits = is_part,
	                .form = "NAME=FILE"},
	        {"meta", .list = p.meta, .max = MAX_META, .n = &p.n_meta, .fits = is_pair,
	                .form = "K=V"},
	        {"wait", .on = &p.wait, .value = &p.until, .choices = untils},
	        {"json", .on = &p.json},
	};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, "[FILE...]"};
	int n = tw_cli_flags(&usage, argc, argv);
	int code;

	if (n < 0)
		return TW_EXIT_USAGE;
	if (n == 0 && !p.mapping && !p.retrace)
		return tw_cli_misused(
		        argv[0], "nothing to send: give a FILE, a FOLDER, --mapping or --retrace");
	if ((p.mapping || p.retrace) && !p.build_id)
		return tw_cli_misused(
		        argv[0], "--build-id is missing: a mapping belongs to a build");
	p.arena = tw_arena_new(ARENA);
	tw_buf_init(&p.query, MAX_QUERY);
	code = p.arena ? push_all(&p, n, argv + 1) : TW_EXIT_FAILED;
	tw_buf_done(&p.query);
	p.client = tw_push_client_free(p.client);
	for (size_t i = 0; i < p.n_parts; i++)
		tw_push_body_close(&p.bodies[i]);
	p.arena = tw_arena_free(p.arena);
	return code;
}
