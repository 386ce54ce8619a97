#include <event2/buffer.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/http/http_internal.h"

enum { BODY_FIRST_BYTES = 4096, RAW_BODY_FACTOR = 8, RAW_BODY_REST = 65536, ALIGN_BYTES = 16 };

void fx_http__body_free(struct fx_http_conn *conn) {
    conn->server->bodies_bytes -= conn->body_cap;
    free(conn->body);
    conn->body = NULL;
    conn->body_len = conn->body_cap = 0;
    if (conn->request) conn->request->body = (fx_span){0};
}

const struct fx_http_request *fx_http__request(const struct fx_http_conn *conn) {
    static const struct fx_http_request none = {.method = FX_HTTP_METHOD_OTHER};
    return conn->request ? conn->request : &none;
}

static void memory_free(struct fx_http_conn *conn) {
    free(conn->memory);
    conn->memory = NULL;
    conn->request = NULL;
}

void fx_http__request_free(struct fx_http_conn *conn) {
    fx_http__body_free(conn);
    memory_free(conn);
}

void fx_http__request_shrink(struct fx_http_conn *conn) {
    fx_span *target = &conn->call.target;
    uint8_t *kept = fx_alloc(1, target->len + 1);
    if (!kept) return; /* then it stays as it is */
    if (target->len) memcpy(kept, target->at, target->len);
    fx_http__request_free(conn);
    conn->memory = kept;
    target->at = kept;
}

/* -- llhttp's callbacks -- */

static int body_overflow(struct fx_http_conn *conn, unsigned status) {
    conn->overflow = true;
    conn->overflow_status = status;
    return HPE_USER;
}

static int body_grow(struct fx_http_conn *conn, size_t need) {
    const struct fx_http_server_opts *opts = &conn->server->opts;
    size_t cap = conn->body_cap ? conn->body_cap : BODY_FIRST_BYTES;
    while (cap < need)
        cap *= 2;
    if (conn->server->bodies_bytes + (cap - conn->body_cap) > opts->bodies_bytes_max)
        return body_overflow(conn, 503);
    uint8_t *grown = fx_realloc(conn->body, cap, 1);
    if (!grown) return body_overflow(conn, 503);
    conn->server->bodies_bytes += cap - conn->body_cap;
    conn->body = grown;
    conn->body_cap = cap;
    return HPE_OK;
}

static int on_body(llhttp_t *parser, const char *at, size_t len) {
    struct fx_http_conn *conn = parser->data;
    size_t need = conn->body_len + len;
    if (need > conn->server->opts.body_bytes_max) return body_overflow(conn, 413);
    int rc = need > conn->body_cap ? body_grow(conn, need) : HPE_OK;
    if (rc != HPE_OK) return rc;
    memcpy(conn->body + conn->body_len, at, len);
    conn->body_len = need;
    return HPE_OK;
}

/* A chunk that can't fit is refused before its bytes come. */
static int on_chunk_header(llhttp_t *parser) {
    const struct fx_http_conn *conn = parser->data;
    uint64_t left = conn->server->opts.body_bytes_max - conn->body_len;
    return parser->content_length > left ? body_overflow(parser->data, 413) : HPE_OK;
}

/* An upgrade is offered, never taken: the request goes on as HTTP/1.1. */
static int on_headers_complete(llhttp_t *parser) {
    parser->upgrade = 0;
    return HPE_OK;
}

static int on_message_complete(llhttp_t *parser) {
    ((struct fx_http_conn *)parser->data)->complete = true;
    return HPE_PAUSED;
}

void fx_http__receive_settings(llhttp_settings_t *settings) {
    llhttp_settings_init(settings);
    settings->on_body = on_body;
    settings->on_chunk_header = on_chunk_header;
    settings->on_headers_complete = on_headers_complete;
    settings->on_message_complete = on_message_complete;
}

/* -- body -- */

