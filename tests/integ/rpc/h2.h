#pragma once
/* A client that speaks just enough HTTP/2 to say what gRPC clients never say. It decodes no
 * headers: what the server's core sends of a status is in plain letters the first time. */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include "tests/integ/rpc/echo_service.h"

enum {
    H2_DATA = 0,
    H2_HEADERS = 1,
    H2_RST_STREAM = 3,
    H2_SETTINGS = 4,
    H2_PING = 6,
    H2_GOAWAY = 7,
    H2_ACK = 1,
    H2_END_STREAM = 1,
    H2_END_HEADERS = 4,
    H2_WINDOW = 4, /* SETTINGS_INITIAL_WINDOW_SIZE */
    H2_WAIT_MS = 10000,
    H2_FRAME_MAX = 16384,
};

struct h2_frame {
    uint32_t len, stream;
    uint8_t type, flags, at[H2_FRAME_MAX];
};

struct h2_header {
    const char *name, *value;
};

/* That the server has hung up is seen when it is read. */
static inline void h2_send(int fd, const void *bytes, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t sent = send(fd, (const uint8_t *)bytes + at, len - at, MSG_NOSIGNAL);
        if (sent < 0) return;
        at += (size_t)sent;
    }
}

static inline void h2_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream, const void *bytes,
                            size_t len) {
    uint8_t head[9] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, type, flags};
    uint32_t id = htonl(stream);
    memcpy(head + 5, &id, sizeof id);
    h2_send(fd, head, sizeof head);
    if (len) h2_send(fd, bytes, len);
}

/* A connection on which each stream may be sent `window` bytes that are never allowed to be more.
 */
static inline int h2_open(uint16_t port, uint32_t window) {
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint8_t settings[6] = {0,
                           H2_WINDOW,
                           (uint8_t)(window >> 24),
                           (uint8_t)(window >> 16),
                           (uint8_t)(window >> 8),
                           (uint8_t)window};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    h2_send(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    h2_frame(fd, H2_SETTINGS, 0, 0, settings, sizeof settings);
    return fd;
}

/* A literal header field without indexing, lengths of any size. */
static inline void h2_text(fx_buf *out, const char *text) {
    size_t len = strlen(text);
    uint8_t byte = (uint8_t)(len < 127 ? len : 127);
    fx_buf_put(out, (fx_span){&byte, 1});
    for (size_t rest = len - 127; len >= 127; rest >>= 7) {
        byte = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
        fx_buf_put(out, (fx_span){&byte, 1});
        if (rest <= 127) break;
    }
    fx_buf_put(out, fx_span_str(text));
}

static inline void h2_call(int fd, uint32_t stream, const char *path,
                           const struct h2_header *headers, size_t count, uint8_t flags) {
    static const struct h2_header usual[] = {
        {":method",      "POST"            },
        {":scheme",      "http"            },
        {":authority",   "localhost"       },
        {"content-type", "application/grpc"},
        {"te",           "trailers"        },
    };
    static const uint8_t literal = 0;
    uint8_t block[H2_FRAME_MAX];
    fx_buf out = {block, 0, sizeof block};
    struct h2_header all[1024];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        all[n++] = usual[i];
    all[n++] = (struct h2_header){":path", path};
    for (size_t i = 3; i < FX_TEST_COUNT(usual); i++)
        all[n++] = usual[i];
    for (size_t i = 0; i < count; i++)
        all[n++] = headers[i];
    for (size_t i = 0; i < n; i++) {
        fx_buf_put(&out, (fx_span){&literal, 1});
        h2_text(&out, all[i].name);
        h2_text(&out, all[i].value);
    }
    assert_true(fx_buf_fits(&out));
    h2_frame(fd, H2_HEADERS, (uint8_t)(flags | H2_END_HEADERS), stream, block, out.len);
}

/* One message of a call. */
static inline void h2_message(int fd, uint32_t stream, fx_span message, uint8_t flags) {
    uint8_t bytes[4096] = {0};
    uint32_t len = htonl((uint32_t)message.len);
    assert_true(message.len <= sizeof bytes - 5);
    memcpy(bytes + 1, &len, sizeof len);
    if (message.len) memcpy(bytes + 5, message.at, message.len);
    h2_frame(fd, H2_DATA, flags, stream, bytes, message.len + 5);
}

static inline bool h2_read(int fd, void *out, size_t len) {
    for (size_t got = 0; got < len;) {
        struct pollfd wait = {fd, POLLIN, 0};
        if (poll(&wait, 1, H2_WAIT_MS) != 1) return false;
        ssize_t now = recv(fd, (uint8_t *)out + got, len - got, 0);
        if (now <= 0) return false;
        got += (size_t)now;
    }
    return true;
}

/* False: the connection ended, or nothing came for H2_WAIT_MS. Settings and pings are answered. */
static inline bool h2_any(int fd, struct h2_frame *out) {
    uint8_t head[9];
    if (!h2_read(fd, head, sizeof head)) return false;
    out->len = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    out->type = head[3];
    out->flags = head[4];
    memcpy(&out->stream, head + 5, sizeof out->stream);
    out->stream = ntohl(out->stream);
    assert_true(out->len <= sizeof out->at);
    if (out->len && !h2_read(fd, out->at, out->len)) return false;
    bool ack = out->flags & H2_ACK;
    if (out->type == H2_SETTINGS && !ack) h2_frame(fd, H2_SETTINGS, H2_ACK, 0, NULL, 0);
    if (out->type == H2_PING && !ack) h2_frame(fd, H2_PING, H2_ACK, 0, out->at, out->len);
    return true;
}

/* The next of a stream. */
static inline bool h2_next(int fd, struct h2_frame *out) {
    while (h2_any(fd, out))
        if (out->stream) return true;
    return false;
}

/* How stream `stream` ends: its grpc-status; -1: with a reset; -2: the connection ended. `text`
 * gets the rest of the trailers' bytes, if it is not NULL. */
static inline int h2_status(int fd, uint32_t stream, char text[H2_FRAME_MAX]) {
    static const char name[] = "grpc-status";
    static struct h2_frame frame;
    while (h2_next(fd, &frame)) {
        if (frame.stream != stream) continue;
        if (frame.type == H2_RST_STREAM) return -1;
        if (frame.type != H2_HEADERS || !(frame.flags & H2_END_STREAM)) continue;
        const uint8_t *at = memmem(frame.at, frame.len, name, sizeof name - 1);
        assert_non_null(at);
        at += sizeof name; /* and the value's length */
        if (text) {
            size_t len = (size_t)(frame.at + frame.len - at);
            memcpy(text, at, len);
            for (size_t i = 0; i < len; i++)
                if (!text[i]) text[i] = ' ';
            text[len] = '\0';
        }
        return at[-1] == 1 ? at[0] - '0' : 10 * (at[0] - '0') + at[1] - '0';
    }
    return -2;
}
