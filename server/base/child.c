#include "server/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decoder/base/buf.h"
#include "decoder/decoder.h"
#include "server/base/child_internal.h"
#include "server/base/child_template.h"
#include "server/base/clock.h"
#include "server/base/config.h"
#include "server/base/file/io.h"
#include "server/base/log.h"
#include "server/base/text/json.h"

enum {
	ANSWER_MAX_BYTES = 1 << 20,
	COMPLAINTS_SHOWN = 2000,
	HIGH_FD = 100,
	ENV_MAX = 8,
	BACKGROUND_NICE = 10
};

enum tw_status tw_child_fail_errno(const char *doing, struct tw_err *err)
{
	char text[96];
	int why = errno;

	return tw_fail(err, why == EMFILE || why == ENFILE || why == EAGAIN ? TW_BUSY : TW_IO,
	        "%s: %s", doing, strerror_r(why, text, sizeof text));
}

/* Compilers of mappings and decoders of large uploads have a lower priority than requests and
 * decoders of small uploads: together with one of these on a processor, they get about a tenth of
 * the time.  The priority is below that of the calling thread, which may itself be lower. */
void tw_child_to_background(pid_t child)
{
	int own = getpriority(PRIO_PROCESS, 0); /* cannot fail: -1 is a priority */

	(void)setpriority(PRIO_PROCESS, (id_t)child, own + BACKGROUND_NICE); /* at most 19 */
}

/* The task as a file positioned at its start; -1 on failure. */
static int task_fd(const json_t *task)
{
	char *text = tw_json_dumps(task, JSON_COMPACT);
	int fd = text ? memfd_create("task", MFD_CLOEXEC) : -1;
	size_t len = text ? strlen(text) : 0;

	if (fd >= 0 && (!tw_write_all(fd, text, len) || lseek(fd, 0, SEEK_SET) != 0)) {
		(void)close(fd);
		fd = -1;
	}
	free(text);
	return fd;
}

/* Descriptors for the child, duplicated to numbers above those they will get. */
struct wires {
	int fds[TW_CHILD_FDS];
	size_t n;
};

static bool wire(struct wires *w, int fd)
{
	int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD) : -1;

	if (high >= 0)
		w->fds[w->n++] = high;
	return high >= 0;
}

#if TW_TEST_FAULTS
/* Only variables for a sanitizer or a test's fault library. */
static void child_environment(char *env[ENV_MAX + 1])
{
	static const char *const kept[] = {"ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=",
	        "LD_PRELOAD=", "TRACEWELL_CRASH_AT=", "TRACEWELL_WORKER_FAULT=",
	        "TRACEWELL_PREFLIGHT_FAULT=", "TRACEWELL_SOURCE_FAULT="};
	size_t n = 0;

	for (char **e = environ; *e && n < ENV_MAX; e++)
		for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
			if (strncmp(*e, kept[i], strlen(kept[i])) == 0 && n < ENV_MAX)
				env[n++] = *e;
	env[n] = NULL;
}
#else
/* The child's environment is empty. */
static void child_environment(char *env[ENV_MAX + 1])
{
	env[0] = NULL;
}
#endif

int tw_child_exec(const int *fds, size_t n, unsigned tasks, pid_t *ret_pid)
{
	char name[] = "tracewell";
	char command[] = "worker";
	char text[24];
	char *argv[] = {name, command, tasks ? text : NULL, NULL};
	char *env[ENV_MAX + 1];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	sigset_t defaults;
	int rc;

	(void)snprintf(text, sizeof text, "template=%u", tasks);
	child_environment(env);
	(void)sigemptyset(&none);
	(void)sigfillset(&defaults);
	(void)posix_spawn_file_actions_init(&actions);
	for (size_t i = 0; i < n; i++)
		(void)posix_spawn_file_actions_adddup2(&actions, fds[i], (int)i);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34) /* otherwise only the close-on-exec flags set in   \
                                                 * main.c protect */
	(void)posix_spawn_file_actions_addclosefrom_np(&actions, (int)n);
