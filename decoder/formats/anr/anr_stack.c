/*
 * anr_stack.c - analyses one stack of an ANR report: the owners of its frames, the thread's
 * activity, and a hash independent of lines and addresses.
 */
#include "decoder/base/hash.h"
#include "decoder/formats/anr/anr_classify.h"
#include "decoder/formats/anr/anr_scan.h"

enum { HASHED_FRAMES = 5, SEARCHED_FRAMES = 8 };
#define QUEUED_NS UINT64_C(1000000000) /* shorter delays are not a cause */

/* Packages of the platform and of libraries that nearly every application contains. */
static const char *const platform[] = {"java.", "javax.", "android.", "androidx.", "com.android.",
        "dalvik.", "sun.", "jdk.", "libcore.", "kotlin.", "kotlinx.", "com.google.android.",
        "org.apache.harmony.", "org.json.", "org.xmlpull.", "com.github.anrwatchdog."};

/* Methods used for waiting, which do not show what a thread waits for. */
static const char *const plumbing[] = {"java.lang.Object.wait", "java.lang.Thread.sleep",
        "java.lang.VMThread.sleep", "java.lang.Thread.parkFor", "java.lang.Thread.join",
        "sun.misc.Unsafe.park", "jdk.internal.misc.Unsafe.park", "java.util.concurrent.",
        "libcore.io.", "android.system.Os.", "android.os.BinderProxy.transact",
        "java.lang.Daemons"};

static const char *const input_output[] = {"libcore.io.", "java.io.", "java.nio.", "sun.nio.",
        "java.net.", "android.system.Os.", "android.database.sqlite.", "java.util.zip.",
        "android.app.SharedPreferencesImpl", "com.android.okhttp."};

static bool begins(struct tw_str name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (tw_anr_eat(&name, list[i]))
			return true;
	return false;
}

#define BEGINS(name, list) begins(name, list, sizeof(list) / sizeof *(list))

static bool is_native_method(struct tw_str name)
{
	size_t dot = tw_anr_find_last(name, ".");
	struct tw_str method = tw_str_from(name, dot == name.len ? dot : dot + 1);

	return tw_anr_eat(&method, "native") && method.len && method.ptr[0] >= 'A' &&
	       method.ptr[0] <= 'Z';
}

static struct tw_str name_of(const struct tw_anr *m, uint32_t frame)
{
	return tw_anr_str(m, m->frames[frame].name);
}

/* R8's names for generated classes; with a mapping their frames are omitted. */
static bool is_compilers(struct tw_str name)
{
	return tw_str_find(name, TW_STR("$$ExternalSynthetic")) < name.len ||
	       tw_str_find(name, TW_STR("$$InternalSynthetic")) < name.len;
}

uint32_t tw_anr_app_frame(const struct tw_anr *m, const struct tw_anr_thread *t)
{
	for (uint32_t i = t->frame; i < t->frame + t->n_frames; i++)
		if (m->frames[i].kind == TW_ANR_JAVA && !BEGINS(name_of(m, i), platform) &&
		        !is_compilers(name_of(m, i)))
			return i;
	return TW_ANR_NO_INDEX;
}

static uint32_t top_java(const struct tw_anr *m, const struct tw_anr_thread *t)
{
	for (uint32_t i = t->frame; i < t->frame + t->n_frames; i++)
		if (m->frames[i].kind == TW_ANR_JAVA)
			return i;
	return TW_ANR_NO_INDEX;
}

/* C library wrappers of blocking system calls: a thread with one of them at the top of its native
 * stack waits.  Binder's frames are checked first, so an ioctl found here waits for a driver. */
