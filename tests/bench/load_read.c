/* Answers as they come: framing, events, letters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/bench/load_internal.h"

void load_conn_begin(struct load_conn *conn) {
    conn->asking = true;
    conn->done = conn->wrong = false;
    conn->state = LOAD_HEAD;
    conn->status = 0;
    conn->tokens = 0;
    conn->left = conn->line_len = 0;
}

/* -- letters -- */

static void latency_add(struct load *load, const struct load_conn *conn, uint32_t n) {
    const struct source_times *times = load->opts->times;
    struct load_result *out = load->out;
    struct timespec now;
    if (!times || conn->index >= SOURCE_TIMES_STREAMS || n > SOURCE_TIMES_TOKENS ||
        out->latency_count == LOAD_LATENCIES_MAX)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    out->latency_us[out->latency_count++] = (double)(now_ns - times->ns[conn->index][n - 1]) / 1000;
}

static void letters_take(struct load *load, struct load_conn *conn, fx_span text) {
    for (size_t i = 0; i < text.len; i++) {
        conn->tokens++;
        load->out->tokens++;
        if (!load->opts->any_text && text.at[i] != (uint8_t)source_letter(conn->tokens))
            conn->wrong = true;
        if (conn->tokens == 2) load->seconds_seen++;
        latency_add(load, conn, conn->tokens);
    }
}

/* The value of "text" in a line of JSON; empty: none. Letters need no escapes. */
static fx_span text_in(fx_span line) {
    static const char key[] = "\"text\":\"";
    const uint8_t *at = memmem(line.at, line.len, key, sizeof key - 1);
    if (!at) return (fx_span){0};
    at += sizeof key - 1;
    const uint8_t *end = memchr(at, '"', line.len - (size_t)(at - line.at));
    return (fx_span){at, end ? (size_t)(end - at) : 0};
}

static void line_take(struct load *load, struct load_conn *conn, fx_span line) {
    static const char data[] = "data: ", done[] = "data: [DONE]";
    if (line.len < sizeof data - 1 || memcmp(line.at, data, sizeof data - 1) != 0) return;
    if (line.len == sizeof done - 1 && memcmp(line.at, done, sizeof done - 1) == 0) {
        conn->done = true;
        return;
    }
    fx_span text = text_in(line);
    load->out->events++;
    letters_take(load, conn, text);
    if (!text.at && !*load->out->why) /* an error within the stream */
        (void)snprintf(load->out->why, sizeof load->out->why, "%.*s", (int)line.len, line.at);
}

/* -- lines, which reads and chunks cut anywhere -- */

static void line_add(struct load_conn *conn, fx_span bytes) {
    size_t room = LOAD_LINE_MAX - conn->line_len;
    size_t fits = bytes.len < room ? bytes.len : room;
    memcpy(conn->line + conn->line_len, bytes.at, fits);
    conn->line_len += fits;
}

static void lines_take(struct load *load, struct load_conn *conn, fx_span bytes) {
    while (bytes.len) {
        const uint8_t *end = memchr(bytes.at, '\n', bytes.len);
        fx_span part = {bytes.at, end ? (size_t)(end - bytes.at) : bytes.len};
        if (!end || conn->line_len) line_add(conn, part);
        if (!end) return;
        fx_span line = {(const uint8_t *)conn->line, conn->line_len};
        line_take(load, conn, conn->line_len ? line : part);
        conn->line_len = 0;
        bytes = (fx_span){end + 1, bytes.len - part.len - 1};
    }
}

/* -- framing -- */

static FX_MUST bool head_end(struct load_conn *conn) {
    conn->line[conn->line_len < LOAD_LINE_MAX ? conn->line_len : LOAD_LINE_MAX - 1] = 0;
    const char *length = strcasestr(conn->line, "\r\ncontent-length: ");
    if (sscanf(conn->line, "HTTP/1.1 %3u", &conn->status) != 1) return false;
    if (!length && !strcasestr(conn->line, "\r\ntransfer-encoding: chunked")) return false;
    conn->line_len = 0;
    conn->state = length ? LOAD_BODY : LOAD_SIZE;
    if (length) conn->left = strtoul(length + strlen("\r\ncontent-length: "), NULL, 10);
    if (length && !conn->left) conn->state = LOAD_END;
    return true;
}

/* Bytes of the head that are in `bytes`; 0: it was no HTTP. */
static size_t head_take(struct load_conn *conn, fx_span bytes) {
    for (size_t i = 0; i < bytes.len; i++) {
        if (conn->line_len == LOAD_LINE_MAX - 1) return 0;
        conn->line[conn->line_len++] = (char)bytes.at[i];
        if (bytes.at[i] != '\n' || conn->line_len < 4 ||
            memcmp(conn->line + conn->line_len - 4, "\r\n\r\n", 4) != 0)
            continue;
        return head_end(conn) ? i + 1 : 0;
    }
    return bytes.len;
}

static void size_take(struct load_conn *conn, uint8_t c) {
    if (c >= '0' && c <= '9') conn->left = conn->left * 16 + (size_t)(c - '0');
    if (c >= 'a' && c <= 'f') conn->left = conn->left * 16 + (size_t)(c - 'a' + 10);
    if (c == '\n') conn->state = conn->left ? LOAD_CHUNK : LOAD_LAST;
}

static size_t body_take(struct load *load, struct load_conn *conn, fx_span bytes) {
    size_t len = bytes.len < conn->left ? bytes.len : conn->left;
    fx_span part = {bytes.at, len};
    conn->left -= len;
    if (conn->state == LOAD_CHUNK) {
        lines_take(load, conn, part);
        if (!conn->left) conn->state = LOAD_CRLF;
        return len;
    }
    line_add(conn, part);
    if (conn->left) return len;
    conn->state = LOAD_END;
    if (load->opts->kind == LOAD_WHOLE)
        letters_take(load, conn, text_in((fx_span){(uint8_t *)conn->line, conn->line_len}));
    return len;
}

bool load_conn_feed(struct load *load, struct load_conn *conn, fx_span bytes) {
    while (bytes.len) {
        size_t taken = 1;
        if (conn->state == LOAD_HEAD)
            taken = head_take(conn, bytes);
        else if (conn->state == LOAD_BODY || conn->state == LOAD_CHUNK)
            taken = body_take(load, conn, bytes);
        else if (conn->state == LOAD_SIZE)
            size_take(conn, bytes.at[0]);
        else if (conn->state == LOAD_END)
            return false; /* nothing was asked for */
        else if (bytes.at[0] == '\n')
            conn->state = conn->state == LOAD_CRLF ? LOAD_SIZE : LOAD_END;
        if (!taken) return false;
        bytes = (fx_span){bytes.at + taken, bytes.len - taken};
    }
    return true;
}

const char *load_conn_check(struct load *load, const struct load_conn *conn) {
    const struct load_opts *opts = load->opts;
    static char text[LOAD_LINE_MAX];
    if (conn->status != 200) {
        (void)snprintf(text, sizeof text, "status %u: %.*s", conn->status, (int)conn->line_len,
                       conn->line);
        return text;
    }
    if (opts->kind == LOAD_ECHO)
        return conn->line_len == conn->body_bytes ? NULL : "an echo of another length";
    if (opts->kind == LOAD_STREAM && !conn->done) return "a stream without [DONE]";
    if (opts->any_text) return conn->tokens ? NULL : "an answer without text";
    if (conn->wrong || conn->tokens != opts->tokens) {
        load->out->wrong++;
        return "an answer with other letters than were published";
    }
    return NULL;
}
