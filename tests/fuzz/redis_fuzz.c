/* First byte: 0 a URL, 1 tokens of a hint, 2 a reply of Redis read as a page of a log. What is
 * accepted must hold what was promised. */
#include "tests/fuzz/fuzz.h"
#include "common/queue/queue_log.h"
#include "common/queue/redis_url.h"

static void url(const uint8_t *data, size_t size) {
    char text[600];
    struct fx_redis_url out = {0};
    fx_error err = {0};
    size_t len = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, len);
    text[len] = 0;
    if (!fx_redis__url_parse(text, &out, &err)) {
        FX_ASSERT(err.code == FX_INVALID_ARGUMENT && out.port == 0);
        return;
    }
    FX_ASSERT((out.path[0] == '/') != (out.host[0] != 0 && out.port != 0));
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
    if (redisReaderFeed(reader, (const char *)data, size) == REDIS_OK)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    if (data[0] % 3 == 0)
        url(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        hint(data + 1, size - 1);
    else
        page(data + 1, size - 1);
    return 0;
}
