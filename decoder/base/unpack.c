/*
 * unpack.c - a state machine over headers, names and data.
 *
 * Each state declares how many bytes it wants; incomplete ones are collected in `held` first, so
 * that splits change nothing.  Data is passed on in granules, as the ratio is checked while
 * reading.
 */
#include "decoder/base/unpack.h"

#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "decoder/base/buf.h"
#include "decoder/base/granule.h"

enum {
	ZIP_LOCAL = 0x04034B50,
	ZIP_DESCRIPTOR = 0x08074B50,
	ZIP_HEADER = 30,
	ZIP_ENCRYPTED = 1,
	ZIP_SIZES_FOLLOW = 8,
	TAR_BLOCK = 512,
	MAX_NAME = 1 << 16,
	HELD_BYTES = 2 * MAX_NAME + ZIP_HEADER,
	OUT_BYTES = 64 << 10,
	RATIO_FLOOR = 1 << 20
};

enum state {
	STATE_START,
	STATE_ZIP_HEADER,
	STATE_ZIP_NAME,
	STATE_ZIP_DESCRIPTOR,
	STATE_TAR_HEADER,
	STATE_TAR_NAME, /* an entry that contains only a long name */
	STATE_STORED,
	STATE_DEFLATED,
	STATE_PADDING,
	STATE_DONE,
	STATE_DAMAGED
};

struct tw_unpack {
	struct tw_limits limits;
	const struct tw_unpack_ops *ops;
	void *arg;
	enum state state;
	struct tw_granules granules;
	uint8_t *held, *out;
	uint32_t n_held, want;
	uint64_t left, padding; /* of stored data; of the padding after it */
	uint64_t in_bytes, out_bytes;
	uint32_t files;
	bool tar, in_file, sizes_follow, wide_sizes, inflating;
	z_stream zlib;
	char *long_name; /* of the next tar entry */
	size_t long_len;
};

static bool is_tar(const uint8_t *head, size_t len)
{
	return len >= TAR_BLOCK && memcmp(head + 257, "ustar", 5) == 0;
}

bool tw_unpack_knows(const uint8_t *head, size_t len)
{
	return (len >= 4 && tw_u32le(head) == ZIP_LOCAL) || is_tar(head, len);
}

static voidpf zlib_alloc(voidpf arg, uInt n, uInt size)
{
	(void)arg;
	return tw_mem_alloc(n, size);
}

static void zlib_release(voidpf arg, voidpf p)
{
	(void)arg;
	tw_mem_free(p);
}

static void expect(struct tw_unpack *u, enum state state, uint32_t want)
{
	u->state = state;
	u->want = want;
	u->n_held = 0;
}

struct tw_unpack *tw_unpack_new(struct tw_arena *a, const struct tw_limits *limits,
        const struct tw_unpack_ops *ops, void *arg)
{
	struct tw_unpack *u = tw_arena_zalloc(a, 1, sizeof *u);

	if (!u)
		return NULL;
	u->limits = *limits;
	u->ops = ops;
	u->arg = arg;
	u->held = tw_arena_alloc(a, HELD_BYTES, 1);
	u->out = tw_arena_alloc(a, OUT_BYTES, 1);
	u->long_name = tw_arena_alloc(a, MAX_NAME, 1);
	u->granules.held = tw_arena_alloc(a, TW_GRANULE, 1);
	expect(u, STATE_START, 4);
	return u->held && u->out && u->long_name && u->granules.held ? u : NULL;
}

struct tw_unpack *tw_unpack_free(struct tw_unpack *u)
{
	if (u && u->inflating)
		(void)inflateEnd(&u->zlib);
	return NULL;
}

/* --- files --- */

static enum tw_status begin_file(struct tw_unpack *u, struct tw_str name, struct tw_err *err)
{
	u->in_file = true;
	return u->ops->begin(u->arg, u->files++, name, err);
}

static enum tw_status end_file(struct tw_unpack *u, bool cut, struct tw_err *err)
{
	if (!u->in_file)
		return TW_OK;
	u->in_file = false;
	return u->ops->end(u->arg, cut, err);
}

static enum tw_status deliver(struct tw_unpack *u, const uint8_t *p, size_t n, struct tw_err *err)
{
	u->out_bytes += n;
	if (u->out_bytes > u->limits.max_decoded_bytes) /* the same offset for all splits */
		return tw_fail_at(err, TW_TOO_LARGE, u->limits.max_decoded_bytes,
		        "the archive's files are larger than %llu bytes",
		        (unsigned long long)u->limits.max_decoded_bytes);
	if (u->out_bytes > RATIO_FLOOR && u->out_bytes / u->limits.max_ratio > u->in_bytes)
		return tw_fail_at(err, TW_TOO_LARGE, u->out_bytes,
		        "the files in the archive exceed %u times its size",
		        (unsigned)u->limits.max_ratio);
	return u->in_file && n ? u->ops->data(u->arg, p, n, err) : TW_OK;
}

