/*
 * jail.c - resource limits, then Landlock, then a system call filter.
 *
 * A call that is on no list fails with EPERM, so that a C library that attempts unneeded calls
 * continues.  A call that no decoder needs ends the process, and its parent reports that.  Landlock
 * (kernel 5.13) denies every path in addition if the kernel has it; the filter does not need it.
 */
#include "server/decode/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decoder/base/str.h"
#include "server/base/file/io.h"

enum { FD_LIMIT = 48, UNKNOWN_PID = 0x5EC0FFEE /* above the kernel's highest */ };

/* --- limits --- */

static bool cap(__rlimit_resource_t resource, uint64_t most)
{
	struct rlimit r = {most, most};

	return most == 0 || setrlimit(resource, &r) == 0;
}

/* The limits are a second apart: SIGXCPU identifies the cause, SIGKILL does not. */
static bool cap_cpu(uint64_t seconds)
{
	struct rlimit r = {seconds, seconds + 1};

	return seconds == 0 || setrlimit(RLIMIT_CPU, &r) == 0;
}

/* Address space in use: programs, libraries and what the parent had mapped before a fork. */
static uint64_t mapped_bytes(void)
{
	char text[64];
	uint64_t pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
	const char *end = n > 0 ? memchr(text, ' ', (size_t)n) : NULL;

	if (fd >= 0)
		(void)close(fd);
	if (!end || !tw_str_u64((struct tw_str){text, (size_t)(end - text)}, UINT32_MAX, &pages))
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool limit(const struct tw_jail *jail)
{
	const struct rlimit none = {0, 0};
	bool ok = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	          prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
	          prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;

	ok = ok && cap_cpu(jail->cpu_s);
	ok = ok && cap(RLIMIT_FSIZE, jail->file_bytes);
	ok = ok && cap(RLIMIT_NOFILE, FD_LIMIT);
	ok = ok && setrlimit(RLIMIT_CORE, &none) == 0;
	if (!TW_JAIL_SANITIZED)
		ok = ok &&
		     cap(RLIMIT_AS, jail->memory_bytes ? mapped_bytes() + jail->memory_bytes : 0);
	return ok;
}

/* --- Landlock --- */

/* Allows reading below the folder. */
static bool allow_folder(int ruleset, int folder)
{
	const struct landlock_path_beneath_attr below = {
	        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
	        .parent_fd = folder};

	return folder == 0 ||
	       syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0;
}

/* Handles every access right of Landlock's first version, and allows only reading below the
 * folder. */
static bool forbid_paths(int folder)
{
	const struct landlock_ruleset_attr all = {
	        .handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
	long fd = syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
	bool done;

	if (fd < 0) /* the kernel lacks Landlock, or it is disabled */
		return folder == 0 && (errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM);
	done = allow_folder((int)fd, folder) &&
	       syscall(SYS_landlock_restrict_self, (int)fd, 0) == 0;
	(void)close((int)fd);
	return done;
}

/* --- system calls --- */

static const int allowed[] = {SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(lseek),
        SCMP_SYS(fstat), SCMP_SYS(fstatfs), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64),
        SCMP_SYS(ftruncate), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(close),
        /* memory */
        SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
        /* its own threads */
        SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(sched_yield),
        SCMP_SYS(sched_getaffinity), SCMP_SYS(gettid), SCMP_SYS(getpid),
        /* time and random numbers */
        SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(nanosleep),
        SCMP_SYS(clock_nanosleep), SCMP_SYS(getrandom), SCMP_SYS(sysinfo),
        /* its exit */
        SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
        SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group)};

/* Calls that only a compromised process makes. */
static const int fatal_calls[] = {SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork),
        SCMP_SYS(vfork), SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind),
        SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
        SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
        SCMP_SYS(pidfd_getfd), SCMP_SYS(bpf), SCMP_SYS(io_uring_setup), SCMP_SYS(userfaultfd),
        SCMP_SYS(perf_event_open), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(mount),
        SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(chroot), SCMP_SYS(init_module),
        SCMP_SYS(finit_module), SCMP_SYS(kexec_load), SCMP_SYS(setuid), SCMP_SYS(setgid),
        SCMP_SYS(capset)};

static int add_all(scmp_filter_ctx f, uint32_t action, const int *calls, size_t n)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = seccomp_rule_add(f, action, calls[i], 0);
	return rc;
}

static int allow_if(scmp_filter_ctx f, int call, struct scmp_arg_cmp when)
{
	return seccomp_rule_add_array(f, SCMP_ACT_ALLOW, call, 1, &when);
}

static struct scmp_arg_cmp bits(unsigned arg, uint64_t mask, uint64_t value)
{
	return (struct scmp_arg_cmp){arg, SCMP_CMP_MASKED_EQ, mask, value};
}

static struct scmp_arg_cmp equals(unsigned arg, uint64_t value)
{
	return (struct scmp_arg_cmp){arg, SCMP_CMP_EQ, value, 0};
}

