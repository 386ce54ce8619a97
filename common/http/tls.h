#pragma once
#include <openssl/ssl.h>
#include "common/base/error.h"

/** A server's side of TLS 1.2 and later. Files that are replaced are taken by new connections
 *  (common/base/certificates.h). @thread any */
typedef struct fx_http_tls fx_http_tls;

/** The chain of `cert_file` and `key_file` in PEM. @own caller, fx_http_tls_free
 *  @err NOT_FOUND, INVALID_ARGUMENT naming the variable and the file */
FX_MUST bool fx_http_tls_open(const char *cert_file, const char *key_file, fx_http_tls **out,
                              fx_error *err);
/** For one connection; NULL: no memory. @own caller, SSL_free */
SSL *fx_http_tls_new(fx_http_tls *tls);
/** Connections that are open go on; NULL is fine. */
void fx_http_tls_free(fx_http_tls *tls);
FX_DEFINE_AUTO(fx_http_tls, fx_http_tls_free)
