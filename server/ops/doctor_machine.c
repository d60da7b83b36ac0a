/* Checks of the machine: limits of this process, kernel features that decoders need, clock, port,
 * TLS files. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/config.h"
#include "server/base/file/io.h"
#include "server/decode/jail.h"
#include "server/ops/doctor.h"

enum { FILES_NEEDED = 1024 + 256 /* --connections and the rest */, YEAR_2025_S = 1735689600 };
#define DECODE_BYTES ((uint64_t)1536 << 20) /* --worker-memory */

static void check_limits(struct tw_doctor *d)
{
	struct rlimit files = {0};
	struct rlimit memory = {0};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	(void)getrlimit(RLIMIT_AS, &memory);
	if (files.rlim_cur < FILES_NEEDED)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "open_files",
		        "This process may open %llu files; the default --connections needs %d. "
		        "Raise the limit (ulimit -n, LimitNOFILE= in systemd) or lower "
		        "--connections.",
		        (unsigned long long)files.rlim_cur, FILES_NEEDED);
	else
		tw_doctor_report(d, TW_DOCTOR_GOOD, "open_files",
		        "The process may open %llu files.", (unsigned long long)files.rlim_cur);
	if (memory.rlim_cur < DECODE_BYTES)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "memory_limit",
		        "Processes may use %llu MiB of address space; a decoder may need %llu. "
		        "Raise the limit (ulimit -v, LimitAS= in systemd) or lower "
		        "--worker-memory.",
		        (unsigned long long)memory.rlim_cur >> 20,
		        (unsigned long long)DECODE_BYTES >> 20);
}

/* The filter cannot be removed from a process, so it is tested in a child process. */
static bool jail_holds(void)
{
	const struct tw_jail jail = {.filter = true};
	int status = 1;
	pid_t child = fork();

	if (child == 0)
		_exit(tw_jail_enter(&jail, NULL) == TW_OK ? 0 : 1);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_kernel(struct tw_doctor *d)
{
	if (jail_holds())
		tw_doctor_report(
		        d, TW_DOCTOR_GOOD, "seccomp", "Decoders can be sandboxed (seccomp).");
	else
		tw_doctor_report(d, TW_DOCTOR_WRONG, "seccomp",
		        "Decoders cannot be sandboxed: this kernel or container has no system "
		        "call filter (seccomp), so every upload will fail. Allow seccomp, or set "
		        "--worker-jail=false if you trust all uploads.");
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 1)
		return;
	if (d->repositories && *d->repositories)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "landlock",
		        "This kernel has no Landlock (needs 5.13 and landlock in lsm=), so clones "
		        "below --repositories are not read: methods have a link, but no lines and "
		        "owners. Enable it, or set --worker-jail=false if you trust the "
		        "repositories.");
	else
		tw_doctor_report(d, TW_DOCTOR_NOTE, "landlock",
		        "This kernel has no Landlock (needs 5.13 and landlock in lsm=). Decoders "
		        "are sandboxed by the system call filter alone.");
}

static void check_clock(struct tw_doctor *d)
{
	if (tw_unix_ms() / 1000 < YEAR_2025_S)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "clock",
		        "The clock is before 2025, so times of traces, sessions and retention "
		        "would be wrong. Set it (NTP).");
}

/* Whether a tracewell server answers /healthz there. */
static bool is_ours(const struct addrinfo *at)
{
	static const char request[] =
	        "GET /healthz HTTP/1.1\r\nHost: doctor\r\nConnection: close\r\n\r\n";
	const struct timeval wait = {.tv_sec = 2};
	char response[2048] = "";
	size_t n = 0;
	ssize_t got = 1;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
	if (connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
	        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0)
		while (got > 0 && n < sizeof response - 1) {
			got = recv(fd, response + n, sizeof response - 1 - n, 0);
			n += got > 0 ? (size_t)got : 0;
		}
	if (fd >= 0)
		(void)close(fd);
	response[n] = '\0';
	return strstr(response, "X-Request-Id: ") && strstr(response, "{\"status\":\"ok\"}");
}

static void check_bind(struct tw_doctor *d, const struct addrinfo *at)
{
	int on = 1;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int why = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 1) != 0)
		why = errno;
	if (fd >= 0)
		(void)close(fd);
	if (why == 0)
		tw_doctor_report(d, TW_DOCTOR_GOOD, "listen", "%s is free.", d->listen);
	else if (why == EADDRINUSE && is_ours(at))
		tw_doctor_report(d, TW_DOCTOR_GOOD, "listen",
		        "A tracewell server is listening on %s.", d->listen);
	else
		tw_doctor_report(d, TW_DOCTOR_WRONG, "listen",
		        "Cannot listen on %s: %s. `ss -ltnp` shows the process that does; or "
		        "choose another --listen.",
		        d->listen, strerror(why));
}

static void check_port(struct tw_doctor *d)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *found = NULL;
	char host[128];
	char service[8];
	uint16_t port = 0;

	if (!d->listen)
		return;
	if (!tw_listen_split(d->listen, host, sizeof host, &port) ||
	        snprintf(service, sizeof service, "%u", port) < 1 ||
	        getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, service, &hints,
	                &found) != 0) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "listen",
		        "%s is not an address. Examples: 127.0.0.1:8080, [::1]:8080.", d->listen);
		return;
	}
	check_bind(d, found);
	freeaddrinfo(found);
}

void tw_doctor_machine(struct tw_doctor *d)
{
	check_limits(d);
	check_kernel(d);
	check_clock(d);
	check_port(d);
}

/* True if the file is readable and begins with this PEM header. */
static bool check_pem(struct tw_doctor *d, const char *path, const char *begins)
{
	char head[256];
	const bool is_read = tw_file_text(path, head, sizeof head);

	if (is_read && strstr(head, begins))
		return true;
	tw_doctor_report(d, TW_DOCTOR_WRONG, "tls", "%s cannot be used: %s.", path,
	        is_read ? "it is not a PEM file of this kind" : strerror(errno));
	return false;
}

void tw_doctor_tls(struct tw_doctor *d)
{
	struct stat st;
	bool good = true;

	if (!d->tls_cert && !d->tls_key)
		return;
	if (!d->tls_cert || !d->tls_key) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "tls",
		        "--tls-cert and --tls-key must be set together.");
		return;
	}
	good = check_pem(d, d->tls_cert, "BEGIN CERTIFICATE");
	good = check_pem(d, d->tls_key, "PRIVATE KEY") && good;
	if (good && stat(d->tls_key, &st) == 0 && (st.st_mode & 077)) {
		good = false;
		tw_doctor_report(d, TW_DOCTOR_WRONG, "tls",
		        "Other users can read the private key %s. Run chmod 600 on it.",
		        d->tls_key);
	}
	if (good)
		tw_doctor_report(d, TW_DOCTOR_GOOD, "tls", "Certificate and key are readable.");
}
