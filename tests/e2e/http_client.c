#include "tests/e2e/http_client.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/clock.h"

enum { HEAD_BYTES = 4096, READ_BYTES = 65536 };

void http_text_append(struct http_text *text, const char *bytes, size_t len) {
    if (text->len + len + 1 > text->cap) {
        text->cap = 2 * (text->len + len) + 256;
        text->at = realloc(text->at, text->cap);
        FX_ASSERT(text->at);
    }
    memcpy(text->at + text->len, bytes, len);
    text->len += len;
    text->at[text->len] = 0;
}

/* -- the parser tells -- */

static int on_field(llhttp_t *parser, const char *at, size_t len) {
    http_text_append(&((struct http_conn *)parser->data)->head, at, len);
    return 0;
}

static int on_field_end(llhttp_t *parser) {
    http_text_append(&((struct http_conn *)parser->data)->head, ": ", 2);
    return 0;
}

static int on_value_end(llhttp_t *parser) {
    http_text_append(&((struct http_conn *)parser->data)->head, "\n", 1);
    return 0;
}

static int on_head_end(llhttp_t *parser) {
    ((struct http_conn *)parser->data)->status = parser->status_code;
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t len) {
    http_text_append(&((struct http_conn *)parser->data)->body, at, len);
    return 0;
}

static int on_end(llhttp_t *parser) {
    ((struct http_conn *)parser->data)->ended = true;
    return 0;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_field,
    .on_header_field_complete = on_field_end,
    .on_header_value = on_field,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_head_end,
    .on_body = on_body,
    .on_message_complete = on_end,
};

/* -- the connection -- */

/* Its family; AF_UNSPEC: it is no address. */
static sa_family_t address_make(const char *host, uint16_t port, struct sockaddr_storage *out) {
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    *out = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_port = htons(port);
        return out->ss_family = AF_INET;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1) return AF_UNSPEC;
    six->sin6_port = htons(port);
    return out->ss_family = AF_INET6;
}

bool http_open_at(struct http_conn *conn, const char *host, uint16_t port, fx_error *err) {
    struct sockaddr_storage to;
    sa_family_t family = address_make(host, port, &to);
    *conn = (struct http_conn){.fd = -1};
    llhttp_init(&conn->parser, HTTP_RESPONSE, &settings);
    if (family == AF_UNSPEC) return fx_fail(err, FX_INVALID_ARGUMENT, "'%s' is no address", host);
    conn->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0) return fx_fail_errno(err, "socket");
    if (connect(conn->fd, (struct sockaddr *)&to,
                family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) != 0)
        return fx_fail_errno(err, "connect to %s port %u", host, port);
    return true;
}

bool http_open(struct http_conn *conn, uint16_t port, fx_error *err) {
    return http_open_at(conn, "127.0.0.1", port, err);
}

void http_close(struct http_conn *conn) {
    if (conn->fd > 0) (void)close(conn->fd);
    free(conn->head.at);
    free(conn->body.at);
    free(conn->raw.at);
    *conn = (struct http_conn){0};
}

static void send_all(int fd, const void *bytes, size_t len) {
    for (size_t done = 0; done < len;) {
        ssize_t sent = send(fd, (const char *)bytes + done, len - done, MSG_NOSIGNAL);
        if (sent <= 0) return; /* what it answered is there to read */
        done += (size_t)sent;
    }
}

bool http_send(struct http_conn *conn, const struct http_request *request, fx_error *err) {
    char head[HEAD_BYTES];
    fx_buf buf = {.at = (uint8_t *)head, .cap = sizeof head};
    char line[512];
    (void)snprintf(line, sizeof line, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", request->method,
                   request->path);
    fx_buf_put(&buf, fx_span_str(line));
    for (const char *const *header = request->headers; header && *header; header++) {
        fx_buf_put(&buf, fx_span_str(*header));
        fx_buf_put(&buf, fx_span_str("\r\n"));
    }
    (void)snprintf(line, sizeof line, "Content-Length: %zu\r\n", request->body.len);
    if (request->body.at) fx_buf_put(&buf, fx_span_str(line));
    fx_buf_put(&buf, fx_span_str("\r\n"));
    if (!fx_buf_fits(&buf)) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the request's head");
    conn->parser.data = conn; /* it stays where it is from now on */
    send_all(conn->fd, head, buf.len);
    send_all(conn->fd, request->body.at, request->body.len);
    return true;
}

/* The end of the connection ends an answer without a length, and breaks any other. */
static bool read_end(struct http_conn *conn, fx_error *err) {
    if (llhttp_finish(&conn->parser) == HPE_OK && conn->ended) return true;
    return fx_fail(err, FX_UNAVAILABLE, "closed after %zu bytes: %.100s", conn->raw.len,
                   conn->raw.at ? conn->raw.at : "");
}

bool http_read(struct http_conn *conn, uint32_t ms, fx_error *err) {
    struct pollfd one = {conn->fd, POLLIN, 0};
    char bytes[READ_BYTES];
    if (poll(&one, 1, (int)ms) <= 0)
        return fx_fail(err, FX_DEADLINE_EXCEEDED, "nothing within %u ms", ms);
    ssize_t got = recv(conn->fd, bytes, sizeof bytes, 0);
    if (got < 0) return fx_fail_errno(err, "read");
    if (got == 0) return read_end(conn, err);
    http_text_append(&conn->raw, bytes, (size_t)got);
    llhttp_errno_t broken = llhttp_execute(&conn->parser, bytes, (size_t)got);
    if (broken != HPE_OK)
        return fx_fail(err, FX_DATA_LOSS, "no HTTP: %s", llhttp_errno_name(broken));
    return true;
}

bool http_read_all(struct http_conn *conn, uint32_t ms, fx_error *err) {
    uint64_t end_ms = fx_clock_ms() + ms;
    while (!conn->ended) {
        uint64_t now_ms = fx_clock_ms();
        if (!http_read(conn, now_ms < end_ms ? (uint32_t)(end_ms - now_ms) : 0, err)) return false;
    }
    return true;
}

bool http_header(const struct http_conn *conn, const char *name, char *out, size_t cap) {
    size_t len = strlen(name);
    for (const char *line = conn->head.at; line && *line; line = strchr(line, '\n') + 1) {
        if (strncasecmp(line, name, len) != 0 || strncmp(line + len, ": ", 2) != 0) continue;
        (void)snprintf(out, cap, "%.*s", (int)strcspn(line + len + 2, "\n"), line + len + 2);
        return true;
    }
    return false;
}
