/* An attacker who has taken over a decoder: each forbidden act, attempted from a separate process
 * in the jail, must fail or end that process; and decoding must still work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/decode/jail.h"
#include "tests/unit/unit.h"

enum { MIB = 1 << 20, CANNOT_ENTER = 90, DENIED = 0, DONE = 1 };

static const struct tw_jail jail = {
        .memory_bytes = 256u * MIB, .cpu_s = 2, .file_bytes = MIB, .filter = true};

static char victim[] = "/tmp/tracewell-jail-XXXXXX"; /* a file outside */
static int kept_fd = -1;                             /* open when the jail closes */

/* --- acts: true when it could be done --- */

static bool reads_a_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0;
}
static bool reads_by_openat2(void)
{
	uint64_t how[3] = {O_RDONLY, 0, 0};

	return syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", how, sizeof how) >= 0;
}
static bool makes_a_file(void)
{
	return open("/tmp/tracewell-jail-made", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
}
static bool writes_a_file(void)
{
	return open(victim, O_WRONLY | O_CLOEXEC) >= 0;
}
static bool truncates_a_file(void)
{
	return truncate(victim, 0) == 0;
}
static bool removes_a_file(void)
{
	return unlink(victim) == 0;
}
static bool renames_a_file(void)
{
	return rename(victim, "/tmp/tracewell-jail-renamed") == 0;
}
static bool makes_a_folder(void)
{
	return mkdir("/tmp/tracewell-jail-folder", 0700) == 0;
}
static bool makes_a_link(void)
{
	return symlink("/etc/passwd", "/tmp/tracewell-jail-link") == 0;
}
static bool changes_a_mode(void)
{
	return chmod(victim, 0777) == 0 || fchmod(kept_fd, 0777) == 0;
}
static bool changes_folder(void)
{
	return chdir("/") == 0;
}
static bool makes_memory_file(void)
{
	return syscall(SYS_memfd_create, "x", MFD_CLOEXEC) >= 0;
}
static bool runs_a_program(void)
{
	char *argv[] = {victim, NULL};

	return execve("/bin/true", argv, NULL) == 0;
}
static bool forks(void)
{
	return fork() >= 0;
}
static bool clones_a_process(void)
{
	return syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L) >= 0;
}
static bool clones3_a_process(void)
{
	uint64_t args[11] = {0};

	return syscall(SYS_clone3, args, sizeof args) >= 0;
}
static bool opens_a_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}
static bool opens_a_local_socket(void)
{
	int pair[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
}
static bool kills_its_parent(void)
{
	return kill(getppid(), 0) == 0;
}
static bool signals_its_parent(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0) == 0;
}
static bool traces_its_parent(void)
{
	return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0;
}
static bool reads_its_parent(void)
{
	long pid = getppid();

	return syscall(SYS_process_vm_readv, pid, NULL, 0L, NULL, 0L, 0L) >= 0;
}
static bool writes_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	               0) != MAP_FAILED;
}
static bool makes_data_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0;
}
static bool raises_a_limit(void)
{
	const struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};

	return setrlimit(RLIMIT_CPU, &more) == 0 || setrlimit(RLIMIT_FSIZE, &more) == 0;
}
static bool leaves_its_namespace(void)
{
	return unshare(CLONE_NEWUSER) == 0;
}
static bool sets_up_a_ring(void)
{
	return syscall(SYS_io_uring_setup, 8, NULL) >= 0 || errno == EFAULT;
}
static bool loads_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno == E2BIG || errno == EFAULT;
}
static bool mounts(void)
{
	return syscall(SYS_mount, "none", "/mnt", "tmpfs", 0L, NULL) == 0;
}
static bool becomes_another(void)
{
	return setuid(1) == 0;
}
static bool grows_a_file_too_far(void)
{
	char byte = 1;

	(void)signal(SIGXFSZ, SIG_IGN);
	return pwrite(kept_fd, &byte, 1, (off_t)MIB + 1) == 1;
}
static bool takes_more_memory(void)
{
	const size_t much = (size_t)512 * MIB;
	void *p = mmap(NULL, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && munmap(p, much) == 0;
}
static bool runs_for_ever(void)
{
	volatile uint64_t n = 0;

	for (;;)
		n++;
	return true;
}

#define ACT(name)                                                                                  \
	{                                                                                          \
#name, name                                                                        \
	}
static const struct {
	const char *name;
	bool (*act)(void);
} acts[] = {ACT(reads_a_file), ACT(reads_by_openat2), ACT(makes_a_file), ACT(writes_a_file),
        ACT(truncates_a_file), ACT(removes_a_file), ACT(renames_a_file), ACT(makes_a_folder),
        ACT(makes_a_link), ACT(changes_a_mode), ACT(changes_folder), ACT(makes_memory_file),
        ACT(runs_a_program), ACT(forks), ACT(clones_a_process), ACT(clones3_a_process),
        ACT(opens_a_socket), ACT(opens_a_local_socket), ACT(kills_its_parent),
        ACT(signals_its_parent), ACT(traces_its_parent), ACT(reads_its_parent), ACT(writes_code),
        ACT(makes_data_code), ACT(raises_a_limit), ACT(leaves_its_namespace), ACT(sets_up_a_ring),
        ACT(loads_bpf), ACT(mounts), ACT(becomes_another), ACT(grows_a_file_too_far),
        ACT(takes_more_memory), ACT(runs_for_ever)};

/* --- what decoding needs --- */

static void *fill(void *arg)
{
	memset(arg, 7, MIB);
	return arg;
}

static bool cannot_decode(void)
{
	char *memory = malloc(MIB);
	char back[2] = "";
	struct stat st;
	struct statfs disk;
	pthread_t thread;
	bool ok = memory && pthread_create(&thread, NULL, fill, memory) == 0 &&
	          pthread_join(thread, NULL) == 0 && memory[MIB - 1] == 7;

	ok = ok && pwrite(kept_fd, "ab", 2, 0) == 2 && pread(kept_fd, back, 2, 0) == 2;
	ok = ok && back[1] == 'b' && fstat(kept_fd, &st) == 0 && st.st_size == 2;
	ok = ok && fstatfs(kept_fd, &disk) == 0;
	ok = ok && ftruncate(kept_fd, 1) == 0 && fsync(kept_fd) == 0;
	free(memory);
	return !ok;
}

/* Exit code of `act` in a separate process in the jail; 0 also if it was killed for it. */
static int tried(bool (*act)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (tw_jail_enter(&jail, NULL) != TW_OK)
			_exit(CANNOT_ENTER);
		_exit(act() ? DONE : DENIED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		int sig = WTERMSIG(status);

		assert_true(sig == SIGSYS || sig == SIGXCPU || sig == SIGKILL);
		return DENIED;
	}
	return WEXITSTATUS(status);
}

static void forbidden_acts_fail(void)
{
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		int got = tried(acts[i].act);

		if (got != DENIED)
			fail_msg("%s: %s", acts[i].name,
			        got == DONE ? "could be done" : "the jail could not be entered");
	}
	assert_int_equal(access(victim, F_OK), 0);
}