static enum tw_status damage(struct tw_unpack *u, struct tw_err *err)
{
	u->state = STATE_DAMAGED;
	return end_file(u, true, err);
}

static void after_data(struct tw_unpack *u)
{
	if (u->padding)
		u->state = STATE_PADDING;
	else if (u->tar)
		expect(u, STATE_TAR_HEADER, TAR_BLOCK);
	else if (u->sizes_follow)
		expect(u, STATE_ZIP_DESCRIPTOR, 4);
	else
		expect(u, STATE_ZIP_HEADER, 4);
}

static enum tw_status end_data(struct tw_unpack *u, struct tw_err *err)
{
	after_data(u);
	return end_file(u, false, err);
}

/* --- zip --- */

/* The sizes of large entries are in an extra field. */
static void read_zip64(struct tw_unpack *u, const uint8_t *p, size_t n)
{
	while (n >= 4) {
		size_t size = tw_u32le(p) >> 16;

		if (size > n - 4)
			return;
		if ((tw_u32le(p) & 0xFFFF) == 1) {
			u->wide_sizes = true;
			if (size >= 16 && u->left == UINT32_MAX)
				u->left = tw_u64le(p + 12);
		}
		p += 4 + size;
		n -= 4 + size;
	}
}

static enum tw_status begin_inflate(struct tw_unpack *u, struct tw_err *err)
{
	int rc;

	if (!u->inflating) {
		u->zlib = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_release};
		rc = inflateInit2(&u->zlib, -15);
		u->inflating = rc == Z_OK;
	} else {
		rc = inflateReset(&u->zlib);
	}
	if (rc != Z_OK)
		return tw_oom(err);
	u->state = STATE_DEFLATED;
	return TW_OK;
}

/* NULL, or the reason why an entry cannot be read. */
static const char *unreadable(unsigned flags, unsigned method)
{
	if (flags & ZIP_ENCRYPTED)
		return "encrypted";
	return method == 0 || method == 8 ? NULL : "compressed by neither deflate nor stored";
}

/* A file that cannot be read: the first is refused with an error; a later one is delivered as
 * empty, and skipped if its size is known. */
static enum tw_status pass_over(
        struct tw_unpack *u, struct tw_str name, const char *why, struct tw_err *err)
{
	enum tw_status st;

	if (u->files == 0)
		return tw_fail_at(err, TW_UNSUPPORTED, u->in_bytes, "a zip file that is %s", why);
	st = begin_file(u, name, err);
	if (st == TW_OK)
		st = end_file(u, false, err);
	if (st != TW_OK || u->sizes_follow)
		return st == TW_OK ? damage(u, err) : st;
	u->state = STATE_STORED;
	return u->left ? TW_OK : end_data(u, err);
}

static enum tw_status zip_entry(struct tw_unpack *u, struct tw_err *err)
{
	const uint8_t *h = u->held;
	unsigned flags = tw_u32le(h + 4) >> 16;
	unsigned method = tw_u32le(h + 8) & 0xFFFF;
	size_t name_len = tw_u32le(h + 26) & 0xFFFF;
	struct tw_str name = {(const char *)h + ZIP_HEADER, name_len};
	bool folder = name_len && name.ptr[name_len - 1] == '/';
	const char *why = unreadable(flags, method);
	enum tw_status st = TW_OK;

	u->left = tw_u32le(h + 18);
	u->padding = 0;
	u->wide_sizes = false;
	u->sizes_follow = (flags & ZIP_SIZES_FOLLOW) != 0;
	read_zip64(u, h + ZIP_HEADER + name_len, u->n_held - ZIP_HEADER - name_len);
	if (why)
		return pass_over(u, name, why, err);
	if (method == 0 && u->sizes_follow && !folder)
		return damage(u, err); /* its end is unknown */
	if (!folder)
		st = begin_file(u, name, err);
	if (st != TW_OK)
		return st;
	if (method == 8)
		return begin_inflate(u, err);
	u->state = STATE_STORED;
	return u->left ? TW_OK : end_data(u, err);
}

static enum tw_status zip_header(struct tw_unpack *u, struct tw_err *err)
{
	if (u->want == 4 && tw_u32le(u->held) == ZIP_LOCAL) {
		u->want = ZIP_HEADER;
		return TW_OK;
	}
	if (u->want == 4) { /* the central directory: all files have been read */
		u->state = STATE_DONE;
		return TW_OK;
	}
	if (u->state == STATE_ZIP_HEADER) {
		u->want = ZIP_HEADER + (tw_u32le(u->held + 26) & 0xFFFF) +
		          (tw_u32le(u->held + 26) >> 16);
		u->state = STATE_ZIP_NAME;
		if (u->want > u->n_held)
			return TW_OK;
	}
	return zip_entry(u, err);
}

