/* http_tls.c - supplies the certificate for each handshake of libmicrohttpd's TLS (tls.h). */
#include "server/http/limit/http_tls.h"

#include <stdatomic.h>

#include "server/http/http_int.h"
#include "server/http/limit/tls.h"

/* Global, as the callback gets no argument of ours, and a process serves one certificate. */
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