#endif
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &defaults);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attr, argv, env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static enum tw_status begin(
        const struct wires *w, const struct tw_child_task *task, pid_t *ret_pid, struct tw_err *err)
{
	int rc;

	if (task->from)
		return tw_child_template_copy(
		        task->from, w->fds, w->n, task->background, ret_pid, err);
	rc = tw_child_exec(w->fds, w->n, 0, ret_pid);
	if (rc == 0 && task->background) /* from its exec on, which is half of a small job */
		tw_child_to_background(*ret_pid);
	if (rc == 0)
		return TW_OK;
	errno = rc;
	return tw_child_fail_errno("starting a decoder", err);
}

static enum tw_status start_wired(
        struct tw_child *c, struct wires *w, const struct tw_child_task *task, struct tw_err *err)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int answer[2] = {-1, -1};
	bool ready = wire(w, null) && pipe2(answer, O_CLOEXEC) == 0 && wire(w, answer[1]) &&
	             wire(w, c->complaints_fd) && wire(w, c->answer_fd) && wire(w, task->output) &&
	             wire(w, task->second >= 0 ? task->second : null);
	enum tw_status st;

	(void)close(c->answer_fd); /* the task, which the child has by now */
	c->answer_fd = answer[0];
	for (size_t i = 0; ready && i < task->n_inputs; i++)
		ready = wire(w, task->inputs[i]);
	st = ready ? begin(w, task, &c->pid, err) : tw_child_fail_errno("starting a decoder", err);
	if (null >= 0)
		(void)close(null);
	if (answer[1] >= 0)
		(void)close(answer[1]);
	return st;
}

static void close_all(struct tw_child *c)
{
	int *fds[] = {&c->answer_fd, &c->complaints_fd, &c->pidfd};

	for (size_t i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

enum tw_status tw_child_start(
        struct tw_child *c, const struct tw_child_task *task, struct tw_err *err)
{
	struct wires w = {.n = 0};
	enum tw_status st;

	if (task->n_inputs > TW_CHILD_INPUTS)
		return tw_fail(err, TW_BUG, "too many inputs");
	*c = (struct tw_child){.pid = -1, .pidfd = -1};
	c->answer_fd = task_fd(task->task);
	c->complaints_fd = memfd_create("complaints", MFD_CLOEXEC);
	if (c->answer_fd < 0 || c->complaints_fd < 0)
		st = tw_child_fail_errno("starting a decoder", err);
	else
		st = start_wired(c, &w, task, err);
	while (w.n)
		(void)close(w.fds[--w.n]);
	if (st != TW_OK) {
		close_all(c);
		return st;
	}
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd < 0) {
		st = tw_child_fail_errno("watching a decoder", err);
		tw_child_kill(c);
		(void)waitpid(c->pid, NULL, 0);
		close_all(c);
		return st;
	}
	c->extend_ms = (int64_t)task->wall_s * 1000;
	c->extensions = task->background ? TW_CHILD_WALLS - 1 : 0;
	c->deadline_ms = tw_monotonic_ms() + c->extend_ms;
	return TW_OK;
}

/* Processor time of all its threads. */
static int64_t cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

bool tw_child_is_overdue(struct tw_child *c, int64_t now_ms)
{
	int64_t used;

	if (now_ms <= c->deadline_ms)
		return false;
	used = c->extensions ? cpu_ns(c->pid) : 0;
	if (used <= c->cpu_ns)
		return true;
	c->cpu_ns = used;
	c->extensions--;
	c->deadline_ms += c->extend_ms;
	return false;
}

void tw_child_kill(struct tw_child *c)
{
	(void)kill(c->pid, SIGKILL);
}

void tw_child_wait(struct tw_child *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};

	for (;;) {
		int64_t left = c->deadline_ms - tw_monotonic_ms();
		int rc = c->killed ? poll(&p, 1, -1)
		                   : poll(&p, 1,
		                             left < 0           ? 0
		                             : left > INT32_MAX ? INT32_MAX
		                                                : (int)left);

		if (rc > 0)
			return;
		if (rc == 0 && !c->killed && tw_child_is_overdue(c, tw_monotonic_ms())) {
			c->killed = true;
			tw_child_kill(c);
		}
	}
}

