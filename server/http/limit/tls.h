/*
 * tls.h - the server's certificate: read from two PEM files, and again when they change.
 *
 * Each handshake copies the current certificate, so a new one applies to the next connection while
 * open ones continue.  If the files do not match each other, the current certificate is kept and
 * the reason is logged.
 * Thread: any.
 */
#ifndef TW_TLS_H
#define TW_TLS_H

#include <gnutls/abstract.h>
#include <stdbool.h>

#include "decoder/base/err.h"

/* GnuTLS priority string: TLS 1.2 and later, forward secrecy, authenticated ciphers. */
#define TW_TLS_PRIORITIES                                                                          \
	"SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-CIPHER-ALL:+AES-256-GCM:"    \
	"+AES-128-GCM:+CHACHA20-POLY1305:%SERVER_PRECEDENCE"

struct tw_tls;

/* The chain (server's certificate first) and its private key, both PEM.  TW_BAD_REQUEST names the
 * invalid file, TW_IO one that cannot be read. */
enum tw_status tw_tls_open(const char *cert_path, const char *key_path, struct tw_tls **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_tls *tw_tls_close(struct tw_tls *t); /* accepts NULL; returns NULL */

/* Reads both files again if either has changed, or if `anyway`; *ret_new: a different certificate
 * is now in use.  On failure the previous one is kept. */
enum tw_status tw_tls_reload(
        struct tw_tls *t, bool anyway, bool *ret_new, struct tw_err *err) TW_MUST_USE;
/* Expiry of the certificate in use, Unix seconds. */
int64_t tw_tls_ends_s(struct tw_tls *t);

/* A copy for one handshake, which the library frees.  False: out of memory. */
bool tw_tls_copy(
        struct tw_tls *t, gnutls_pcert_st **ret_chain, unsigned *ret_n, gnutls_privkey_t *ret_key);

#endif
