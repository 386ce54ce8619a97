/* What a client sends, whole and cut into pieces: the server sees the same requests and refusals.
 */
#include <event2/bufferevent.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/http/http_internal.h"
#include "tests/fuzz/fuzz.h"

enum { INPUT_MAX = 4096, TURNS_MAX = 8 };

struct seen {
    uint64_t hash, answers;
};

static struct event_base *base;
static fx_http_server *server;
static struct seen seen;

static void add(const void *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        seen.hash = (seen.hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3U;
    seen.hash = (seen.hash ^ 256) * 0x100000001b3U;
}

static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    (void)ctx;
    add(&request->method, sizeof request->method);
    for (size_t i = 0; i < request->segment_count; i++)
        add(request->segments[i].at, request->segments[i].len);
    for (size_t i = 0; i < request->header_count; i++)
        add(request->headers[i].value.at, request->headers[i].value.len);
    add(request->body.at, request->body.len);
    fx_http_reply(call, &(struct fx_http_reply){
                            .status = 200, .body = {NULL, 0}
    });
}

static void on_done(void *ctx, const struct fx_http_access *access) {
    (void)ctx;
    add(&access->status, sizeof access->status);
    seen.answers++;
}

static void open_once(void) {
    fx_error err = {0};
    if (base) return;
    base = event_base_new();
    struct fx_http_server_opts opts = {
        .base = base,
        .addr = "127.0.0.1:0",
        .request = on_request,
        .done = on_done,
        .cors = {.origins = "https://a.example,http://b:1",
                 .methods = "GET",
                 .headers = "x",
                 .exposed = "y"},
        .head_bytes_max = 1024,
        .body_bytes_max = 512
    };
    FX_ASSERT(base && fx_http_server_open(&opts, &server, &err));
}

static void turn(void) {
    for (int i = 0; i < TURNS_MAX; i++)
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
}

static struct seen read_all(const uint8_t *data, size_t size, size_t piece) {
    int pair[2];
    seen = (struct seen){0};
    FX_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    fx_http__conn_accept(server, pair[0]);
    for (size_t i = 0; i < size; i += piece) {
        size_t len = piece < size - i ? piece : size - i;
        if (send(pair[1], data + i, len, MSG_NOSIGNAL) < 0) break;
        turn();
    }
    (void)shutdown(pair[1], SHUT_WR);
    turn();
    (void)close(pair[1]);
    turn();
    FX_ASSERT(TAILQ_EMPTY(&server->conns) && server->bodies_bytes == 0);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size || size > INPUT_MAX) return 0;
    open_once();
    struct seen whole = read_all(data, size, size);
    struct seen part = read_all(data, size, 7);
    FX_ASSERT(part.answers == whole.answers && part.hash == whole.hash);
    return 0;
}
