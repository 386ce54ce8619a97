#pragma once
#include <openssl/ssl.h>
#include "common/base/certificates.h"

/** Chain and key of `pems` become the context's own, its authorities those it trusts; what is not
 *  there is left as it is. @err INVALID_ARGUMENT: this TLS library wants others */
FX_MUST bool fx_pems_use(const struct fx_pems *pems, SSL_CTX *ctx, fx_error *err);
