#pragma once
/* A service for the tests of common/rpc. Requests are ListTenantsRequest {page_size, page_token},
 * replies ListTenantsReply {next_page_token}. */
#include "tests/fx_test.h"
#include <stdatomic.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/rpc/client.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "fractal/v1/tenant.pb-c.h"

struct echo {
    fx_loop *later; /* a thread that answers */
    _Atomic uint32_t cancelled, hanging, sent;
};

typedef Fractal__V1__ListTenantsRequest echo_request;
typedef Fractal__V1__ListTenantsReply echo_reply;

static inline void echo_text(fx_call *call, const char *text) {
    echo_reply reply = FRACTAL__V1__LIST_TENANTS_REPLY__INIT;
    reply.next_page_token = (char *)(uintptr_t)text;
    fx_call_reply(call, &reply);
}

static inline void echo_now(fx_call *call, const void *request, void *context) {
    const echo_request *in = request;
    (void)context;
    echo_text(call, in->page_token);
}

/* Ends with the code page_size and the text page_token. */
static inline void echo_fail(fx_call *call, const void *request, void *context) {
    const echo_request *in = request;
    (void)context;
    fx_call_trailer(call, "retry-after-ms", "250");
    fx_call_trailer(call, "Not Legal", "dropped");
    fx_call_fail(call, (enum fx_code)in->page_size, "%s", in->page_token);
}

static inline void echo_later_job(void *user) {
    fx_call *call = user;
    const echo_request *in = fx_call_user(call);
    usleep(in->page_size * 1000);
    echo_text(call, in->page_token);
}

/* Answers from another thread after page_size ms. */
static inline void echo_later(fx_call *call, const void *request, void *context) {
    struct echo *echo = context;
    fx_call_set_user(call, (void *)(uintptr_t)request);
    if (!fx_loop_post(echo->later, echo_later_job, call))
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "inbox full");
}

static inline void echo_gone(fx_call *call, void *user) {
    struct echo *echo = user;
    echo->hanging--;
    echo->cancelled++;
    fx_call_fail(call, FX_CANCELLED, "gone");
}

/* Never answers; ends when the client is gone. */
static inline void echo_hang(fx_call *call, const void *request, void *context) {
    struct echo *echo = context;
    (void)request;
    echo->hanging++;
    fx_call_on_cancel(call, echo_gone, echo);
}

struct echo_count {
    uint32_t next, end;
    struct echo *echo;
};

static inline void echo_count_next(fx_call *call, void *user) {
    struct echo_count *count = user;
    echo_reply message = FRACTAL__V1__LIST_TENANTS_REPLY__INIT;
    char text[16];
    if (count->next == count->end) {
        fx_call_finish(call);
        return;
    }
    (void)snprintf(text, sizeof text, "%u", count->next);
    message.next_page_token = text;
    if (fx_call_send(call, &message) == FX_SEND_OK) {
        count->next++;
        count->echo->sent++;
    }
}

static inline void echo_count_gone(fx_call *call, void *user) {
    struct echo_count *count = user;
    count->echo->cancelled++;
    fx_call_fail(call, FX_CANCELLED, "gone");
}

/* Streams "0" .. page_size-1, each when the write before has completed. */
static inline void echo_count(fx_call *call, const void *request, void *context) {
    const echo_request *in = request;
    struct echo_count *count = fx_arena_alloc(fx_call_arena(call), sizeof *count);
    *count = (struct echo_count){0, in->page_size, context};
    fx_call_on_writable(call, echo_count_next, count);
    if (count->end) fx_call_on_cancel(call, echo_count_gone, count);
    echo_count_next(call, count);
}

/* Adds up page_size of all messages. */
static inline void echo_sum(fx_call *call, const void *request, void *context) {
    const echo_request *in = request;
    uintptr_t sum = (uintptr_t)fx_call_user(call);
    char text[32];
    (void)context;
    if (in) {
        fx_call_set_user(call, (void *)(sum + in->page_size));
        fx_call_next(call);
        return;
    }
    if (fx_call_cancelled(call)) {
        fx_call_fail(call, FX_CANCELLED, "gone");
        return;
    }
    (void)snprintf(text, sizeof text, "%zu", (size_t)sum);
    echo_text(call, text);
}

/* "<request id> <traceparent> <metadata x-test> <bearer> <peer name>" */
static inline void echo_who(fx_call *call, const void *request, void *context) {
    fx_span test = fx_call_metadata(call, "x-test"), bearer = fx_call_bearer(call);
    const fx_trace *trace = fx_call_trace(call);
    const char *peer = fx_call_peer_name(call);
    (void)request, (void)context;
    char *text = fx_arena_printf(fx_call_arena(call), "%s %s %.*s %.*s %s", trace->request_id,
                                 trace->traceparent, (int)test.len, (const char *)test.at,
                                 (int)bearer.len, (const char *)bearer.at, peer ? peer : "-");
    echo_text(call, text);
}

/* From another thread: streams page_size messages, waiting for each write before it. */
static inline void echo_push_job(void *user) {
    fx_call *call = user;
    const echo_request *in = fx_call_user(call);
    echo_reply message = FRACTAL__V1__LIST_TENANTS_REPLY__INIT;
    char text[16];
    message.next_page_token = text;
    for (uint32_t i = 0; i < in->page_size; i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        if (fx_call_send_wait(call, &message, 5000) == FX_SEND_OK) continue;
        fx_call_fail(call, FX_CANCELLED, "gone");
        return;
    }
    fx_call_finish(call);
}

