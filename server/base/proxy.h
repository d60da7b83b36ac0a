/*
 * proxy.h - addresses of proxies that are believed, and what they say of their clients.
 *
 * Nobody is believed unless they are named.  A chain of X-Forwarded-For is read
 * from its end: what trusted proxies wrote is at the end, what a client made up
 * stands before it.
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
		uint8_t address[16]; /* of IPv4 as ::ffff:a.b.c.d */
		unsigned bits;
	} ranges[TW_PROXIES_MAX];
	size_t n;
};

/* "10.0.0.0/8, 192.168.1.7, fd00::/8"; "" is nobody.  TW_BAD_REQUEST names the part that is none.
 */
enum tw_status tw_proxies_parse(
        const char *text, struct tw_proxies *ret, struct tw_err *err) TW_MUST_USE;
/* An address as text; false for what is no address. */
bool tw_proxies_trust(const struct tw_proxies *p, const char *address);
/* The last address of a header's chain that is no trusted proxy, as the client wrote to it, spelled
 * in one way; the first when all are trusted.  *ret_trusted says that, so that an earlier line may
 * be looked at.  False, and nothing written, where the chain ends in something that is no address.
 */
bool tw_proxies_client(const struct tw_proxies *p, const char *chain, char ret[INET6_ADDRSTRLEN],
        bool *ret_trusted);

#endif
