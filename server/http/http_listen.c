/* http_listen.c - the listening socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/base/log.h"
#include "server/http/http_int.h"
#include "server/http/limit/tls.h"

enum { BACKLOG = 511, OTHER_DESCRIPTORS = 1024 /* files, databases, decoders */ };

static const char *remedy_of(int failure)
{
	switch (failure) {
	case EADDRINUSE:
		return ": stop the program that uses it (`ss -ltnp` lists it), or set another port";
	case EADDRNOTAVAIL:
		return ": set an address of this machine, or 0.0.0.0 for all";
	case EACCES:
		return ": set a port of 1024 or more, or grant CAP_NET_BIND_SERVICE";
	default:
		return "";
	}
}

enum tw_status tw_http_listen(const char *where, int *ret_fd, struct tw_err *err)
{
	struct addrinfo hints = {
	        .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	char host[128];
	char service[8];
	uint16_t port;
	int on = 1;
	int fd = -1;
	bool ok = tw_listen_split(where, host, sizeof host, &port);

	(void)snprintf(service, sizeof service, "%u", ok ? port : 0u);
	if (!ok || getaddrinfo(host, service, &hints, &found) != 0)
		return tw_fail(err, TW_BAD_REQUEST, "%s is not an address to listen on", where);
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
	     bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
	if (!ok) {
		const int failure = errno;

		tw_fail(err, TW_IO, "cannot listen on %s: %s%s", where, strerror(failure),
		        remedy_of(failure));
		if (fd >= 0)
			(void)close(fd);
	}
	freeaddrinfo(found);
	if (ok)
		*ret_fd = fd;
	return ok ? TW_OK : TW_IO;
}

void tw_http_need_descriptors(unsigned connections)
{
	rlim_t want = (rlim_t)connections + OTHER_DESCRIPTORS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < want)
		tw_log(TW_LOG_WARN, "descriptor_limit_low",
		        tw_log_number("limit", (int64_t)limit.rlim_cur),
		        tw_log_number("wanted", (int64_t)want));
}

unsigned tw_http_port(const struct tw_http *h)
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof at;

	if (getsockname(h->listen_fd, (struct sockaddr *)&at, &len) != 0)
		return 0;
	if (at.ss_family == AF_INET6)
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) filled by getsockname */
		return ntohs(((struct sockaddr_in6 *)&at)->sin6_port);
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
	return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

enum tw_status tw_http_start(
        const struct tw_http_parts *parts, struct tw_http **ret, struct tw_err *err)
{
	return tw_http_start_at(parts->config->listen, false, parts, ret, err);
}

enum tw_status tw_http_start_metrics(
        const struct tw_http_parts *parts, struct tw_http **ret, struct tw_err *err)
{
	return tw_http_start_at(parts->config->metrics_listen, true, parts, ret, err);
}

/* --- the certificate of each handshake --- */

/* Global, because the callback has no user argument, and a process serves one certificate. */
static struct tw_tls *_Atomic serving;

static int give_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
        gnutls_pcert_st **ret_certs, unsigned *ret_n, gnutls_ocsp_data_st **ret_ocsp,
        unsigned *ret_n_ocsp, gnutls_privkey_t *ret_key, unsigned *ret_flags)
{
	(void)session, (void)info;
	*ret_ocsp = NULL;
	*ret_n_ocsp = 0;
	*ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
	return tw_tls_copy(serving, ret_certs, ret_n, ret_key) ? 0 : -1;
}

void tw_http_tls_options(struct tw_tls *t, struct MHD_OptionItem ret[TW_HTTP_TLS_OPTIONS])
{
	union {
		gnutls_certificate_retrieve_function3 *fn;
		void *p;
	} callback = {.fn = give_certificate};

	serving = t;
	ret[0] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
	if (!t)
		return;
	ret[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, callback.p};
	ret[1] = (struct MHD_OptionItem){
	        MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TW_TLS_PRIORITIES};
	ret[2] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}
