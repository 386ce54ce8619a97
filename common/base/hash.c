#include "common/base/hash.h"
#include "common/base/heap.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdatomic.h>

enum { RANDOM_BLOCK = 512, RANDOM_SMALL = 64 };

struct fx_sha256_stream {
    EVP_MD_CTX *context;
};

void fx_sha256(fx_span bytes, uint8_t out[FX_SHA256_BYTES]) {
    FX_ASSERT(EVP_Digest(bytes.at, bytes.len, out, NULL, EVP_sha256(), NULL) == 1);
}

fx_sha256_stream *fx_sha256_new(void) {
    fx_auto(fx_sha256_stream) stream = fx_alloc(1, sizeof *stream);
    if (!stream) return NULL;
    stream->context = EVP_MD_CTX_new();
    if (!stream->context) return NULL;
    FX_ASSERT(EVP_DigestInit_ex(stream->context, EVP_sha256(), NULL) == 1);
    return fx_take(stream);
}

void fx_sha256_add(fx_sha256_stream *stream, fx_span bytes) {
    FX_ASSERT(EVP_DigestUpdate(stream->context, bytes.at, bytes.len) == 1);
}

void fx_sha256_end(fx_sha256_stream *stream, uint8_t out[FX_SHA256_BYTES]) {
    FX_ASSERT(EVP_DigestFinal_ex(stream->context, out, NULL) == 1);
    FX_ASSERT(EVP_DigestInit_ex(stream->context, EVP_sha256(), NULL) == 1);
}

void fx_sha256_free(fx_sha256_stream *stream) {
    if (!stream) return;
    EVP_MD_CTX_free(stream->context);
    free(stream);
}

uint32_t fx_crc32c(uint32_t crc, fx_span bytes) {
    crc = ~crc;
    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= bytes.at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78U & (0U - (crc & 1U)));
    }
    return ~crc;
}

/* OpenSSL takes a microsecond however few bytes it is asked for: small demands share a block, each
 * thread its own, a child process another. What was given is wiped. */
struct block {
    uint8_t bytes[RANDOM_BLOCK];
    size_t left;
    unsigned forks;
};

static atomic_uint forks;

static void on_child(void) {
    forks++;
}

static void forks_watch(void) {
    FX_ASSERT(pthread_atfork(NULL, NULL, on_child) == 0);
}

static void block_fill(struct block *block) {
    FX_ASSERT(RAND_bytes(block->bytes, sizeof block->bytes) == 1);
    block->left = sizeof block->bytes;
    block->forks = forks;
}

void fx_random(void *out, size_t len) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local struct block block;
    if (len > RANDOM_SMALL) {
        FX_ASSERT(RAND_bytes(out, (int)len) == 1);
        return;
    }
    (void)pthread_once(&once, forks_watch);
    if (block.left < len || block.forks != forks) block_fill(&block);
    block.left -= len;
    memcpy(out, block.bytes + block.left, len);
    explicit_bzero(block.bytes + block.left, len);
}

bool fx_equal_ct(const void *a, const void *b, size_t len) {
    return CRYPTO_memcmp(a, b, len) == 0;
}

void fx_hex(fx_span bytes, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.len; i++) {
        out[2 * i] = digits[bytes.at[i] >> 4];
        out[2 * i + 1] = digits[bytes.at[i] & 15];
    }
    out[2 * bytes.len] = '\0';
}

static int digit_of(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool fx_unhex(fx_span text, uint8_t *out, size_t len) {
    if (len > SIZE_MAX / 2 || text.len != 2 * len) return false;
    for (size_t i = 0; i < text.len; i++)
        if (digit_of(text.at[i]) < 0) return false;
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(16 * digit_of(text.at[2 * i]) + digit_of(text.at[2 * i + 1]));
    return true;
}