static const struct {
	const char *name;
	enum tw_anr_end end;
} functions[] = {{"read", TW_ANR_IO}, {"pread", TW_ANR_IO}, {"pread64", TW_ANR_IO},
        {"readv", TW_ANR_IO}, {"write", TW_ANR_IO}, {"pwrite", TW_ANR_IO}, {"pwrite64", TW_ANR_IO},
        {"writev", TW_ANR_IO}, {"fsync", TW_ANR_IO}, {"fdatasync", TW_ANR_IO},
        {"openat", TW_ANR_IO}, {"rename", TW_ANR_IO}, {"unlink", TW_ANR_IO},
        {"recvfrom", TW_ANR_IO}, {"sendto", TW_ANR_IO}, {"connect", TW_ANR_IO},
        {"epoll_pwait", TW_ANR_WAITS}, {"epoll_wait", TW_ANR_WAITS}, {"poll", TW_ANR_WAITS},
        {"ppoll", TW_ANR_WAITS}, {"select", TW_ANR_WAITS}, {"pselect6", TW_ANR_WAITS},
        {"futex", TW_ANR_WAITS}, {"futex_wait_ex", TW_ANR_WAITS}, {"wait4", TW_ANR_WAITS},
        {"waitpid", TW_ANR_WAITS}, {"waitid", TW_ANR_WAITS}, {"ioctl", TW_ANR_WAITS},
        {"pthread_cond_wait", TW_ANR_WAITS}, {"pthread_cond_timedwait", TW_ANR_WAITS},
        {"pthread_mutex_lock", TW_ANR_WAITS}, {"pthread_join", TW_ANR_WAITS},
        {"sem_wait", TW_ANR_WAITS}, {"sem_timedwait", TW_ANR_WAITS}, {"nanosleep", TW_ANR_SLEEPS},
        {"clock_nanosleep", TW_ANR_SLEEPS}, {"usleep", TW_ANR_SLEEPS}, {"sleep", TW_ANR_SLEEPS}};

static enum tw_anr_end function_end(struct tw_str name, enum tw_anr_end other)
{
	while (tw_anr_eat(&name, "_"))
		continue;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (tw_str_eq(name, tw_str_of(functions[i].name)))
			return functions[i].end;
	return other;
}

/* With native frames only: the first that is not used for waiting. */
static uint32_t activity_native(const struct tw_anr *m, const struct tw_anr_thread *t)
{
	static const char *const how[] = {"android::IPCThreadState::", "android::BpBinder::",
	        "android::Looper::poll", "art::ConditionVariable::", "std::", "syscall"};

	for (uint32_t i = t->frame; i < t->frame + t->n_frames; i++) {
		struct tw_str name = name_of(m, i);

		if (m->frames[i].kind == TW_ANR_C && !BEGINS(name, how) &&
		        function_end(name, TW_ANR_RUNS) == TW_ANR_RUNS)
			return i;
	}
	return t->n_frames ? t->frame : TW_ANR_NO_INDEX;
}

uint32_t tw_anr_activity_frame(const struct tw_anr *m, const struct tw_anr_thread *t)
{
	uint32_t top = top_java(m, t);

	for (uint32_t i = t->frame; i < t->frame + t->n_frames; i++) {
		struct tw_str name = name_of(m, i);

		if (m->frames[i].kind == TW_ANR_JAVA && !BEGINS(name, plumbing) &&
		        !is_native_method(name))
			return i;
	}
	return top != TW_ANR_NO_INDEX ? top : activity_native(m, t);
}

/* --- states --- */

/* Keeps only lower-case letters: "TimedWaiting", "TIMED_WAITING" and "timed waiting" are equal. */
static size_t keep_letters(struct tw_str state, char *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < state.len && n + 1 < cap; i++) {
		char c = state.ptr[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c >= 'a' && c <= 'z')
			out[n++] = c;
	}
	out[n] = '\0';
	return n;
}

static const struct {
	const char *state;
	enum tw_anr_end end;
} states[] = {
        /* the first prefix of a state's letters is used */
        {"blocked", TW_ANR_LOCK_UNKNOWN},
        {"monitor", TW_ANR_LOCK_UNKNOWN},
        {"waitingforlockinflation", TW_ANR_LOCK_UNKNOWN},
        {"sleeping", TW_ANR_SLEEPS},
        {"waitingforgc", TW_ANR_GC},
        {"waitingperforminggc", TW_ANR_GC},
        {"waitingweakgc", TW_ANR_GC},
        {"timedwait", TW_ANR_WAITS},
        {"wait", TW_ANR_WAITS},
        {"native", TW_ANR_CALLS_NATIVE},
        {"vmwait", TW_ANR_CALLS_NATIVE},
};