static void call_start(struct fx_http_conn *conn) {
    conn->request->body = (fx_span){conn->body, conn->body_len};
    conn->state = CONN_CALL;
    conn->deadline_ms = 0;
    conn->server->stats.requests++;
    fx_http__call_begin(conn);
}

static void body_refuse(struct fx_http_conn *conn) {
    if (!conn->overflow) {
        conn->server->stats.malformed++;
        fx_http__refuse(conn, 400, "the request's body is not framed as its head says");
        return;
    }
    conn->server->stats.too_large++;
    fx_http__refuse(conn, conn->overflow_status,
                    conn->overflow_status == 413 ? "the request's body is too large"
                                                 : "too many request bodies are in memory");
}

/* How many of `bytes` llhttp took, or false when it refused them. */
static bool feed(struct fx_http_conn *conn, fx_span bytes, size_t *taken) {
    llhttp_errno_t rc = llhttp_execute(&conn->parser, (const char *)bytes.at, bytes.len);
    *taken = bytes.len;
    if (rc == HPE_OK) return true;
    if (!conn->complete || rc != HPE_PAUSED) return false;
    *taken = (size_t)((const uint8_t *)llhttp_get_error_pos(&conn->parser) - bytes.at);
    return true;
}

/* True when there may be more to do with what has arrived. */
static bool body_read(struct fx_http_conn *conn, struct evbuffer *input) {
    struct evbuffer_iovec part;
    if (evbuffer_peek(input, -1, NULL, &part, 1) < 1 || !part.iov_len) return false;
    size_t taken;
    bool ok = feed(conn, (fx_span){part.iov_base, part.iov_len}, &taken);
    conn->raw_body_len += part.iov_len;
    size_t raw_max = (size_t)conn->server->opts.body_bytes_max * RAW_BODY_FACTOR + RAW_BODY_REST;
    if (ok && conn->raw_body_len > raw_max) ok = body_overflow(conn, 413) == HPE_OK;
    if (!ok) {
        body_refuse(conn);
        return false;
    }
    evbuffer_drain(input, taken);
    if (conn->complete) call_start(conn);
    return true;
}

/* -- head -- */

static void head_refuse(struct fx_http_conn *conn, unsigned status, const char *why) {
    conn->server->stats.malformed++;
    fx_http__refuse(conn, status, why);
}

static void head_begin(struct fx_http_conn *conn) {
    conn->state = CONN_HEAD;
    conn->deadline_ms = fx_clock_ms() + conn->server->opts.head_ms_max;
    conn->line_seen = conn->overflow = conn->complete = conn->close_after = false;
    conn->raw_body_len = 0;
    struct fx_http_conn *owner = conn->call.conn;
    conn->call = (struct fx_http_call){.conn = owner, .begun_us = fx_clock_us()};
    llhttp_init(&conn->parser, HTTP_REQUEST, &conn->server->parser_settings);
    conn->parser.data = conn;
}

/* A client that is refused by its first line need not finish its head. */
static bool line_check(struct fx_http_conn *conn, struct evbuffer *input) {
    struct evbuffer_ptr end = evbuffer_search(input, "\n", 1, NULL);
    if (end.pos < 0 || conn->line_seen) return true;
    size_t len = (size_t)end.pos;
    const uint8_t *line = evbuffer_pullup(input, end.pos + 1);
    unsigned status = 400;
    fx_error err = {0};
    conn->line_seen = true;
    if (line && len && line[len - 1] == '\r' &&
        fx_http__line_check((fx_span){line, len - 1}, &status, &err))
        return true;
    head_refuse(conn, status, err.code ? err.text : "lines must end in CR LF");
    return false;
}

/* RFC 9112 2.2: an empty line before a request is skipped. True when a request has begun. */
static bool skip_empty_lines(struct evbuffer *input) {
    char two[2];
    ev_ssize_t len;
    while ((len = evbuffer_copyout(input, two, 2)) == 2 && two[0] == '\r' && two[1] == '\n')
        evbuffer_drain(input, 2);
    return len == 2 || (len == 1 && two[0] != '\r');
}

