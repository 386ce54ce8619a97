#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

enum { FX_SHA256_BYTES = 32, FX_SHA256_HEX = 65 };

/** SHA-256 by OpenSSL EVP. */
void fx_sha256(fx_span bytes, uint8_t out[FX_SHA256_BYTES]);
typedef struct fx_sha256_stream fx_sha256_stream;
/** NULL when out of memory. @own caller, fx_sha256_free */
fx_sha256_stream *fx_sha256_new(void);
void fx_sha256_add(fx_sha256_stream *stream, fx_span bytes);
/** Writes the digest and begins anew. */
void fx_sha256_end(fx_sha256_stream *stream, uint8_t out[FX_SHA256_BYTES]);
void fx_sha256_free(fx_sha256_stream *stream);
FX_DEFINE_AUTO(fx_sha256_stream, fx_sha256_free)

/** CRC-32C (Castagnoli, RFC 3720 appendix B.4), reflected; `crc` 0 to begin. */
uint32_t fx_crc32c(uint32_t crc, fx_span bytes);
/** Cryptographic random bytes by OpenSSL; aborts if the generator fails. */
void fx_random(void *out, size_t len);
/** Equality in time that depends on the length only. */
bool fx_equal_ct(const void *a, const void *b, size_t len);
/** Lower-case hex and its NUL; `out` holds 2*len+1. */
void fx_hex(fx_span bytes, char *out);
/** Reads exactly 2*len hex digits; `out` is untouched when it can't. */
bool fx_unhex(fx_span text, uint8_t *out, size_t len);
