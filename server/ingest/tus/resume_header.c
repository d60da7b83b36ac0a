#include "server/ingest/tus/resume.h"

#include <gnutls/gnutls.h>
#include <string.h>

/* The bytes of standard base64 as text in the arena. */
static const char *decode_base64(
        struct tw_arena *a, struct tw_str in, size_t *ret_len, struct tw_err *err)
{
	const gnutls_datum_t from = {(unsigned char *)(uintptr_t)in.ptr, (unsigned)in.len};
	gnutls_datum_t to = {0};
	char *text;

	*ret_len = 0;
	if (in.len == 0)
		return "";
	if (gnutls_base64_decode2(&from, &to) != 0) {
		(void)tw_fail(err, TW_BAD_REQUEST, "a header's base64 is broken");
		return NULL;
	}
	text = tw_arena_str(a, (struct tw_str){(const char *)to.data, to.size});
	*ret_len = to.size;
	gnutls_free(to.data);
	if (!text)
		(void)tw_oom(err);
	return text;
}

/* Metadata that tus clients add by themselves; traces have no file name. */
static bool is_of_file(const char *name)
{
	static const char *const names[] = {"filename", "filetype", "name", "type", "relativePath"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* *ret_taken: whether the pair is metadata of ours. */
static enum tw_status read_pair(struct tw_arena *a, struct tw_str one, struct tw_ingest_pair *pair,
        bool *ret_taken, struct tw_err *err)
{
	struct tw_str rest = one;
	struct tw_str name = tw_str_split(&rest, ' ');
	size_t len;

	pair->name = tw_arena_str(a, name);
	if (!pair->name)
		return tw_oom(err);
	if (is_of_file(pair->name))
		return TW_OK;
	pair->value = decode_base64(a, tw_str_trim(rest), &len, err);
	if (!pair->value)
		return err->code;
	if (strlen(pair->value) != len)
		return tw_fail(
		        err, TW_BAD_REQUEST, "Upload-Metadata: %.64s contains NUL", pair->name);
	*ret_taken = true;
	return TW_OK;
}

enum tw_status tw_resume_read_metadata(struct tw_arena *a, const char *text,
        struct tw_ingest_pair pairs[TW_RESUME_PAIRS], size_t *ret_n, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	enum tw_status st = TW_OK;
	size_t n = 0;

	while (rest.len && st == TW_OK) {
		struct tw_str one = tw_str_trim(tw_str_split(&rest, ','));
		bool taken = false;

		if (n == TW_RESUME_PAIRS)
			return tw_fail(err, TW_BAD_REQUEST,
			        "Upload-Metadata has more than %d pairs", TW_RESUME_PAIRS);
		if (one.len)
			st = read_pair(a, one, &pairs[n], &taken, err);
		n += taken;
	}
	if (st == TW_OK)
		*ret_n = n;
	return st;
}

enum tw_status tw_resume_read_sum(
        struct tw_arena *a, const char *text, struct tw_resume_sum *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	struct tw_str name = tw_str_split(&rest, ' ');
	bool sha1 = name.len == 4 && memcmp(name.ptr, "sha1", 4) == 0;
	bool sha256 = name.len == 6 && memcmp(name.ptr, "sha256", 6) == 0;
	const char *bytes;
	size_t len;

	if (!sha1 && !sha256)
		return tw_fail(
		        err, TW_BAD_REQUEST, "Upload-Checksum may be sha1 or sha256, and base64");
	bytes = decode_base64(a, tw_str_trim(rest), &len, err);
	if (!bytes)
		return err->code;
	if (len != (sha1 ? 20u : 32u))
		return tw_fail(err, TW_BAD_REQUEST, "Upload-Checksum has the wrong length");
	*ret = (struct tw_resume_sum){.sha1 = sha1, .len = len};
	memcpy(ret->bytes, bytes, len);
	return TW_OK;
}