static enum tw_status read_answer(int fd, struct tw_buf *out)
{
	uint8_t piece[4096];
	ssize_t n;

	while ((n = tw_read_some(fd, piece, sizeof piece)) != 0) {
		if (n < 0 || tw_buf_add(out, piece, (size_t)n) != TW_OK)
			return TW_IO;
	}
	return TW_OK;
}

static void log_complaints(int fd)
{
	char text[COMPLAINTS_SHOWN + 1];
	ssize_t n = tw_pread_full(fd, text, COMPLAINTS_SHOWN, 0);

	if (n <= 0)
		return;
	text[n] = '\0';
	tw_log(TW_LOG_WARN, "decoder_stderr", tw_log_text("text", text));
}

const char *tw_death_name(enum tw_death d)
{
	static const char *const names[] = {
	        "", "crash", "loop", "memory", "forbidden", "no_answer", "bug"};

	return names[d];
}

/* A SIGKILL that we did not send is from the kernel's OOM killer. */
static enum tw_death death_of(const struct tw_child *c, int sig)
{
	if (c->killed || sig == SIGXCPU)
		return TW_DEATH_LOOP;
	if (sig == SIGKILL)
		return TW_DEATH_MEMORY;
	if (sig == SIGSYS)
		return TW_DEATH_FORBIDDEN;
	if (sig == SIGXFSZ) /* a size limit, which is reported as an error */
		return TW_DEATH_NONE;
	return sig ? TW_DEATH_CRASH : TW_DEATH_NO_ANSWER;
}