static bool body_expected(struct fx_http_conn *conn) {
    const struct fx_http_framing *f = &conn->framing;
    if (f->has_length && f->length > conn->server->opts.body_bytes_max) {
        (void)body_overflow(conn, 413);
        body_refuse(conn);
        return false;
    }
    if (!fx_http__call_admit(conn)) return false;
    conn->state = CONN_BODY;
    conn->deadline_ms = fx_clock_ms() + conn->server->opts.body_ms_max;
    if (f->expect_continue && (f->chunked || f->length) && !conn->request->http_1_0)
        bufferevent_write(conn->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    return true;
}

/* Memory for the request, its head, and the decoded segments of its path, which are no longer. */
static FX_MUST bool request_alloc(struct fx_http_conn *conn, size_t len, fx_arena *rest) {
    size_t size = 2 * len + (size_t)ALIGN_BYTES * (FX_HTTP_SEGMENTS_MAX + 2);
    conn->memory = fx_alloc(1, sizeof *conn->request + size);
    if (!conn->memory) return false;
    conn->request = (struct fx_http_request *)(void *)conn->memory;
    fx_arena_init(rest, conn->memory + sizeof *conn->request, size);
    return true;
}

/* False, and what to answer, when the head is not as it should be. */
static FX_MUST bool head_parse(struct fx_http_conn *conn, struct evbuffer *input, size_t len,
                               unsigned *status, fx_error *err) {
    fx_arena arena;
    size_t taken;
    *status = 503;
    if (!request_alloc(conn, len, &arena))
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the request");
    *status = 400;
    uint8_t *head = fx_arena_alloc(&arena, len);
    FX_ASSERT(head && evbuffer_copyout(input, head, len) == (ev_ssize_t)len);
    bool framed = feed(conn, (fx_span){head, len}, &taken);
    bool ok = fx_http__head_parse(head, len, &arena, conn->request, &conn->framing, status, err);
    fx_arena_done(&arena);
    if (!ok) return false;
    if (framed && taken == len) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "a malformed request");
}

static bool head_complete(struct fx_http_conn *conn, struct evbuffer *input, size_t len) {
    unsigned status;
    fx_error err = {0};
    if (!head_parse(conn, input, len, &status, &err)) {
        head_refuse(conn, status, err.text);
        return false;
    }
    evbuffer_drain(input, len);
    conn->close_after = conn->framing.close;
    if (conn->complete) {
        call_start(conn);
        return true;
    }
    return body_expected(conn);
}

static bool head_read(struct fx_http_conn *conn, struct evbuffer *input) {
    if (conn->state == CONN_IDLE) {
        if (!skip_empty_lines(input)) return false;
        head_begin(conn);
    }
    if (!line_check(conn, input)) return false;
    size_t head_max = conn->server->opts.head_bytes_max;
    struct evbuffer_ptr end = evbuffer_search(input, "\r\n\r\n", 4, NULL);
    size_t len = end.pos < 0 ? evbuffer_get_length(input) : (size_t)end.pos + 4;
    if (len > head_max) {
        conn->server->stats.too_large++;
        fx_http__refuse(conn, 431, "the request's head is too large");
        return false;
    }
    return end.pos >= 0 && head_complete(conn, input, len);
}

void fx_http__receive(struct fx_http_conn *conn) {
    struct evbuffer *input = bufferevent_get_input(conn->bev);
    struct evbuffer *output = bufferevent_get_output(conn->bev);
    bool more = true;
    while (more && !conn->doomed) {
        conn->paused = evbuffer_get_length(output) > FX_HTTP_UNSENT_MAX;
        if (conn->paused) return; /* goes on when that has left */
        if (conn->state == CONN_IDLE || conn->state == CONN_HEAD)
            more = head_read(conn, input);
        else if (conn->state == CONN_BODY)
            more = body_read(conn, input);
        else
            return; /* a call runs, or the last reply leaves */
    }
}
