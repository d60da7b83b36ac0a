/*
 * cli_open.c - `tracewell open`: starts a private server for local files and shows its page.
 *
 * The server is this binary on a free loopback port, with a temporary folder. Files are sent as by
 * `tracewell push`. Only holders of the printed link can read them.
 */
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/secret.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_annotation.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"

enum {
	START_MS = 60000,
	MAX_OUTPUT = 16 << 10,
	MAX_FILES = 256,
	URL_BYTES = 96,
	LINK_HOURS = 24,
	OPEN_FOLDERS = 16
};

struct opened {
	const char *mapping, *retrace, *threads;
	uint64_t port; /* 0: any free port */
	bool no_browser, json;
	char folder[256];
	char url[URL_BYTES];
	char key[TW_SECRET_BYTES]; /* passed to children in TRACEWELL_KEY: arguments show in the
	                              list of processes */
	char project[TW_ID_BYTES];
	char trace[TW_ID_BYTES]; /* the last trace that was sent */
	unsigned sent;
	pid_t server;
	int output; /* the server's log */
};

/* --- child processes --- */

/* In the child: ends with its parent, ignores Ctrl-C, and writes `from` to `out`. */
static void exec_child(const char *const argv[], int from, int out, pid_t parent)
{
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setpgid(0, 0);
	tw_close_on_exec_from(STDERR_FILENO + 1);
	if (getppid() == parent && dup2(out, from) >= 0)
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* *ret_out reads its standard output or error (`from`). */
static enum tw_status start(
        const char *const argv[], int from, pid_t *ret_pid, int *ret_out, struct tw_err *err)
{
	const pid_t self = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return tw_fail_errno(err, TW_IO, "no pipe");
	*ret_pid = fork();
	if (*ret_pid == 0)
		exec_child(argv, from, fds[1], self);
	(void)close(fds[1]);
	if (*ret_pid < 0) {
		(void)close(fds[0]);
		return tw_fail_errno(err, TW_IO, "no process");
	}
	*ret_out = fds[0];
	return TW_OK;
}

/* Reads until the output contains `until`; false at its end or after the time limit. */
static bool read_until(int fd, char *output, size_t size, const char *until, int ms)
{
	const int64_t end = tw_monotonic_ms() + ms;
	size_t n = 0;

	output[0] = '\0';
	while (n + 1 < size) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = end - tw_monotonic_ms();
		const char *at = strstr(output, until);
		ssize_t got;

		if (at && strchr(at, '\n'))
			return true;
		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return false;
		got = tw_read_some(fd, output + n, size - 1 - n);
		if (got <= 0)
			return false;
		n += (size_t)got;
		output[n] = '\0';
	}
	return false;
}

/* --- the server --- */

/* Browsers send cookies to all ports of a host, so the server gets its own loopback address:
 * signing in here does not sign out of another server. With --port it is 127.0.0.1, for port
 * forwarding. */
static void choose_address(const struct opened *o, char out[32])
{
	const unsigned pid = (unsigned)getpid();

	if (o->port == 0)
		(void)snprintf(out, 32, "127.84.%u.%u:0", pid / 254 % 256, 1 + pid % 254);
	else
		(void)snprintf(out, 32, "127.0.0.1:%" PRIu64, o->port);
}

static enum tw_status start_server(struct opened *o, struct tw_err *err)
{
	static const char sign[] = "event=listening url=";
	char listen[32], output[MAX_OUTPUT];
	const char *url;
	const char *const argv[] = {"/proc/self/exe", "serve", "--data", o->folder, "--listen",
	        listen, "--min-free", "0", "--log-level", "info", "--log-format", "logfmt", NULL};
	enum tw_status st;

	choose_address(o, listen);
	st = start(argv, STDERR_FILENO, &o->server, &o->output, err);
	if (st != TW_OK)
		return st;
	if (!read_until(o->output, output, sizeof output, sign, START_MS))
		return tw_fail(err, TW_IO, "the server did not start: %.300s", output);
	url = strstr(output, sign) + strlen(sign);
	(void)snprintf(o->url, sizeof o->url, "%.*s", (int)strcspn(url, " \n"), url);
	return TW_OK;
}

/* Reads the server's log, so that the server never blocks on it. */
static void *drain(void *arg)
{
	const struct opened *o = arg;
	char piece[4096];

	while (tw_read_some(o->output, piece, sizeof piece) > 0)
		continue;
	return NULL;
}

static enum tw_status make_keys(struct opened *o, char link[TW_SECRET_BYTES], struct tw_err *err)
{
	struct tw_catalogue *c = NULL;
	char id[TW_ID_BYTES];
	uint8_t hash[32];
	bool is_new;
	enum tw_status st = tw_cli_data_make(o->folder, &c, err);

