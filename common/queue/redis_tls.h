#pragma once
/* TLS to Redis: private to common/queue/redis*.c. */
#include <openssl/ssl.h>
#include "common/queue/redis.h"

/** A client's context: TLS 1.2 and later, the server's certificate is verified.
 *  @own caller, SSL_CTX_free @err INVALID_ARGUMENT naming the file */
FX_MUST bool fx_redis__tls_open(const struct fx_redis_tls *tls, SSL_CTX **out, fx_error *err);
/** One connection's; its certificate must be `host`'s, a name or an address.
 *  @own caller, SSL_free @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_redis__tls_new(SSL_CTX *ctx, const char *host, SSL **out, fx_error *err);
