/*
 * proxy.h - trusted proxies, and the client addresses they report.
 *
 * Only configured proxies are trusted.  A chain of X-Forwarded-For is read from its end, where
 * trusted proxies append; entries before those may be forged by the client.
 * Thread: any.
 */
#ifndef TW_PROXY_H
#define TW_PROXY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_PROXIES_MAX = 32 };

struct tw_proxies {
	struct tw_proxy_range {
		uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
		unsigned bits;
	} ranges[TW_PROXIES_MAX];
	size_t n;
};

/* "10.0.0.0/8, 192.168.1.7, fd00::/8"; "" is none.  TW_BAD_REQUEST names the invalid part. */
enum tw_status tw_proxies_parse(
        const char *text, struct tw_proxies *ret, struct tw_err *err) TW_MUST_USE;
/* Whether an address (as text) is trusted; false for invalid addresses. */
bool tw_proxies_trust(const struct tw_proxies *p, const char *address);
/* The last address of a header's chain that is not a trusted proxy, in canonical spelling; the
 * first if all are trusted.  *ret_trusted reports the latter, so that the caller can continue with
 * an earlier header line.  False, with nothing written, if the chain ends in an invalid address. */
bool tw_proxies_client(const struct tw_proxies *p, const char *chain, char ret[INET6_ADDRSTRLEN],
        bool *ret_trusted);

#endif