	if (st == TW_OK)
		st = tw_catalogue_project(c, "default", o->project, &is_new, err);
	if (st == TW_OK) {
		tw_secret_new(tw_key_prefix(TW_SCOPE_WRITE), o->key);
		tw_secret_hash(o->key, hash);
		st = tw_catalogue_key_add(c,
		        &(struct tw_key_new){.project_id = o->project,
		                .scope = TW_SCOPE_WRITE,
		                .name = "open",
		                .hash = hash},
		        id, err);
	}
	if (st == TW_OK) {
		tw_secret_new("twl_", link);
		tw_secret_hash(link, hash);
		st = tw_catalogue_link_add(
		        c, hash, tw_unix_ms() + LINK_HOURS * INT64_C(3600000), err);
	}
	(void)tw_catalogue_close(c);
	return st;
}

/* --- the files --- */

/* Titles the trace with the file's name. */
static enum tw_status title_trace(struct opened *o, const char *id, const char *file)
{
	const char *slash = strrchr(file, '/');
	const struct tw_trace_edit edit = {.title = slash ? slash + 1 : file};
	struct tw_catalogue *c = NULL;
	enum tw_status st = tw_cli_data_make(o->folder, &c, NULL);

	(void)snprintf(o->trace, sizeof o->trace, "%s", id);
	o->sent++;
	if (st == TW_OK)
		st = tw_catalogue_trace_edit(c, o->project, id, &edit, NULL);
	(void)tw_catalogue_close(c);
	return st;
}

/* Reads the output of `tracewell push`, one line of JSON per file; keeps the last trace. */
static void read_sent(struct opened *o, FILE *in)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, in) > 0) {
		json_t *sent = json_loads(line, 0, NULL);
		const char *id = json_string_value(json_object_get(sent, "id"));
		const char *file = json_string_value(json_object_get(sent, "file"));

		/* symbols have the id of a build */
		if (id && file && tw_ulid_valid(id) && title_trace(o, id, file) != TW_OK)
			(void)fprintf(stderr, "%s: it has no title\n", file);
		json_decref(sent);
	}
	free(line);
}

static enum tw_status push(struct opened *o, int n, char **files, struct tw_err *err)
{
	const char *argv[MAX_FILES + 24] = {"/proc/self/exe", "push", "--server", o->url,
	        "--build-id", "local", "--wait", "--json"};
	size_t at = 8;
	FILE *in;
	int status = 0;
	pid_t pid = 0;
	int out = -1;
	enum tw_status st;
	const struct {
		const char *flag, *value;
	} more[] = {
	        {"--mapping", o->mapping}, {"--retrace", o->retrace}, {"--threads", o->threads}};

	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (more[i].value) {
			argv[at++] = more[i].flag;
			argv[at++] = more[i].value;
		}
	argv[at++] = "--";
	for (int i = 0; i < n; i++)
		argv[at++] = files[i];
	if (setenv("TRACEWELL_KEY", o->key, 1) != 0)
		return tw_oom(err);
	st = start(argv, STDOUT_FILENO, &pid, &out, err);
	if (st != TW_OK)
		return st;
	in = fdopen(out, "r");
	if (in)
		read_sent(o, in);
	(void)(in ? fclose(in) : close(out));
	(void)waitpid(pid, &status, 0);
	/* push has printed its errors; the files that were sent can be shown */
	return o->trace[0] ? TW_OK : tw_fail(err, TW_NOT_FOUND, "nothing to show");
}

/* The URL has a secret, and all users of the machine can read the arguments of programs: so the
 * browser opens a file that only this user can read. */
static bool write_redirect(const struct opened *o, const char *address, char *ret, size_t cap)
{
	FILE *out;
	bool ok;
	int fd;

	(void)snprintf(ret, cap, "%s/open.html", o->folder);
	fd = open(ret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!out) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	ok = fprintf(out,
	             "<!DOCTYPE html><meta charset=utf-8><title>tracewell</title>\n"
	             "<meta http-equiv=refresh content=\"0;url=%s\"><a href=\"%s\">tracewell</a>\n",
	             address, address) > 0;
	return fclose(out) == 0 && ok;
}

static void show_in_browser(const struct opened *o, const char *address)
{
	char page[sizeof o->folder + sizeof "/open.html"];
	const char *const argv[] = {"xdg-open", page, NULL};
	struct tw_err err;
	pid_t pid = 0;
	int out = -1;

	if ((!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) ||
	        !write_redirect(o, address, page, sizeof page) ||
	        start(argv, STDOUT_FILENO, &pid, &out, &err) != TW_OK)
		return;
	(void)close(out);
}