static enum tw_status explain(const struct tw_child *c, int status, struct tw_err *err)
{
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (c->killed)
		return tw_fail(err, TW_DEADLINE, "decoding took too long and was stopped");
	if (sig == SIGXCPU)
		return tw_fail(err, TW_DEADLINE,
		        "decoding used more CPU time than it may and was stopped (signal %d)", sig);
	if (sig == SIGKILL)
		return tw_fail(err, TW_DEADLINE,
		        "decoding used more CPU time or memory than it may and was stopped (signal "
		        "%d)",
		        sig);
	if (sig == SIGSYS)
		return tw_fail(
		        err, TW_BUG, "the decoder used a forbidden system call and was stopped");
	if (sig == SIGXFSZ)
		return tw_fail(
		        err, TW_TOO_LARGE, "the decoded trace is larger than a trace file may be");
	if (sig)
		return tw_fail(err, TW_BUG, "the decoder crashed (signal %d)", sig);
	return tw_fail(err, TW_BUG, "the decoder ended without a result (exit %d)",
	        WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* The answer's first line is the format, written as soon as it was recognised; the rest is JSON. */
static struct tw_str split_answer(const struct tw_buf *answer, char ret_format[24])
{
	struct tw_str rest = {(const char *)answer->data, answer->len};
	const struct tw_format *format = NULL;

	if (rest.len && rest.ptr[0] != '{')
		format = tw_format_by_name(tw_str_split(&rest, '\n'));
	if (format)
		(void)snprintf(ret_format, 24, "%s", format->name);
	return rest;
}

/* The last line; `whole`: the last complete line. */
static struct tw_str last_line(struct tw_str s, bool whole)
{
	size_t end = s.len, begin;

	while (whole && end && s.ptr[end - 1] != '\n')
		end--;
	begin = end - (whole && end);
	while (begin && s.ptr[begin - 1] != '\n')
		begin--;
	return (struct tw_str){s.ptr + begin, end - begin};
}

/* Waits for the end of the child and reads all that it wrote. */
static enum tw_status reap(struct tw_child *c, struct tw_buf *ret_answer, int *ret_status)
{
	enum tw_status st;

	tw_buf_init(ret_answer, ANSWER_MAX_BYTES);
	while (waitpid(c->pid, ret_status, 0) < 0 && errno == EINTR)
		continue;
	st = read_answer(c->answer_fd, ret_answer);
	log_complaints(c->complaints_fd);
	return st;
}

static bool exited_well(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static enum tw_status died(
        const struct tw_child *c, int status, struct tw_child_end *io, struct tw_err *err)
{
	io->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	io->death = death_of(c, io->signal);
	return explain(c, status, err);
}

enum tw_status tw_child_collect(
        struct tw_child *c, json_t **ret, struct tw_child_end *ret_end, struct tw_err *err)
{
	struct tw_child_end end = {0};
	struct tw_buf answer;
	struct tw_str rest, early = {0};
	json_t *json = NULL;
	int status = 0;
	enum tw_status st = reap(c, &answer, &status);

	rest = split_answer(&answer, end.format);
	if (c->early)
		early = last_line(rest, true);
	if (c->early)
		rest = last_line(rest, false);
	if (st == TW_OK && exited_well(status))
		json = json_loadb(rest.ptr, rest.len, 0, NULL);
	if (json_is_object(json)) {
		*ret = json;
		st = TW_OK;
	} else {
		json_decref(json);
		st = died(c, status, &end, err);
		if (c->early)
			*c->early = json_loadb(early.ptr, early.len, 0, NULL);
	}
	*ret_end = end;
	close_all(c);
	tw_buf_done(&answer);
	return st;
}

static bool add_object(struct tw_str text, json_t **io, size_t *io_n)
{
	json_t *o = json_loadb(text.ptr, text.len, 0, NULL);
	const bool is_object = json_is_object(o);

	if (is_object)
		io[(*io_n)++] = o;
	else
		json_decref(o);
	return is_object;
}

static bool add_answer(struct tw_str line, struct tw_child_end *end, json_t **io, size_t *io_n)
{
	if (!add_object(line, io, io_n))
		return false;
	(void)json_object_set_new(io[*io_n - 1], "format", json_string(end->format));
	end->format[0] = '\0';
	return true;
}

enum tw_status tw_child_collect_lines(struct tw_child *c, json_t **ret, size_t cap, size_t *ret_n,
        struct tw_child_end *ret_end, struct tw_err *err)
{
	struct tw_child_end end = {0};
	struct tw_buf answer;
	struct tw_str rest;
	int status = 0;
	enum tw_status st = reap(c, &answer, &status);
	bool whole = st == TW_OK;

	*ret_n = 0;
	rest = tw_buf_str(&answer);
	while (whole && *ret_n < cap && rest.len && memchr(rest.ptr, '\n', rest.len)) {
		const struct tw_str line = tw_str_split(&rest, '\n');
		const struct tw_format *format = tw_format_by_name(line);

		if (format)
			(void)snprintf(end.format, sizeof end.format, "%s", format->name);
		else
			whole = add_answer(line, &end, ret, ret_n);
	}
	if (whole && exited_well(status) && *ret_n == 0) /* not even locked in: the reason */
		whole = add_object(rest, ret, ret_n);
	st = whole && exited_well(status) ? TW_OK : died(c, status, &end, err);
	*ret_end = end;
	close_all(c);
	tw_buf_done(&answer);
	return st;
}

json_t *tw_child_limits(const struct tw_config *c)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "memory_bytes",
	        (json_int_t)c->worker_memory_bytes, "cpu_s", (json_int_t)c->worker_cpu_s,
	        "file_bytes", (json_int_t)8 << 30, "decoded_bytes",
	        (json_int_t)c->limits.max_decoded_bytes, "ratio", (json_int_t)c->limits.max_ratio,
	        "slices", (json_int_t)c->limits.max_slices, "depth",
	        (json_int_t)c->limits.max_depth, "threads", (json_int_t)c->limits.max_threads,
	        "name_bytes", (json_int_t)c->limits.max_name_bytes, "jail", c->worker_jail);
}

void tw_child_error(const json_t *answer, struct tw_err *ret)
{
	const json_t *e = json_object_get(answer, "error");
	const char *word = json_string_value(json_object_get(e, "status"));
	const char *message = json_string_value(json_object_get(e, "message"));
	json_int_t offset = json_integer_value(json_object_get(e, "offset"));

	(void)tw_fail_at(ret, word ? tw_status_of_name(word) : TW_BUG,
	        offset < 0 ? TW_NO_OFFSET : (uint64_t)offset, "%s", message ? message : "");
}