static enum tw_anr_end state_end(struct tw_str state)
{
	char letters[40];
	struct tw_str s = {letters, keep_letters(state, letters, sizeof letters)};

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		struct tw_str rest = s;

		if (tw_anr_eat(&rest, states[i].state))
			return states[i].end;
	}
	return TW_ANR_RUNS;
}

bool tw_anr_blocked(struct tw_str state)
{
	return state_end(state) == TW_ANR_LOCK_UNKNOWN;
}

static bool has(struct tw_str name, const char *what)
{
	return tw_anr_find(name, what) < name.len;
}

/* Searches its topmost frames, down to an incoming call from another process; unnamed native frames
 * are skipped. */
static bool calls(const struct tw_anr *m, const struct tw_anr_thread *t, const char *what)
{
	uint32_t top = top_java(m, t);
	uint32_t end = t->frame + t->n_frames;
	uint32_t limit = (top == TW_ANR_NO_INDEX ? t->frame : top) + SEARCHED_FRAMES;

	for (uint32_t i = t->frame; i < end && i < limit; i++) {
		struct tw_str name = name_of(m, i);

		if (has(name, "Binder.execTransact"))
			return false;
		if (has(name, what))
			return true;
	}
	return false;
}

static bool waits_for_message(
        const struct tw_anr *m, const struct tw_anr_thread *t, struct tw_str top)
{
	if (top.len == 0)
		return calls(m, t, "Looper::pollOnce");
	return tw_anr_eat(&top, "android.os.MessageQueue.nativePollOnce") ||
	       tw_anr_eat(&top, "android.os.MessageQueue.next");
}

/* By the top method, if the state is not conclusive. */
static enum tw_anr_end by_method(enum tw_anr_end end, struct tw_str top)
{
	static const char *const sleeps[] = {"java.lang.Thread.sleep", "java.lang.VMThread.sleep"};
	struct tw_str rest = top;

	if (end == TW_ANR_SLEEPS || BEGINS(top, sleeps))
		return TW_ANR_SLEEPS;
	if (BEGINS(top, input_output))
		return TW_ANR_IO;
	if (has(top, "Unsafe.park") || tw_anr_eat(&rest, "java.lang.Object.wait"))
		return TW_ANR_WAITS;
	return end;
}

/* Purposes of kernel functions that a thread waits in: the first part contained in the name is
 * used. */
static const struct {
	const char *part;
	enum tw_anr_end end;
} kernel_functions[] = {{"binder", TW_ANR_BINDER}, {"ep_poll", TW_ANR_IDLE}, {"epoll", TW_ANR_IDLE},
        {"futex", TW_ANR_WAITS}, {"nanosleep", TW_ANR_SLEEPS}, {"ioctl", TW_ANR_WAITS},
        {"poll_schedule", TW_ANR_WAITS}, {"do_wait", TW_ANR_WAITS}, {"io_schedule", TW_ANR_IO},
        {"wait_on_page", TW_ANR_IO}, {"wait_on_buffer", TW_ANR_IO}, {"folio_wait", TW_ANR_IO},
        {"lock_page", TW_ANR_IO}, {"submit_bio", TW_ANR_IO}, {"blk_", TW_ANR_IO},
        {"jbd2_", TW_ANR_IO}, {"f2fs_", TW_ANR_IO}, {"ext4_", TW_ANR_IO}, {"fuse_", TW_ANR_IO},
        {"fsync", TW_ANR_IO}, {"sync_inodes", TW_ANR_IO}, {"vfs_", TW_ANR_IO}};

static enum tw_anr_end by_kernel(enum tw_anr_end end, struct tw_str where, bool is_main)
{
	for (size_t i = 0; i < sizeof kernel_functions / sizeof *kernel_functions; i++)
		if (has(where, kernel_functions[i].part))
			return kernel_functions[i].end == TW_ANR_IDLE && !is_main
			               ? TW_ANR_WAITS
			               : kernel_functions[i].end;
	return end;
}