/* --- the end --- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	(void)remove(path);
	return 0;
}

/* Waits for Ctrl-C, or the end of the server. */
static void wait_for_end(struct opened *o, const sigset_t *set)
{
	int number = 0;

	while (number == 0 || number == SIGCHLD) {
		(void)sigwait(set, &number);
		/* the browser may have ended as well */
		for (pid_t ended; (ended = waitpid(-1, NULL, WNOHANG)) > 0;)
			if (ended == o->server)
				o->server = 0;
		if (o->server == 0)
			return;
	}
}

static enum tw_status print_link(const struct opened *o, const char *address, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j;

	if (!o->json) {
		(void)printf("%s\n", address);
		(void)fflush(stdout);
		return TW_OK;
	}
	j = tw_cli_line(&line);
	tw_json_key_text(j, "url", address);
	tw_json_key_text(j, "trace", o->trace);
	return tw_cli_line_end(&line, err);
}

static enum tw_status wait_and_stop(
        struct opened *o, const sigset_t *set, const char *link, struct tw_err *err)
{
	pthread_t reader;
	char address[URL_BYTES + TW_SECRET_BYTES + 64];
	enum tw_status st;

	if (pthread_create(&reader, NULL, drain, o) != 0)
		return tw_fail(err, TW_NOMEM, "no thread");
	(void)snprintf(address, sizeof address, "%s/signin?next=/traces%s%s#%s", o->url,
	        o->sent > 1 ? "" : "/", o->sent > 1 ? "" : o->trace, link);
	st = print_link(o, address, err);
	(void)fputs(
	        "The link works once. Ctrl-C ends the server and removes its copies.\n", stderr);
	if (!o->no_browser)
		show_in_browser(o, address);
	wait_for_end(o, set);
	if (o->server == 0)
		return tw_fail(err, TW_IO, "the server exited unexpectedly");
	(void)kill(o->server, SIGTERM);
	(void)pthread_join(reader, NULL);
	return st;
}

static enum tw_status show(
        struct opened *o, int n, char **files, const sigset_t *set, struct tw_err *err)
{
	char link[TW_SECRET_BYTES];
	enum tw_status st = make_keys(o, link, err);

	if (st == TW_OK)
		st = start_server(o, err);
	if (st == TW_OK)
		st = push(o, n, files, err);
	if (st == TW_OK)
		st = wait_and_stop(o, set, link, err);
	if (o->server > 0) {
		(void)kill(o->server, SIGTERM);
		(void)waitpid(o->server, NULL, 0);
	}
	(void)nftw(o->folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
	return st;
}

/* Checks the files before anything is started. */
static enum tw_status check_files(
        const struct opened *o, int n, char *const *files, struct tw_err *err)
{
	const char *others[] = {o->mapping, o->retrace, o->threads};
	const int all = n + (int)(sizeof others / sizeof *others);

	for (int i = 0; i < all; i++) {
		const char *file = i < n ? files[i] : others[i - n];

		if (file && access(file, R_OK) != 0)
			return tw_fail_errno(err, TW_NOT_FOUND, "%.200s", file);
	}
	return TW_OK;
}

static int open_files(struct opened *o, int n, char **files)
{
	const char *tmp = getenv("TMPDIR");
	struct tw_err err;
	sigset_t set;

	if (check_files(o, n, files, &err) != TW_OK)
		return tw_cli_failed("open", &err);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)snprintf(o->folder, sizeof o->folder, "%.200s/tracewell-open-XXXXXX",
	        tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(o->folder)) {
		(void)tw_fail_errno(&err, TW_IO, "no folder %s", o->folder);
		return tw_cli_failed("open", &err);
	}
	return show(o, n, files, &set, &err) == TW_OK ? TW_EXIT_OK : tw_cli_failed("open", &err);
}

int tw_cli_open(int argc, char **argv)
{
	struct opened o = {.port = 0};
	const struct tw_flag flags[] = {
	        {"mapping", .value = &o.mapping},
	        {"retrace", .value = &o.retrace},
	        {"threads", .value = &o.threads},
	        {"port", .number = &o.port, .most = 65535},
	        {"no-browser", .on = &o.no_browser},
	        {"json", .on = &o.json},
	};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, "FILE..."};
	int n = tw_cli_flags(&usage, argc, argv);

	if (n < 0)
		return TW_EXIT_USAGE;
	if (n > MAX_FILES)
		return tw_cli_misused(argv[0], "at most %d files can be opened", MAX_FILES);
	return open_files(&o, n, argv + 1);
}
