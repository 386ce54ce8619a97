#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/http/http_internal.h"

enum { LINE_MAX_BYTES = 64, DRAWN_ID_BYTES = 16, NO_CONTENT = 204 };

static const struct {
    unsigned status;
    const char *text;
} status_texts[] = {
    {200, "OK"                             },
    {201, "Created"                        },
    {202, "Accepted"                       },
    {204, "No Content"                     },
    {304, "Not Modified"                   },
    {400, "Bad Request"                    },
    {401, "Unauthorized"                   },
    {403, "Forbidden"                      },
    {404, "Not Found"                      },
    {405, "Method Not Allowed"             },
    {408, "Request Timeout"                },
    {409, "Conflict"                       },
    {413, "Content Too Large"              },
    {415, "Unsupported Media Type"         },
    {417, "Expectation Failed"             },
    {422, "Unprocessable Content"          },
    {429, "Too Many Requests"              },
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"          },
    {501, "Not Implemented"                },
    {503, "Service Unavailable"            },
    {504, "Gateway Timeout"                },
    {505, "HTTP Version Not Supported"     },
};

const char *fx_http_status_text(unsigned status) {
    for (size_t i = 0; i < FX_COUNT(status_texts); i++)
        if (status_texts[i].status == status) return status_texts[i].text;
    return "Unknown";
}

/* -- the call -- */

static bool id_usable(fx_span id) {
    if (!id.len || id.len > FX_HTTP_ID_MAX) return false;
    for (size_t i = 0; i < id.len; i++) {
        uint8_t c = id.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && c != '.' && c != '_' && c != '-') return false;
    }
    return true;
}

void fx_http__id_draw(char out[FX_HTTP_ID_MAX + 1]) {
    uint8_t drawn[DRAWN_ID_BYTES];
    fx_random(drawn, sizeof drawn);
    fx_hex((fx_span){drawn, sizeof drawn}, out);
}

static void id_set(struct fx_http_call *call, const struct fx_http_request *request) {
    fx_span sent = fx_http_header(request, "x-request-id");
    if (id_usable(sent)) {
        memcpy(call->id, sent.at, sent.len);
        call->id[sent.len] = 0;
        return;
    }
    fx_http__id_draw(call->id);
}

static void call_open(struct fx_http_conn *conn) {
    const struct fx_http_request *request = fx_http__request(conn);
    if (!*conn->call.id) id_set(&conn->call, request);
    conn->call.active = true;
    conn->call.method = request->method;
    conn->call.target = request->target;
    conn->call.head_only = request->method == FX_HTTP_HEAD;
}

bool fx_http__call_admit(struct fx_http_conn *conn) {
    fx_http_server *server = conn->server;
    bool close_after = conn->close_after;
    if (!server->opts.admit) return true;
    call_open(conn);
    conn->close_after = true; /* when it is refused: the body is on its way */
    if (!server->opts.admit(server->opts.ctx, &conn->call, conn->request)) return false;
    FX_ASSERT(conn->call.active);
    conn->call.active = false;
    conn->close_after = close_after;
    return true;
}

void fx_http__call_begin(struct fx_http_conn *conn) {
    fx_http_server *server = conn->server;
    call_open(conn);
    if (fx_http__cors_preflight(conn)) return;
    server->opts.request(server->opts.ctx, &conn->call, conn->request);
}

void fx_http__call_done(struct fx_http_conn *conn, bool gone) {
    fx_http_server *server = conn->server;
    struct fx_http_call *call = &conn->call;
    FX_ASSERT(call->active);
    call->active = false;
    if (call->streaming) server->stats.streams--;
    call->streaming = false;
    struct fx_http_access access = {
        .request_id = call->id,
        .method = call->method,
        .target = call->target,
        .status = call->status,
        .gone = gone,
        .duration_us = fx_clock_us() - call->begun_us,
        .body_bytes = call->body_bytes,
    };
    if (server->opts.done) server->opts.done(server->opts.ctx, &access);
}

const char *fx_http_call_id(const fx_http_call *call) {
    return call->id;
}

void fx_http_call_drop_body(fx_http_call *call) {
    fx_http__body_free(call->conn);
}

void fx_http_call_on_gone(fx_http_call *call, void (*gone)(void *ctx), void *ctx) {
    FX_ASSERT(call->active);
    call->gone = gone;
    call->gone_ctx = ctx;
}

/* -- heads -- */

static void header_write(struct evbuffer *out, const char *name, fx_span value) {
    evbuffer_add(out, name, strlen(name));
    evbuffer_add(out, ": ", 2);
    evbuffer_add(out, value.at, value.len);
    evbuffer_add(out, "\r\n", 2);
}

static void headers_write(struct evbuffer *out, const struct fx_http_header *headers,
                          size_t count) {
    for (size_t i = 0; i < count; i++) {
        evbuffer_add(out, headers[i].name.at, headers[i].name.len);
        evbuffer_add(out, ": ", 2);
        evbuffer_add(out, headers[i].value.at, headers[i].value.len);
        evbuffer_add(out, "\r\n", 2);
    }
}