/* By the top native function. */
static enum tw_anr_end by_function(
        const struct tw_anr *m, const struct tw_anr_thread *t, enum tw_anr_end end)
{
	uint32_t top = t->frame;

	while (top < t->frame + t->n_frames &&
	        (m->frames[top].kind == TW_ANR_IN_KERNEL ||
	                tw_str_eq(name_of(m, top), TW_STR("syscall"))))
		top++;
	if (top == t->frame + t->n_frames || m->frames[top].kind != TW_ANR_C)
		return end;
	return function_end(name_of(m, top), end);
}

/* A runnable thread that spent more of its life waiting for a CPU than running. */
static bool lacks_processor(const struct tw_anr_thread *t)
{
	return t->queue_ns > t->run_ns && t->queue_ns >= QUEUED_NS;
}

/* Uses the kernel's data, if its own frames and state are not conclusive. */
static enum tw_anr_end by_system(
        const struct tw_anr *m, const struct tw_anr_thread *t, enum tw_anr_end end)
{
	if (end == TW_ANR_CALLS_NATIVE || end == TW_ANR_RUNS)
		end = by_function(m, t, end);
	if (end == TW_ANR_CALLS_NATIVE)
		end = by_kernel(end, tw_anr_str(m, t->channel), false);
	return end == TW_ANR_RUNS && lacks_processor(t) ? TW_ANR_NO_CPU : end;
}

enum tw_anr_end tw_anr_doing(
        const struct tw_anr *m, const struct tw_anr_thread *t, bool wants_lock, bool is_main)
{
	enum tw_anr_end end = state_end(tw_anr_str(m, t->state));
	uint32_t top = top_java(m, t);
	struct tw_str name = top == TW_ANR_NO_INDEX ? TW_STR("") : name_of(m, top);

	if (wants_lock)
		return TW_ANR_LOCK_UNKNOWN;
	if (t->n_frames == 0)
		return by_kernel(TW_ANR_NO_STACK, tw_anr_str(m, t->channel), is_main);
	if (is_main && waits_for_message(m, t, name))
		return TW_ANR_IDLE;
	if (end == TW_ANR_LOCK_UNKNOWN || end == TW_ANR_GC)
		return end;
	if (calls(m, t, "BinderProxy.transact") || calls(m, t, "IPCThreadState::transact") ||
	        calls(m, t, "IPCThreadState::talkWithDriver"))
		return TW_ANR_BINDER;
	return by_system(m, t, by_method(end, name));
}

/* --- clusters --- */

/* Hashes names numbered by compilers ("lambda$onCreate$0", "Main$2", "$$Lambda$14",
 * "$r8$lambda$HASH", "libx.so+0x12") without the part that changes from build to build. */
static uint64_t add_name(uint64_t h, struct tw_str name)
{
	size_t end = tw_anr_find(name, "$r8$lambda$");
	bool numbered = false;

	if (end < name.len)
		name.len = end + 10;
	name.len = tw_anr_find(name, "+0x");
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (c == '$' || c == '.')
			numbered = c == '$';
		if (!(numbered && c >= '0' && c <= '9'))
			h = tw_fnv64(h, (struct tw_str){&c, 1});
	}
	return tw_fnv64(h, TW_STR("\n"));
}

uint64_t tw_anr_stack_hash(const struct tw_anr *m, const struct tw_anr_thread *t)
{
	uint32_t app = tw_anr_app_frame(m, t);
	uint64_t h = TW_FNV64_BASIS;
	unsigned n = 0;

	for (uint32_t i = t->frame; i < t->frame + t->n_frames && n < HASHED_FRAMES; i++) {
		struct tw_str name = name_of(m, i);

		if (app != TW_ANR_NO_INDEX &&
		        (m->frames[i].kind != TW_ANR_JAVA || BEGINS(name, platform)))
			continue;
		h = add_name(h, name);
		n++;
	}
	return h;
}
