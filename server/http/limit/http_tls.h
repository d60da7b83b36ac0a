/* http_tls.h - libmicrohttpd options for TLS. */
#ifndef TW_HTTP_TLS_H
#define TW_HTTP_TLS_H

#include <microhttpd.h>

struct tw_tls;

enum { TW_HTTP_TLS_OPTIONS = 3 };

/* Options for MHD_OPTION_ARRAY: none if t is NULL. */
void tw_http_tls_options(struct tw_tls *t, struct MHD_OptionItem ret[TW_HTTP_TLS_OPTIONS]);

#endif
