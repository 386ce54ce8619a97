/* First byte: 0 a URL, 1 tokens of a hint, 2 a reply of Redis read as a page of a log, 3 the log
 * probabilities of one token. What is accepted must hold what was promised. */
#include <math.h>
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/resp.h"
#include "common/base/logprob.h"
#include "common/queue/queue_log.h"
#include "common/queue/redis_url.h"

static void url(const uint8_t *data, size_t size) {
    char text[FX_REDIS_URL_MAX + 90];
    struct fx_redis_url out = {0};
    fx_error err = {0};
    size_t len = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, len);
    text[len] = 0;
    if (!fx_redis__url_parse(text, &out, &err)) {
        FX_ASSERT(err.code == FX_INVALID_ARGUMENT && out.host_count == 0);
        return;
    }
    bool hosts = out.host_count > 0 && out.host_count <= FX_REDIS_HOSTS_MAX;
    for (uint32_t i = 0; i < out.host_count; i++)
        hosts = hosts && out.hosts[i].name[0] && out.hosts[i].port;
    FX_ASSERT((out.path[0] == '/') != hosts);
    FX_ASSERT(hosts || !out.master[0]);
}

static void hint(const uint8_t *data, size_t size) {
    uint32_t tokens[16], count = 0;
    fx_span logprobs[16];
    if (fx_queue__tokens((fx_span){data, size}, tokens, logprobs, FX_COUNT(tokens), &count))
        FX_ASSERT(count <= FX_COUNT(tokens) && count <= size);
}

static void page(const uint8_t *data, size_t size) {
    static struct fx_log_page out;
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    if (!resp_is_huge(data, size) && redisReaderFeed(reader, (const char *)data, size) == REDIS_OK)
        while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
            if (fx_queue__log_read(reply, 7, &out)) {
                FX_ASSERT(out.tokens.count <= FX_QUEUE_APPEND_MAX && out.tokens.first == 8);
                FX_ASSERT(strlen(out.detail) <= FX_QUEUE_DETAIL_MAX);
            }
            freeReplyObject(reply);
            reply = NULL;
        }
    redisReaderFree(reader);
}

/* Written again, what was read is the same. */
static void logprobs(const uint8_t *data, size_t size) {
    struct fx_logprob first[FX_LOGPROBS_MAX] = {0}, again[FX_LOGPROBS_MAX] = {0};
    uint8_t text[FX_LOGPROBS_TEXT_MAX];
    fx_buf out = {text, 0, sizeof text};
    uint32_t count, count_again;
    if (!fx_logprobs_read((fx_span){data, size}, first, &count)) return;
    FX_ASSERT(count >= 1 && count <= FX_LOGPROBS_MAX);
    for (uint32_t i = 0; i < count; i++)
        FX_ASSERT(isfinite(first[i].value));
    fx_logprobs_write(first, count, &out);
    bool ok = fx_buf_fits(&out) && fx_logprobs_read((fx_span){text, out.len}, again, &count_again);
    FX_ASSERT(ok && count_again == count);
    FX_ASSERT(memcmp(first, again, count * sizeof first[0]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const kinds[])(const uint8_t *, size_t) = {url, hint, page, logprobs};
    if (size) kinds[data[0] % FX_COUNT(kinds)](data + 1, size - 1);
    return 0;
}