/* `content_type` NULL: there is no content. */
static void head_write(struct fx_http_call *call, unsigned status, const char *content_type,
                       const struct fx_http_header *headers, size_t count) {
    struct evbuffer *out = bufferevent_get_output(call->conn->bev);
    struct fx_http_header cors[FX_HTTP_CORS_ANSWER_MAX];
    char line[LINE_MAX_BYTES];
    int len =
        snprintf(line, sizeof line, "HTTP/1.1 %u %s\r\n", status, fx_http_status_text(status));
    evbuffer_add(out, line, (size_t)len);
    header_write(out, "x-request-id", fx_span_str(call->id));
    if (content_type) header_write(out, "content-type", fx_span_str(content_type));
    headers_write(out, headers, count);
    headers_write(out, cors, fx_http__cors_headers(call->conn, cors));
    call->status = status;
}

void fx_http_reply(fx_http_call *call, const struct fx_http_reply *reply) {
    struct fx_http_conn *conn = call->conn;
    struct evbuffer *out = bufferevent_get_output(conn->bev);
    char length[24];
    FX_ASSERT(call->active && !call->streaming);
    const char *type = reply->content_type ? reply->content_type : "application/json";
    bool has_body = reply->status != NO_CONTENT;
    head_write(call, reply->status, has_body ? type : NULL, reply->headers, reply->header_count);
    (void)snprintf(length, sizeof length, "%zu", reply->body.len);
    if (has_body) header_write(out, "content-length", fx_span_str(length));
    if (conn->close_after || conn->server->draining)
        header_write(out, "connection", fx_span_str("close"));
    evbuffer_add(out, "\r\n", 2);
    if (!call->head_only && has_body) {
        evbuffer_add(out, reply->body.at, reply->body.len);
        call->body_bytes = reply->body.len;
    }
    fx_http__call_done(conn, false);
    fx_http__conn_next(conn);
}

/* -- streams -- */

void fx_http_stream_begin(fx_http_call *call, const struct fx_http_header *headers, size_t count,
                          uint32_t ping_ms) {
    struct fx_http_conn *conn = call->conn;
    struct evbuffer *out = bufferevent_get_output(conn->bev);
    FX_ASSERT(call->active && !call->streaming && !conn->request->http_1_0);
    head_write(call, 200, "text/event-stream; charset=utf-8", headers, count);
    header_write(out, "cache-control", fx_span_str("no-cache"));
    header_write(out, "x-accel-buffering", fx_span_str("no"));
    header_write(out, "transfer-encoding", fx_span_str("chunked"));
    evbuffer_add(out, "\r\n", 2);
    call->streaming = true;
    conn->server->stats.streams++;
    conn->ping_ms = ping_ms;
    conn->written_ms = fx_clock_ms();
    fx_http__request_shrink(conn);
}

bool fx_http_stream_open(const fx_http_call *call) {
    return call->streaming;
}

void fx_http_stream_write(fx_http_call *call, fx_span bytes) {
    struct fx_http_conn *conn = call->conn;
    struct evbuffer *out = bufferevent_get_output(conn->bev);
    char size[LINE_MAX_BYTES];
    FX_ASSERT(call->active && call->streaming);
    if (!bytes.len || conn->doomed) return;
    if (evbuffer_get_length(out) + bytes.len > conn->server->opts.output_bytes_max) {
        conn->server->stats.cut_slow++;
        fx_http__conn_cut(conn);
        return;
    }
    int len = snprintf(size, sizeof size, "%zx\r\n", bytes.len);
    evbuffer_add(out, size, (size_t)len);
    evbuffer_add(out, bytes.at, bytes.len);
    evbuffer_add(out, "\r\n", 2);
    call->body_bytes += bytes.len;
    conn->written_ms = fx_clock_ms();
}

size_t fx_http_stream_unsent(const fx_http_call *call) {
    return evbuffer_get_length(bufferevent_get_output(call->conn->bev));
}

void fx_http_stream_on_taken(fx_http_call *call, void (*taken)(void *ctx), void *ctx) {
    FX_ASSERT(call->active);
    call->taken = taken;
    call->taken_ctx = ctx;
}

void fx_http_stream_cut(fx_http_call *call) {
    FX_ASSERT(call->active && call->streaming);
    if (!call->conn->doomed) call->conn->server->stats.cut_slow++;
    fx_http__conn_cut(call->conn);
}

void fx_http_stream_end(fx_http_call *call) {
    struct fx_http_conn *conn = call->conn;
    FX_ASSERT(call->active && call->streaming);
    if (!conn->doomed) bufferevent_write(conn->bev, "0\r\n\r\n", 5);
    fx_http__call_done(conn, conn->doomed);
    if (!conn->doomed) fx_http__conn_next(conn);
}

void fx_http_stream_abort(fx_http_call *call) {
    FX_ASSERT(call->active && call->streaming);
    fx_http__conn_cut(call->conn);
}

/* -- refusals before any handler -- */

void fx_http__refuse(struct fx_http_conn *conn, unsigned status, const char *message) {
    struct fx_http_problem problem = {
        .status = status,
        .type = status == 503 ? "server_error" : "invalid_request_error",
        .message = message,
        .retry_ms = status == 503 ? FX_HTTP_RETRY_MS_MIN : 0,
    };
    conn->close_after = true;
    call_open(conn);
    struct evbuffer *input = bufferevent_get_input(conn->bev);
    evbuffer_drain(input, evbuffer_get_length(input));
    fx_http_reply_problem(&conn->call, &problem);
}