static inline void echo_push(fx_call *call, const void *request, void *context) {
    struct echo *echo = context;
    fx_call_set_user(call, (void *)(uintptr_t)request);
    if (!fx_loop_post(echo->later, echo_push_job, call))
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "inbox full");
}

/* A reply of page_size bytes. */
static inline void echo_big(fx_call *call, const void *request, void *context) {
    static char text[1 << 20];
    const echo_request *in = request;
    (void)context;
    char *copy = in->page_size < sizeof text ? text : NULL;
    memset(text, 'x', sizeof text);
    text[in->page_size] = '\0';
    echo_text(call, copy);
}

/* How often this thread has asked our allocator for memory. */
static inline void echo_heap(fx_call *call, const void *request, void *context) {
    char text[24];
    (void)request, (void)context;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)fx_heap_count());
    echo_text(call, text);
}

#define ECHO_REQUEST &fractal__v1__list_tenants_request__descriptor
static const struct fx_method echo_methods[] = {
    {"/test.Echo/Now",   echo_now,   ECHO_REQUEST, FX_RPC_UNARY,         5000,  100000},
    {"/test.Echo/Small", echo_now,   ECHO_REQUEST, FX_RPC_UNARY,         5000,  64    },
    {"/test.Echo/Fail",  echo_fail,  ECHO_REQUEST, FX_RPC_UNARY,         5000,  1024  },
    {"/test.Echo/Later", echo_later, ECHO_REQUEST, FX_RPC_UNARY,         20000, 1024  },
    {"/test.Echo/Hang",  echo_hang,  ECHO_REQUEST, FX_RPC_UNARY,         20000, 1024  },
    {"/test.Echo/Brief", echo_hang,  ECHO_REQUEST, FX_RPC_UNARY,         50,    1024  },
    {"/test.Echo/Count", echo_count, ECHO_REQUEST, FX_RPC_SERVER_STREAM, 0,     1024  },
    {"/test.Echo/Sum",   echo_sum,   ECHO_REQUEST, FX_RPC_CLIENT_STREAM, 20000, 1024  },
    {"/test.Echo/Who",   echo_who,   ECHO_REQUEST, FX_RPC_UNARY,         5000,  1024  },
    {"/test.Echo/Push",  echo_push,  ECHO_REQUEST, FX_RPC_SERVER_STREAM, 20000, 1024  },
    {"/test.Echo/Big",   echo_big,   ECHO_REQUEST, FX_RPC_UNARY,         5000,  1024  },
    {"/test.Echo/Heap",  echo_heap,  ECHO_REQUEST, FX_RPC_UNARY,         5000,  1024  },
};

static inline void echo_check(bool ok, const fx_error *err) {
    if (!ok) print_error("%s: %s\n", fx_code_name(err->code), err->text);
    assert_true(ok);
}

/* A server of these methods on any port of loopback; the target goes to `target`. */
static inline fx_server *echo_open(struct echo *echo, struct fx_server_opts opts,
                                   char target[static 64]) {
    fx_error err = {0};
    fx_server *server = NULL;
    if (!opts.address) opts.address = "127.0.0.1:0";
    opts.context = echo;
    if (!echo->later) {
        echo_check(fx_loop_open(256, &echo->later, &err), &err);
        echo_check(fx_loop_start(echo->later, &err), &err);
    }
    echo_check(fx_server_open(&opts, echo_methods, FX_TEST_COUNT(echo_methods), &server, &err),
               &err);
    fx_server_set_serving(server, true);
    (void)snprintf(target, 64, "127.0.0.1:%u", fx_server_port(server));
    return server;
}

static inline void echo_close(struct echo *echo, fx_server *server) {
    fx_server_free(server);
    fx_loop_free(echo->later);
    echo->later = NULL;
}

static inline fx_client *echo_client(const char *target, struct event_base *base,
                                     uint32_t calls_max) {
    fx_error err = {0};
    fx_client *client = NULL;
    struct fx_client_opts opts = {.target = target, .base = base, .calls_max = calls_max};
    echo_check(fx_client_open(&opts, &client, &err), &err);
    return client;
}

/* A blocking call; the reply's text (or the error's) goes to `text`. */
static inline enum fx_code echo_call(fx_client *client, const char *method, uint32_t number,
                                     const char *token, uint32_t deadline_ms, char *text,
                                     size_t cap) {
    static _Thread_local uint8_t memory[256 * 1024];
    fx_arena arena;
    fx_error err = {0};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    echo_reply *reply = NULL;
    fx_arena_init(&arena, memory, sizeof memory);
    message.page_size = number;
    message.page_token = (char *)(uintptr_t)token;
    struct fx_client_request request = {.method = method,
                                        .message = &message,
                                        .reply = &fractal__v1__list_tenants_reply__descriptor,
                                        .deadline_ms = deadline_ms,
                                        .arena = &arena};
    bool ok = fx_client_call_wait(client, &request, &reply, &err);
    if (text) (void)snprintf(text, cap, "%s", ok ? reply->next_page_token : err.text);
    fx_arena_done(&arena);
    return ok ? FX_OK : err.code;
}

/* Waits until *value == want, at most 5 s. */
static inline void echo_until(_Atomic uint32_t *value, uint32_t want) {
    uint64_t end = fx_clock_ms() + 5000;
    while (*value != want && fx_clock_ms() < end)
        usleep(1000);
    assert_int_equal(*value, want);
}
