#pragma once
#include <openssl/ssl.h>
#include "common/base/error.h"

/** A server's context: TLS 1.2 and later, the chain of `cert_file` and `key_file` in PEM.
 *  @own caller, SSL_CTX_free @err INVALID_ARGUMENT naming the file */
FX_MUST bool fx_tls_server(const char *cert_file, const char *key_file, SSL_CTX **out,
                           fx_error *err);
