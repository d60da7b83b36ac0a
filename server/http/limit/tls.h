/*
 * tls.h - the server's certificate: read from two PEM files, and read again when they change.
 *
 * A handshake takes a copy of what is in use, so that a new certificate serves
 * the next connection while those that are open go on.  Files that do not fit
 * each other leave the one in use as it is, and the log says why.
 * Thread: any.
 */
#ifndef TW_TLS_H
#define TW_TLS_H

#include <gnutls/abstract.h>
#include <stdbool.h>

#include "decoder/base/err.h"

/* TLS 1.2 and later, forward secrecy, authenticated ciphers; GnuTLS' priority string. */
#define TW_TLS_PRIORITIES                                                                          \
	"SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-CIPHER-ALL:+AES-256-GCM:"    \
	"+AES-128-GCM:+CHACHA20-POLY1305:%SERVER_PRECEDENCE"

struct tw_tls;

/* The chain (server's certificate first) and its private key, both PEM.  TW_BAD_REQUEST names the
 * file that is wrong, TW_IO one that cannot be read. */
enum tw_status tw_tls_open(const char *cert_path, const char *key_path, struct tw_tls **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_tls *tw_tls_close(struct tw_tls *t); /* NULL is fine, returns NULL */

/* Reads both files again when either was replaced or written since, or when `anyway`; *ret_new
 * whether another certificate is in use from now on.  On failure the one before stays. */
enum tw_status tw_tls_reload(
        struct tw_tls *t, bool anyway, bool *ret_new, struct tw_err *err) TW_MUST_USE;
/* When the certificate in use ends, Unix seconds. */
int64_t tw_tls_ends_s(struct tw_tls *t);

/* A copy for one handshake, which the library frees. False: no memory. */
bool tw_tls_copy(
        struct tw_tls *t, gnutls_pcert_st **ret_chain, unsigned *ret_n, gnutls_privkey_t *ret_key);

#endif
