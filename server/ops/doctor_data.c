/* Checks of a data folder: owner, free space, the catalogue's file and journal, and the catalogue's
 * content. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/api/admin/api_setting.h"
#include "server/base/clock.h"
#include "server/base/file/disk.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/data_catalogue.h"
#include "server/db/catalogue_postgres.h"
#include "server/ops/doctor.h"

enum { PATH_BYTES = 1500, GB = 1000000000, LOG_MANY_MB = 256, WAIT_LONG_S = 900, AHEAD_S = 300 };

static void path_of(const struct tw_doctor *d, const char *name, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/%s", d->data, name);
}

static void check_owner(struct tw_doctor *d, const struct stat *st)
{
	if (st->st_uid != geteuid() || access(d->data, R_OK | W_OK | X_OK) != 0)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "owner",
		        "%s belongs to user %u, this process to user %u. Run tracewell as the "
		        "owner (with the package: tracewell-admin), or run chown -R on the "
		        "folder.",
		        d->data, (unsigned)st->st_uid, (unsigned)geteuid());
	else if (st->st_mode & 077)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "mode",
		        "Other users of this machine can read %s (mode %03o). Run chmod 700 on "
		        "it.",
		        d->data, (unsigned)st->st_mode & 0777);
	else
		tw_doctor_report(
		        d, TW_DOCTOR_GOOD, "owner", "Only its owner can read %s.", d->data);
}

static bool has(const struct tw_doctor *d, const char *name)
{
	char path[PATH_BYTES];

	path_of(d, name, path);
	return access(path, F_OK) == 0;
}

/* False for an unreadable folder, which check_owner reports. */
static bool has_files(const char *folder)
{
	static const char *const ignored[] = {
	        ".", "..", "lost+found"}; /* the last: of a new volume */
	const size_t most = sizeof ignored / sizeof *ignored;
	DIR *dir = opendir(folder);
	const struct dirent *e;
	bool any = false;

	while (dir && !any && (e = readdir(dir))) {
		size_t i = 0;

		while (i < most && strcmp(e->d_name, ignored[i]) != 0)
			i++;
		any = i == most;
	}
	if (dir)
		(void)closedir(dir);
	return any;
}

/* False: a folder of other files, whose owner and mode are no concern of a server. */
static bool check_kind(struct tw_doctor *d)
{
	if (tw_data_catalogue_is_there(d->data) || !has_files(d->data))
		return true;
	if (has(d, "records") || has(d, "blobs") || has(d, "traces")) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "lost_catalogue",
		        "%s has files of a server but no catalogue. Restore catalogue.db (or "
		        "catalogue.url), or run `tracewell check --rebuild --data %s`.",
		        d->data, d->data);
		return true;
	}
	tw_doctor_report(d, TW_DOCTOR_NOTE, "data",
	        "%s has other files, but no catalogue: no server has used it. Check --data, or "
	        "start with an empty folder.",
	        d->data);
	return false;
}

static void check_space(struct tw_doctor *d)
{
	struct statvfs fs;
	struct tw_disk disk;
	double free_percent;

	if (statvfs(d->data, &fs) != 0 || !tw_disk_of(d->data, &disk) || disk.size_bytes == 0)
		return;
	free_percent = tw_disk_free_percent(&disk);
	if (fs.f_flag & ST_RDONLY)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "read_only",
		        "The file system of %s is read-only. Mount it read-write; dmesg shows "
		        "whether the kernel remounted it after an error.",
		        d->data);
	if (free_percent < d->min_free_percent)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "disk",
		        "%.1f %% of the disk of %s is free, less than --min-free (%u %%), so "
		        "uploads are refused. Free space, or set retention rules.",
		        free_percent, d->data, d->min_free_percent);
	else
		tw_doctor_report(d, TW_DOCTOR_GOOD, "disk",
		        "%.1f %% of the disk is free (%.1f %s).", free_percent,
		        (double)disk.free_bytes / (disk.free_bytes < GB ? 1e6 : 1e9),
		        disk.free_bytes < GB ? "MB" : "GB");
	if (fs.f_files && fs.f_favail * 100 < fs.f_files)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "inodes",
		        "Less than 1 %% of the disk's inodes are free. Soon no file can be "
		        "created.");
}

static void check_log(struct tw_doctor *d)
{
	char path[PATH_BYTES];
	struct stat st;
	bool used = tw_data_catalogue_in_use(d->data);

	path_of(d, "catalogue.db-wal", path);
	if (stat(path, &st) != 0 || st.st_size == 0)
		return;
	if (!used)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "unclean_stop",
		        "No server is running, and the last one did not stop cleanly: "
		        "catalogue.db-wal contains %.1f MB of changes. Keep the file; the next "
		        "start applies them. A copy of the folder must include it (or use "
		        "tracewell backup).",
		        (double)st.st_size / 1e6);
	else if (st.st_size >> 20 >= LOG_MANY_MB)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "long_log",
		        "catalogue.db-wal has grown to %.0f MB, because a process keeps a long "
		        "read transaction open. Stop other readers of the catalogue (sqlite3, a "
		        "backup tool).",
		        (double)st.st_size / 1e6);
}

