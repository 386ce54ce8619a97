/* An event stream whole and cut into pieces gives the same events. */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "services/cli/sse.h"

struct seen {
    uint64_t hash, events;
};

static bool on_data(void *user, fx_span data, fx_error *err) {
    struct seen *seen = user;
    (void)err;
    seen->events++;
    for (size_t i = 0; i < data.len; i++)
        seen->hash = (seen->hash ^ data.at[i]) * 0x100000001b3U;
    seen->hash = (seen->hash ^ 256) * 0x100000001b3U;
    return true;
}

static struct seen read_all(const uint8_t *data, size_t size, size_t piece) {
    struct seen seen = {0};
    fx_error err = {0};
    fx_auto(cli_sse) sse = NULL;
    FX_ASSERT(cli_sse_new(&(struct cli_sse_opts){on_data, &seen}, &sse, &err));
    for (size_t i = 0; i < size; i += piece) {
        size_t len = piece < size - i ? piece : size - i;
        FX_ASSERT(cli_sse_feed(sse, (fx_span){data + i, len}, &err));
    }
    seen.events = seen.events << 1 | cli_sse_is_done(sse);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size || size > CLI_SSE_EVENT_BYTES_MAX) return 0;
    struct seen whole = read_all(data, size, size);
    struct seen part = read_all(data, size, size % 3 + 1);
    FX_ASSERT(part.hash == whole.hash && part.events == whole.events);
    return 0;
}
