#pragma once
/* TLS to Redis: private to common/queue/redis*.c. */
#include <openssl/ssl.h>
#include "common/queue/redis.h"

/** A client's side of TLS 1.2 and later; the server's certificate is verified. Files that are
 *  replaced are taken by the next connection (common/base/certificates.h). */
typedef struct fx_redis_trust fx_redis_trust;

/** @own caller, fx_redis__trust_free @err NOT_FOUND, INVALID_ARGUMENT naming the variable and the
 *  file */
FX_MUST bool fx_redis__trust_open(const struct fx_redis_tls *tls, fx_redis_trust **out,
                                  fx_error *err);
void fx_redis__trust_free(fx_redis_trust *trust);
FX_DEFINE_AUTO(fx_redis_trust, fx_redis__trust_free)
/** One connection's; its certificate must be `host`'s, a name or an address.
 *  @own caller, SSL_free @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_redis__tls_new(fx_redis_trust *trust, const char *host, SSL **out, fx_error *err);