/* Optional signature, checksum, two sizes. */
static void zip_descriptor(struct tw_unpack *u)
{
	uint32_t sizes = u->wide_sizes ? 16 : 8;

	if (u->want == 4) {
		u->want = tw_u32le(u->held) == ZIP_DESCRIPTOR ? 8 + sizes : 4 + sizes;
		return;
	}
	expect(u, STATE_ZIP_HEADER, 4);
}

/* --- tar --- */

static bool octal(const uint8_t *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (p[0] & 0x80) { /* GNU: binary, big-endian */
		for (size_t i = 1; i < n; i++)
			v = (i < n - 8 ? 0 : v << 8) | p[i];
		*ret = v;
		return v < UINT64_C(1) << 62;
	}
	for (size_t i = 0; i < n && p[i] && p[i] != ' '; i++) {
		if (p[i] < '0' || p[i] > '7')
			return false;
		v = v << 3 | (uint64_t)(p[i] - '0');
	}
	*ret = v;
	return true;
}

static bool checksum_fits(const uint8_t *h)
{
	uint64_t want = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : h[i];
	return octal(h + 148, 8, &want) && want == sum;
}

/* The long name from an earlier entry, or else prefix and name of the header. */
static struct tw_str tar_name(struct tw_unpack *u, char out[260])
{
	const char *h = (const char *)u->held;
	size_t prefix = memcmp(h + 257, "ustar\0", 6) == 0 ? strnlen(h + 345, 155) : 0;
	size_t name = strnlen(h, 100);
	size_t at = 0;

	if (u->long_len)
		return (struct tw_str){u->long_name, u->long_len};
	if (prefix) {
		memcpy(out, h + 345, prefix);
		out[prefix] = '/';
		at = prefix + 1;
	}
	memcpy(out + at, h, name);
	return (struct tw_str){out, at + name};
}

/* Entries that contain the name of the next entry. Their type is kept in long_name[0] for
 * tar_long_name. */
static bool is_long_name(struct tw_unpack *u, uint8_t type, uint64_t size)
{
	if ((type != 'L' && type != 'x') || size == 0 || size >= MAX_NAME)
		return false;
	expect(u, STATE_TAR_NAME, (uint32_t)size);
	u->long_len = 0;
	u->long_name[0] = (char)type;
	return true;
}

static bool is_end(const struct tw_unpack *u)
{
	return u->held[0] == 0 && u->held[TAR_BLOCK - 1] == 0 && !checksum_fits(u->held);
}

static enum tw_status tar_header(struct tw_unpack *u, struct tw_err *err)
{
	char name[260];
	uint8_t type = u->held[156];
	uint64_t size = 0;
	enum tw_status st = TW_OK;

	if (is_end(u)) {
		u->state = STATE_DONE; /* a block of zeros */
		return TW_OK;
	}
	if (!checksum_fits(u->held) || !octal(u->held + 124, 12, &size))
		return damage(u, err);
	u->padding = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
	u->left = size;
	if (is_long_name(u, type, size))
		return TW_OK;
	if (type == '0' || type == 0 || type == '7')
		st = begin_file(u, tar_name(u, name), err);
	if (type != 'g')
		u->long_len = 0;
	u->state = STATE_STORED;
	return st == TW_OK && u->left == 0 ? end_data(u, err) : st;
}

/* pax records are "<length> <key>=<value>\n". */
static struct tw_str pax_path(struct tw_str all)
{
	while (all.len) {
		struct tw_str rest = all;
		uint64_t len = 0;
		struct tw_str number = tw_str_split(&rest, ' ');
		struct tw_str record;

		if (!tw_str_u64(number, all.len, &len) || len <= number.len + 1)
			break;
		record = (struct tw_str){rest.ptr, (size_t)len - number.len - 1};
		if (record.len > 6 && memcmp(record.ptr, "path=", 5) == 0)
			return (struct tw_str){record.ptr + 5, record.len - 6};
		all = (struct tw_str){all.ptr + len, all.len - (size_t)len};
	}
	return TW_STR("");
}

static void tar_long_name(struct tw_unpack *u)
{
	struct tw_str name = {(const char *)u->held, u->n_held};

	if (u->long_name[0] == 'x')
		name = pax_path(name);
	else
		name.len = strnlen(name.ptr, name.len);
	u->long_len = name.len;
	memcpy(u->long_name, name.ptr, name.len);
	after_data(u);
}

