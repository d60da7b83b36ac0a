/* Checks of the folder of clones: each entry is a readable clone that was fetched lately. Contents
 * are not read. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/ops/doctor.h"
#include "server/source/source_query.h"

enum { PATH_BYTES = 1500, CLONES_MAX = 500, OLD_DAYS = 7, DAY_S = 86400 };

struct round {
	struct tw_doctor *d;
	unsigned clones;
	time_t now;
};

static bool is_there(int clone, const char *file)
{
	struct stat st;

	return fstatat(clone, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       faccessat(clone, file, R_OK, 0) == 0;
}

/* The time of the last fetch; 0 if unknown. */
static time_t last_fetch(int clone)
{
	static const char *const files[] = {
	        "FETCH_HEAD", ".git/FETCH_HEAD", "packed-refs", ".git/packed-refs"};
	time_t newest = 0;
	struct stat st;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (fstatat(clone, files[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		        st.st_mtim.tv_sec > newest)
			newest = st.st_mtim.tv_sec;
	return newest;
}

static void check_clone(struct round *r, int clone, const char *project, const char *name)
{
	bool bare = is_there(clone, "HEAD") && is_there(clone, "objects");
	bool plain = is_there(clone, ".git/HEAD") && is_there(clone, ".git/objects");
	time_t at = last_fetch(clone);

	if (!bare && !plain)
		tw_doctor_report(r->d, TW_DOCTOR_WRONG, "clone",
		        "%s/%s/%s is not a clone that this user can read. Run git clone --mirror "
		        "there as the user of the server.",
		        r->d->repositories, project, name);
	else if (is_there(clone, "objects/info/alternates") ||
	         is_there(clone, ".git/objects/info/alternates"))
		tw_doctor_report(r->d, TW_DOCTOR_WRONG, "clone",
		        "%s/%s/%s uses objects of another folder, which the server does not read. "
		        "Run git repack -a -d in it and remove objects/info/alternates.",
		        r->d->repositories, project, name);
	else if (is_there(clone, "shallow") || is_there(clone, ".git/shallow"))
		tw_doctor_report(r->d, TW_DOCTOR_WRONG, "clone",
		        "%s/%s/%s is a shallow clone, so changes of methods cannot be found. Run "
		        "git fetch --unshallow in it.",
		        r->d->repositories, project, name);
	else if (at && r->now - at > (time_t)OLD_DAYS * DAY_S)
		tw_doctor_report(r->d, TW_DOCTOR_NOTE, "clone_age",
		        "%s/%s/%s was fetched %lld days ago. Run git fetch in it from cron.",
		        r->d->repositories, project, name, (long long)((r->now - at) / DAY_S));
	r->clones++;
}

static void open_clone(struct round *r, const char *project, const char *name)
{
	struct tw_err err;
	int clone = -1;

	if (tw_sources_open(r->d->repositories, project, name, &clone, &err) != TW_OK) {
		tw_doctor_report(r->d, TW_DOCTOR_WRONG, "clone", "%s/%s/%s: %s.",
		        r->d->repositories, project, name, err.msg);
		return;
	}
	check_clone(r, clone, project, name);
	(void)close(clone);
}

static void each_clone(struct round *r, const char *project, DIR *in)
{
	const struct dirent *e;

	while (r->clones < CLONES_MAX && (e = readdir(in)))
		if (e->d_name[0] != '.' && e->d_type != DT_REG)
			open_clone(r, project, e->d_name);
}

static void each_project(struct round *r, DIR *all)
{
	char path[PATH_BYTES];
	const struct dirent *e;

	while (r->clones < CLONES_MAX && (e = readdir(all))) {
		DIR *in;

		if (e->d_name[0] == '.' || !tw_sources_is_folder(e->d_name))
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", r->d->repositories, e->d_name);
		in = opendir(path);
		if (!in)
			continue;
		each_clone(r, e->d_name, in);
		(void)closedir(in);
	}
}

void tw_doctor_repositories(struct tw_doctor *d)
{
	struct round r = {.d = d, .now = time(NULL)};
	unsigned wrong = d->wrong;
	DIR *all;

	if (!d->repositories || !*d->repositories)
		return;
	all = opendir(d->repositories);
	if (!all) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "repositories",
		        "%s is not a readable folder. Create it, or correct --repositories.",
		        d->repositories);
		return;
	}
	each_project(&r, all);
	(void)closedir(all);
	if (r.clones == 0 && d->wrong == wrong)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "repositories",
		        "%s contains no clone. Clones belong in PROJECT/NAME below it.",
		        d->repositories);
	else if (d->wrong == wrong)
		tw_doctor_report(d, TW_DOCTOR_GOOD, "repositories", "%u clones in %s can be read.",
		        r.clones, d->repositories);
}
