#include "server/derive/retention_clock.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/base/clock.h"

enum { PATH_BYTES = 1500 };

int64_t tw_retention_clock_now(
        struct tw_retention_clock *c, int64_t unix_ms, int64_t mono_ms, bool *ret_stepped)
{
	const int64_t own_ms = mono_ms + c->offset_ms;

	*ret_stepped = false;
	if (c->known && unix_ms - own_ms > TW_DAY_MS) {
		*ret_stepped = c->stepped_ms == 0;
		if (*ret_stepped)
			c->stepped_ms = mono_ms;
		if (mono_ms - c->stepped_ms < TW_DAY_MS)
			return own_ms;
	}
	c->known = true;
	c->offset_ms = unix_ms - mono_ms;
	c->stepped_ms = 0;
	return unix_ms;
}

/* --- between starts --- */

static void path_of(const char *data_dir, const char *more, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/retention.time%s", data_dir, more);
}

void tw_retention_clock_load(struct tw_retention_clock *c, const char *data_dir, int64_t mono_ms)
{
	char path[PATH_BYTES];
	int64_t at_ms = 0;
	FILE *f;

	*c = (struct tw_retention_clock){.known = false};
	path_of(data_dir, "", path);
	f = fopen(path, "re");
	/* NOLINTNEXTLINE(cert-err34-c) a damaged file counts as none */
	if (f && fscanf(f, "%" SCNd64, &at_ms) == 1 && at_ms > 0)
		*c = (struct tw_retention_clock){.known = true, .offset_ms = at_ms - mono_ms};
	if (f)
		(void)fclose(f);
}

/* Not synced: after a power failure an older time only delays retention. */
void tw_retention_clock_save(const char *data_dir, int64_t now_ms)
{
	char path[PATH_BYTES], made[PATH_BYTES];
	FILE *f;
	bool fine;

	path_of(data_dir, "", path);
	path_of(data_dir, ".new", made);
	f = fopen(made, "we");
	fine = f && fprintf(f, "%" PRId64 "\n", now_ms) > 0;
	if (f && fclose(f) != 0)
		fine = false;
	if (!fine || rename(made, path) != 0)
		(void)remove(made);
}