/* --- state machine --- */

static enum tw_status start(struct tw_unpack *u)
{
	if (u->want == 4 && tw_u32le(u->held) == ZIP_LOCAL) {
		u->state = STATE_ZIP_HEADER;
		u->want = ZIP_HEADER;
		return TW_OK;
	}
	u->tar = true;
	u->state = STATE_TAR_HEADER;
	u->want = TAR_BLOCK;
	return TW_OK;
}

/* `held` has the bytes that the state wanted. */
static enum tw_status step(struct tw_unpack *u, struct tw_err *err)
{
	switch (u->state) {
	case STATE_START:
		return start(u);
	case STATE_ZIP_HEADER:
	case STATE_ZIP_NAME:
		return zip_header(u, err);
	case STATE_ZIP_DESCRIPTOR:
		zip_descriptor(u);
		return TW_OK;
	case STATE_TAR_HEADER:
		return tar_header(u, err);
	case STATE_TAR_NAME:
		tar_long_name(u);
		return TW_OK;
	case STATE_STORED:
	case STATE_DEFLATED:
	case STATE_PADDING:
	case STATE_DONE:
	case STATE_DAMAGED:
	default:
		return TW_OK;
	}
}

static enum tw_status stored(struct tw_unpack *u, const uint8_t **p, size_t *n, struct tw_err *err)
{
	size_t take = *n < u->left ? *n : (size_t)u->left;
	enum tw_status st;

	u->left -= take;
	u->in_bytes += take;
	st = deliver(u, *p, take, err);
	*p += take;
	*n -= take;
	return st == TW_OK && u->left == 0 ? end_data(u, err) : st;
}

static enum tw_status deflated(
        struct tw_unpack *u, const uint8_t **p, size_t *n, struct tw_err *err)
{
	uInt give = *n < OUT_BYTES ? (uInt)*n : OUT_BYTES;
	enum tw_status st;
	size_t used;
	int rc;

	do {
		u->zlib.next_in = (z_const Bytef *)(uintptr_t)*p;
		u->zlib.avail_in = give;
		u->zlib.next_out = u->out;
		u->zlib.avail_out = OUT_BYTES;
		rc = inflate(&u->zlib, Z_NO_FLUSH);
		if (rc == Z_MEM_ERROR)
			return tw_oom(err);
		used = give - u->zlib.avail_in;
		*p += used;
		*n -= used;
		give -= (uInt)used;
		u->in_bytes += used;
		st = deliver(u, u->out, OUT_BYTES - u->zlib.avail_out, err);
	} while (st == TW_OK && rc == Z_OK && (give || u->zlib.avail_out == 0));
	if (st != TW_OK)
		return st;
	if (rc == Z_STREAM_END)
		return end_data(u, err);
	return rc == Z_OK || rc == Z_BUF_ERROR ? TW_OK : damage(u, err);
}

static void skip_padding(struct tw_unpack *u, const uint8_t **p, size_t *n)
{
	size_t take = *n < u->padding ? *n : (size_t)u->padding;

	u->padding -= take;
	*p += take;
	*n -= take;
	if (u->padding == 0)
		after_data(u);
}

static enum tw_status gather(struct tw_unpack *u, const uint8_t **p, size_t *n, struct tw_err *err)
{
	return tw_gather(u->held, &u->n_held, u->want, &u->in_bytes, p, n) ? step(u, err) : TW_OK;
}

static enum tw_status push_piece(
        struct tw_unpack *u, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && n && u->state != STATE_DONE && u->state != STATE_DAMAGED) {
		if (u->state == STATE_STORED)
			st = stored(u, &p, &n, err);
		else if (u->state == STATE_DEFLATED)
			st = deflated(u, &p, &n, err);
		else if (u->state == STATE_PADDING)
			skip_padding(u, &p, &n);
		else
			st = gather(u, &p, &n, err);
	}
	return st;
}

enum tw_status tw_unpack_push(struct tw_unpack *u, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	const uint8_t *piece;
	size_t len;

	while (st == TW_OK && tw_granules_next(&u->granules, &p, &n, &piece, &len))
		st = push_piece(u, piece, len, err);
	return st;
}

enum tw_status tw_unpack_finish(struct tw_unpack *u, bool *ret_whole, struct tw_err *err)
{
	enum tw_status st = push_piece(u, u->granules.held, tw_granules_rest(&u->granules), err);
	/* some writers omit the zero blocks at the end */
	bool between = u->tar && u->state == STATE_TAR_HEADER && u->n_held == 0;

	if (st != TW_OK)
		return st;
	*ret_whole = u->state == STATE_DONE || between;
	return end_file(u, true, err);
}
