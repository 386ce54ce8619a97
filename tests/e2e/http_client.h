#pragma once
/* A blocking HTTP/1.1 client that keeps the answer as it comes. One request a connection. Nothing
 * here asserts: any thread may use it. */
#include <llhttp.h>
#include "common/base/error.h"
#include "common/base/span.h"

struct http_text {
    char *at; /* NUL-terminated once there is something */
    size_t len, cap;
};

struct http_conn {
    int fd;
    llhttp_t parser;
    unsigned status;            /* 0: no head yet */
    struct http_text head;      /* "name: value\n", names as sent */
    struct http_text body, raw; /* body without its framing; raw: all that came */
    bool ended;                 /* the answer is whole */
};

struct http_request {
    const char *method, *path;
    const char *const *headers; /* "Name: value", NULL at the end; or NULL */
    fx_span body;               /* sent with its length; at NULL: none */
};

/** Connects to a port of 127.0.0.1. On failure too http_close() may follow. */
FX_MUST bool http_open(struct http_conn *conn, uint16_t port, fx_error *err);
/** The same to a numeric address, of either family: "10.1.2.3", "fd00::1".
 *  @err INVALID_ARGUMENT: it is none */
FX_MUST bool http_open_at(struct http_conn *conn, const char *host, uint16_t port, fx_error *err);
/** NULL fields and a closed one are fine; closing in mid-answer hangs up. */
void http_close(struct http_conn *conn);
#define auto_http __attribute__((cleanup(http_close))) struct http_conn
/** A server that answers before it has read everything is no failure. */
FX_MUST bool http_send(struct http_conn *conn, const struct http_request *request, fx_error *err);
/** Waits for some more bytes of the answer. @err DEADLINE_EXCEEDED, UNAVAILABLE (closed too soon)
 */
FX_MUST bool http_read(struct http_conn *conn, uint32_t ms, fx_error *err);
/** To the end of the answer. */
FX_MUST bool http_read_all(struct http_conn *conn, uint32_t ms, fx_error *err);
/** More of a text, which is the caller's to free(). */
void http_text_append(struct http_text *text, const char *bytes, size_t len);
/** A header's value, name in any case; false: not there. */
bool http_header(const struct http_conn *conn, const char *name, char *out, size_t cap);
