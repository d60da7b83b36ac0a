/* Settings: flags, one per line, up to the first NUL, and a file after it.  They are refused with a
 * message, or are within the limits of config.def and equal in a second run. */
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "fuzz.h"
#include "server/base/config.h"

enum { FLAGS_MAX = 32, FLAGS_BYTES = 4096, ARENA_BYTES = 4 << 20 };

struct flags {
	char text[FLAGS_BYTES + 1];
	char *list[FLAGS_MAX + 1];
	int n;
};

static void cut_into_flags(struct flags *f, const uint8_t *data, size_t n)
{
	if (n > FLAGS_BYTES)
		n = FLAGS_BYTES;
	memcpy(f->text, data, n);
	f->text[n] = '\0';
	for (char *at = f->text, *end; f->n < FLAGS_MAX && *at; at = end) {
		f->list[f->n++] = at;
		end = at + strcspn(at, "\n");
		if (*end)
			*end++ = '\0';
	}
}

static uint64_t number_of(const struct tw_config *c, size_t at, bool wide)
{
	const char *field = (const char *)c + at;
	uint64_t number = 0;
	unsigned count;

	if (wide) {
		memcpy(&number, field, sizeof number);
		return number;
	}
	memcpy(&count, field, sizeof count);
	return count;
}

static uint64_t length_of(const struct tw_config *c, size_t at)
{
	const char *text;

	memcpy((void *)&text, (const char *)c + at, sizeof text);
	return strlen(text);
}

/* The bounds of config.def; 0 threads mean one a processor. */
static void check_bounds(const struct tw_config *c)
{
	char host[128];
	uint16_t port;

#define LENGTH(field) length_of(c, offsetof(struct tw_config, field))
#define WIDE(field)   number_of(c, offsetof(struct tw_config, field), true)
#define NARROW(field) number_of(c, offsetof(struct tw_config, field), false)
#define STR(field)    LENGTH(field)
#define BYTES(field)  WIDE(field)
#define COUNT(field)  NARROW(field)
#define BOOL(field)   ((uint64_t)c->field)
#define SETTING(kind, field, flag, dflt, min, max, meaning)                                        \
	FUZZ_CHECK(kind(field) + 1 > (uint64_t)(min) && kind(field) <= (uint64_t)(max));
#include "server/base/config.def"
#undef SETTING
	FUZZ_CHECK(tw_listen_split(c->listen, host, sizeof host, &port));
}

static enum tw_status load(struct flags *f, struct tw_arena *a, struct tw_config *ret)
{
	struct tw_err err = {0};
	enum tw_status st = tw_config_load(a, f->n, f->list, ret, &err);

	FUZZ_CHECK(st == TW_OK || (err.msg[0] && (st == TW_BAD_REQUEST || st == TW_TOO_LARGE ||
	                                                 st == TW_IO || st == TW_NOMEM)));
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t nothing;
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	size_t n = end ? (size_t)(end - data) : size;
	int fd = memfd_create("settings", MFD_CLOEXEC);
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct flags f = {.n = 0};
	struct tw_config c, again;
	char path[40];

	FUZZ_CHECK(fd >= 0 && a);
	cut_into_flags(&f, n ? data : &nothing, n);
	if (end) {
		size_t rest = size - n - 1;

		FUZZ_CHECK(write(fd, end + 1, rest) == (ssize_t)rest);
		(void)snprintf(path, sizeof path, "--config=/proc/self/fd/%d", fd);
		f.list[f.n++] = path;
	}
	if (load(&f, a, &c) == TW_OK) {
		check_bounds(&c);
		FUZZ_CHECK(load(&f, a, &again) == TW_OK);
		FUZZ_CHECK(c.max_body_bytes == again.max_body_bytes &&
		           strcmp(c.listen, again.listen) == 0);
	}
	tw_arena_free(a);
	(void)close(fd);
	return 0;
}