void tw_doctor_data(struct tw_doctor *d)
{
	struct stat st;

	if (!d->data)
		return;
	if (stat(d->data, &st) != 0 && errno == ENOENT) {
		tw_doctor_report(d, TW_DOCTOR_NOTE, "data",
		        "%s does not exist yet. `tracewell serve --data %s` creates it.", d->data,
		        d->data);
		return;
	}
	if (stat(d->data, &st) != 0 || !S_ISDIR(st.st_mode)) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "data", "%s is not a readable folder: %s.",
		        d->data,
		        S_ISDIR(st.st_mode) ? strerror(errno) : "it is another kind of file");
		return;
	}
	if (check_kind(d))
		check_owner(d, &st);
	check_space(d);
	check_log(d);
}

/* --- the catalogue's content --- */

static void report_work(struct tw_doctor *d, const struct tw_catalogue_facts *f, int64_t now)
{
	if (f->recent_failed * 5 > f->recent)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "decodes",
		        "%" PRIu64 " of the %" PRIu64
		        " uploads of the last day could not be decoded. The most frequent error: "
		        "%s.",
		        f->recent_failed, f->recent, f->recent_why);
	if (f->oldest_job_ms && now - f->oldest_job_ms > WAIT_LONG_S * INT64_C(1000))
		tw_doctor_report(d, TW_DOCTOR_WRONG, "queue",
		        "A trace has waited for %lld minutes to be decoded. Check that a server "
		        "is running; the page of the trace shows why it waits.",
		        (long long)(now - f->oldest_job_ms) / 60000);
	if (f->quarantined)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "quarantine",
		        "%" PRIu64 " uploads that crashed their decoders are in quarantine. "
		        "/api/v1/quarantine lists them; retry them after an upgrade.",
		        f->quarantined);
	if (f->unnamed_builds)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "mapping",
		        "Builds with method ids but no mapping: %" PRIu64
		        " (most traces: %s). The ids in these traces are not resolved until the "
		        "mapping is uploaded (tracewell push --mapping).",
		        f->unnamed_builds, f->unnamed_build);
	if (f->readable_builds)
		tw_doctor_report(d, TW_DOCTOR_GOOD, "names",
		        "Builds without a mapping whose traces contain method names: %" PRIu64
		        ". Only if these are obfuscated, upload R8's mapping.txt (tracewell push "
		        "--retrace).",
		        f->readable_builds);
}

static void report_setting(void *arg, const char *project, const char *key, const char *text)
{
	struct tw_err why;

	if (tw_setting_text_check(key, text, &why) == TW_BAD_REQUEST)
		tw_doctor_report(arg, TW_DOCTOR_WRONG, "setting",
		        "The setting %s of project %s is invalid, so the defaults apply: %s. Save "
		        "it again on its page or by the API.",
		        key, project, why.msg);
}

static void report_settings(struct tw_doctor *d, const char *path)
{
	struct tw_err err;

	if (tw_catalogue_read_settings(path, report_setting, d, &err) != TW_OK)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "setting",
		        "The settings of the projects cannot be read: %s.", err.msg);
}

static void report_facts(struct tw_doctor *d, const struct tw_catalogue_facts *f)
{
	const int64_t now = tw_unix_ms();

	if (f->schema < 1) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "schema",
		        "The catalogue has no schema number, so it is not a catalogue of "
		        "tracewell. Restore a backup.");
	} else if (f->schema > f->known_schema) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "schema",
		        "The catalogue has schema %d and this program supports up to %d: it was "
		        "written by a newer tracewell, or by one before the first release. Use "
		        "that version, or restore a backup.",
		        f->schema, f->known_schema);
	} else if (f->schema < f->known_schema) {
		tw_doctor_report(d, TW_DOCTOR_NOTE, "schema",
		        "The catalogue has schema %d and this program %d. The next start copies "
		        "the catalogue and then upgrades it.",
		        f->schema, f->known_schema);
	} else if (f->differs[0]) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "schema", "The server refuses to start: %s.",
		        f->differs);
	} else {
		tw_doctor_report(d, TW_DOCTOR_GOOD, "schema",
		        "The catalogue has the schema of this program.");
		if (f->newest_ms > now + AHEAD_S * INT64_C(1000))
			tw_doctor_report(d, TW_DOCTOR_WRONG, "clock_back",
			        "The newest trace is %lld minutes in the future: the clock went"
			        " back. Correct it (NTP), because retention and sessions depend"
			        " on it.",
			        (long long)(f->newest_ms - now) / 60000);
		report_work(d, f, now);
	}
}

void tw_doctor_catalogue(struct tw_doctor *d)
{
	struct tw_catalogue_facts facts;
	char path[PATH_BYTES];
	struct tw_err err = {0};

	if (!d->data)
		return;
	if (tw_data_catalogue_address(d->data, path, sizeof path, &err) == TW_OK && !path[0])
		path_of(d, "catalogue.db", path);
	if (path[0] == '\0' || (!tw_db_is_postgres(path) && access(path, F_OK) != 0))
		return; /* nothing was stored yet */
	if (tw_catalogue_read_facts(path, tw_unix_ms(), &facts, &err) == TW_OK) {
		report_facts(d, &facts);
		if (facts.schema == facts.known_schema && !facts.differs[0])
			report_settings(d, path);
	} else
		tw_doctor_report(d, TW_DOCTOR_WRONG, "catalogue",
		        "%s cannot be read: %s. `tracewell check --data %s` reports details. "
		        "Restore a backup.",
		        path, err.msg, d->data);
}
