/* `tracewell backup`: copies a data folder; repeated runs copy only new files. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/cli/cli_term.h"
#include "server/ops/backup.h"
#include "server/storage/backup_time.h"

enum { TIMEOUT_S = 60, PART_BYTES = 64 << 20, PATH_BYTES = 1500 };

static void print_skipped(void *arg, const char *id, const char *why)
{
	tw_progress_clear(arg);
	(void)fprintf(stderr, "the upload of %s is excluded: %s\n", id, why);
}

static enum tw_status print_json(const struct tw_backup_sums *s, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);

	tw_json_key_int(j, "uploads", (int64_t)(s->uploads - s->left_out));
	TW_JSON_MEMBERS(j, s, copied, bytes, dropped);
	tw_json_key_int(j, "excluded", (int64_t)s->left_out);
	return tw_cli_line_end(&line, err);
}

static void step(void *arg, const struct tw_backup_sums *s)
{
	tw_progress_at(arg, s->uploads, s->bytes);
}

/* Whether path is folder or inside it.  Trailing components of path may not exist yet. */
static bool is_within(const char *path, const char *folder)
{
	char at[PATH_BYTES];
	struct stat here, above;
	size_t n;

	(void)snprintf(at, sizeof at, "%s", path);
	while (stat(at, &here) != 0) {
		char *slash = strrchr(at, '/');

		if (!slash || slash == at) {
			(void)snprintf(at, sizeof at, "%s", slash ? "/" : ".");
			break;
		}
		*slash = '\0';
	}
	for (n = strlen(at); n < sizeof at - 4; n += 3) {
		if (tw_cli_same_folder(at, folder))
			return true;
		if (stat(at, &here) != 0)
			return false;
		memcpy(at + n, "/..", 4);
		if (stat(at, &above) != 0 ||
		        (here.st_dev == above.st_dev && here.st_ino == above.st_ino))
			return false; /* the root */
	}
	return false;
}

static enum tw_status check_folder(const char *data, const char *to, struct tw_err *err)
{
	if (tw_cli_same_folder(data, to))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--to is the data folder itself: a backup needs a separate folder");
	if (is_within(to, data) || is_within(data, to))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--to and --data must not contain each other: use a separate folder");
	return TW_OK;
}

/* Secrets come from the environment: arguments show in the list of processes. */
static enum tw_status run(const char *data, const char *to, const char *endpoint,
        struct tw_backup *b, struct tw_backup_sums *ret, struct tw_err *err)
{
	const bool is_store = strncmp(to, "s3://", 5) == 0;
	struct tw_progress bar = tw_progress_of("backup: uploads");
	enum tw_status st = is_store ? TW_OK : check_folder(data, to, err);

	if (st != TW_OK)
		return st;
	b->decoded = b->decoded && !is_store;
	b->left_out = print_skipped;
	b->step = step;
	b->arg = &bar;
	(void)umask(077);
	st = tw_cli_data_open(data, &b->catalogue, &b->from, err);
	if (st == TW_OK)
		st = is_store ? tw_s3_new(&(struct tw_s3_endpoint){.where = to,
		                                  .endpoint = endpoint,
		                                  .timeout_s = TIMEOUT_S,
		                                  .part_bytes = PART_BYTES},
		                        &b->s3, err)
		              : tw_blobs_open(to, 0, &b->to, err);
	if (st == TW_OK && bar.what)
		bar.total = tw_stored_count(b->catalogue, tw_catalogue_stored_parts);
	if (st == TW_OK)
		st = tw_backup_run(b, ret, err);
	tw_progress_clear(&bar);
	tw_catalogue_close(b->catalogue);
	tw_blobs_close(b->from);
	tw_blobs_close(b->to);
	tw_s3_free(b->s3);
	return st;
}

/* Records the time of the backup.  A read-only source is no error. */
static void note_done(const char *data)
{
	struct tw_err err;

	if (tw_backup_record_time(data, &err) != TW_OK)
		(void)fprintf(stderr,
		        "tracewell backup: cannot record the backup's time for the server: %s\n",
		        err.msg);
}

int tw_cli_backup(int argc, char **argv)
{
	const char *data = "./data", *to = NULL, *endpoint = NULL;
	bool without_decoded = false, json = false;
	struct tw_backup backup = {.replace = false};
	const struct tw_flag flags[] = {{.name = "data", .value = &data},
	        {.name = "to", .value = &to, .needed = true},
	        {.name = "s3-endpoint", .value = &endpoint},
	        {.name = "without-decoded", .on = &without_decoded},
	        {.name = "replace", .on = &backup.replace}, {.name = "json", .on = &json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};
	struct tw_backup_sums sums = {0};
	struct tw_err err;
	enum tw_status st;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	backup.decoded = !without_decoded;
	st = run(data, to, endpoint, &backup, &sums, &err);
	if (st == TW_OK)
		note_done(data);
	if (st == TW_OK && json)
		st = print_json(&sums, &err);
	if (st != TW_OK)
		return tw_cli_failed("backup", &err);
	if (!json)
		(void)printf("%" PRIu64 " uploads in the backup: %" PRIu64
		             " files copied (%.1f MB), %" PRIu64 " obsolete files deleted, %" PRIu64
		             " uploads excluded\n",
		        sums.uploads - sums.left_out, sums.copied, (double)sums.bytes / 1e6,
		        sums.dropped, sums.left_out);
	return sums.left_out ? TW_EXIT_FAILED : TW_EXIT_OK;
}