/* Calls that are harmless only with certain arguments. */
static int add_conditional(scmp_filter_ctx f, uint64_t self)
{
	int rc = allow_if(f, SCMP_SYS(mmap), bits(2, PROT_EXEC, 0));

	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(mprotect), bits(2, PROT_EXEC, 0));
	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(clone), bits(0, CLONE_THREAD, CLONE_THREAD));
	/* the flags of clone3 are in memory, which filters cannot read: libc falls back to clone */
	if (rc == 0)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* newer C libraries call fstat this way; with a path it reveals sizes and times, no
	 * content */
	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(newfstatat), bits(3, AT_EMPTY_PATH, AT_EMPTY_PATH));
	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(fcntl), equals(1, F_GETFL));
	if (rc == 0) /* reading limits only */
		rc = allow_if(f, SCMP_SYS(prlimit64), equals(2, 0));
	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(tgkill), equals(0, self));
	return rc;
}

/* Calls for reading files: none is opened for writing, created or truncated. */
static int add_reading(scmp_filter_ctx f)
{
	static const int calls[] = {SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat),
	        SCMP_SYS(statx), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
	        SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(getdents64),
	        SCMP_SYS(geteuid), SCMP_SYS(getuid)};
	const uint64_t writes = O_ACCMODE | O_CREAT | O_TRUNC;
	int rc = add_all(f, SCMP_ACT_ALLOW, calls, sizeof calls / sizeof *calls);

	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(openat), bits(2, writes, O_RDONLY));
	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(open), bits(1, writes, O_RDONLY));
	if (rc == 0)
		rc = allow_if(f, SCMP_SYS(fcntl), equals(1, F_SETFD));
	return rc == 0 ? allow_if(f, SCMP_SYS(fcntl), equals(1, F_GETFD)) : rc;
}

static scmp_filter_ctx new_filter(bool reading, uint64_t self, int *ret_rc)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = f ? 0 : -ENOMEM;

	if (rc == 0)
		rc = add_all(f, SCMP_ACT_ALLOW, allowed, sizeof allowed / sizeof *allowed);
	if (rc == 0)
		rc = add_all(f, SCMP_ACT_KILL_PROCESS, fatal_calls,
		        sizeof fatal_calls / sizeof *fatal_calls);
	if (rc == 0)
		rc = add_conditional(f, self);
	if (rc == 0 && reading)
		rc = add_reading(f);
	*ret_rc = rc;
	return f;
}

/* The filter of decoders, for a process that is not known yet: libseccomp takes longer to build it
 * than a small trace takes to decode. */
static struct sock_filter prepared[BPF_MAXINSNS];
static size_t n_prepared;

static ssize_t export_filter(void)
{
	int rc, fd = memfd_create("filter", MFD_CLOEXEC);
	scmp_filter_ctx f = new_filter(false, UNKNOWN_PID, &rc);
	ssize_t n = -1;

	if (rc == 0 && fd >= 0 && seccomp_export_bpf(f, fd) == 0)
		n = tw_pread_full(fd, prepared, sizeof prepared, 0);
	if (f)
		seccomp_release(f);
	if (fd >= 0)
		(void)close(fd);
	return n;
}

static bool compares_pid(const struct sock_filter *f)
{
	return f->code == (BPF_JMP | BPF_JEQ | BPF_K) && f->k == UNKNOWN_PID;
}

void tw_jail_prepare(void)
{
	const ssize_t n = export_filter();

	n_prepared = 0;
	for (ssize_t i = 0; i < n / (ssize_t)sizeof *prepared; i++)
		if (compares_pid(&prepared[i]))
			n_prepared = (size_t)n / sizeof *prepared;
}

static int load_prepared(void)
{
	const struct sock_fprog program = {(unsigned short)n_prepared, prepared};

	for (size_t i = 0; i < n_prepared; i++)
		if (compares_pid(&prepared[i]))
			prepared[i].k = (uint32_t)getpid();
	n_prepared = 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : -errno;
}

static int build_and_load(bool reading)
{
	int rc;
	scmp_filter_ctx f = new_filter(reading, (uint64_t)getpid(), &rc);

	if (rc == 0)
		rc = seccomp_load(f);
	if (f)
		seccomp_release(f);
	return rc;
}

static enum tw_status filter_calls(bool reading, struct tw_err *err)
{
	const int rc = n_prepared && !reading ? load_prepared() : build_and_load(reading);

	if (rc == 0)
		return TW_OK;
	return tw_fail(err, TW_IO,
	        "the decoder could not enter its sandbox: this kernel has no system call filter "
	        "(%d); "
	        "--worker-jail=false decodes without one",
	        -rc);
}

enum tw_status tw_jail_enter(const struct tw_jail *jail, struct tw_err *err)
{
	if (!limit(jail))
		return tw_fail(err, TW_BUG, "the decoder could not set its limits");
	if (!jail->filter || TW_JAIL_SANITIZED)
		return TW_OK;
	if (!forbid_paths(jail->folder))
		return jail->folder ? tw_fail(err, TW_IO,
		                              "clones are not read: this kernel has no Landlock, "
		                              "which restricts the reader to the clone; "
		                              "--worker-jail=false reads without it")
		                    : tw_fail(err, TW_BUG,
		                              "the decoder could not drop access to its paths");
	return filter_calls(jail->folder != 0, err);
}