/* Sanitizers make calls that the jail forbids, and reserve more memory than it allows. */
static void test_forbidden_acts_fail(void **state)
{
	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	forbidden_acts_fail();
}

static void test_decoding_goes_on(void **state)
{
	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	assert_int_equal(tried(cannot_decode), 0);
}

static bool stays_after_abort(void)
{
	abort();
}

/* The filter of a copied process is built before it is known which process that is. */
static void test_prepared_filter(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	tw_jail_prepare();
	forbidden_acts_fail();
	assert_int_equal(tried(cannot_decode), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(tw_jail_enter(&jail, NULL) == TW_OK ? stays_after_abort() : CANNOT_ENTER);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT); /* it may signal itself */
}

/* --- who may read one folder --- */

static char folder[] = "/tmp/tracewell-jail-folder-XXXXXX";
enum { FOLDER_FD = 40 };

static bool reads_below(void)
{
	char byte;
	int fd = open("inside", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, &byte, 1) == 1;
}
static bool reads_by_a_link(void)
{
	return open("out", O_RDONLY | O_CLOEXEC) >= 0;
}
static bool reads_above(void)
{
	return open("..", O_RDONLY | O_CLOEXEC) >= 0;
}
static bool writes_below(void)
{
	return open("inside", O_WRONLY | O_CLOEXEC) >= 0 || open("inside", O_RDWR | O_CLOEXEC) >= 0;
}
static bool makes_below(void)
{
	return open("made", O_RDONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
}
static bool cuts_below(void)
{
	return open("inside", O_RDONLY | O_TRUNC | O_CLOEXEC) >= 0;
}
static bool removes_below(void)
{
	return unlink("inside") == 0;
}

/* As `tried`, in the folder, which alone may be read. */
static int tried_reading(bool (*act)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct tw_jail reading = jail;
		int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		reading.folder = FOLDER_FD;
		if (fd < 0 || dup2(fd, FOLDER_FD) != FOLDER_FD || fchdir(fd) != 0 ||
		        tw_jail_enter(&reading, NULL) != TW_OK)
			_exit(CANNOT_ENTER);
		_exit(act() ? DONE : DENIED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : DENIED;
}

static void test_one_folder_may_be_read(void **state)
{
	static bool (*const denied[])(void) = {reads_a_file, reads_by_a_link, reads_above,
	        writes_below, makes_below, cuts_below, removes_below, reads_by_openat2,
	        makes_a_file, runs_a_program, forks, opens_a_socket, opens_a_local_socket,
	        kills_its_parent, makes_a_link, changes_folder, writes_code, takes_more_memory};

	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	assert_int_equal(tried_reading(reads_below), DONE);
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
		if (tried_reading(denied[i]) != DENIED)
			fail_msg("act %zu could be done", i);
	assert_int_equal(tried_reading(reads_below), DONE);
	assert_int_equal(tried(reads_below), DENIED);
}

static int make_folder(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return -1;
	fd = open("inside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 || write(fd, "x", 1) != 1 || close(fd) != 0 ||
	       symlink("/etc/passwd", "out") != 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return unlink("inside") != 0 || unlink("out") != 0 || chdir("/") != 0 || rmdir(folder) != 0;
}

static bool can_map(size_t mib)
{
	return mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

/* Memory mapped on entry, such as libraries, is not counted. */
static void test_memory_is_counted_from_entry(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct tw_jail small = jail;

		small.memory_bytes = 64u * MIB;
		if (!can_map(256) || tw_jail_enter(&small, NULL) != TW_OK)
			_exit(CANNOT_ENTER);
		_exit(can_map(48) && !can_map(48) ? DONE : DENIED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DONE);
}

/* Without the jail the harmless acts succeed, so the test can detect a missing jail. */
static void test_acts_work_outside(void **state)
{
	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	assert_true(reads_a_file());
	assert_true(makes_memory_file());
	assert_true(kills_its_parent());
	assert_true(takes_more_memory());
}

static int setup(void **state)
{
	int fd = mkstemp(victim);

	(void)state;
	kept_fd = memfd_create("kept", MFD_CLOEXEC);
	return fd < 0 || close(fd) != 0 || kept_fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)close(kept_fd);
	return unlink(victim);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acts_work_outside),
        cmocka_unit_test(test_forbidden_acts_fail),
        cmocka_unit_test(test_decoding_goes_on),
        cmocka_unit_test(test_prepared_filter),
        cmocka_unit_test(test_memory_is_counted_from_entry),
        cmocka_unit_test_setup_teardown(test_one_folder_may_be_read, make_folder, remove_folder),
};

UNIT_TESTS_WITH("jail", tests, setup, teardown)
