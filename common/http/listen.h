#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "common/base/error.h"

/** An address a server listens on. */
struct fx_listen_addr {
    struct sockaddr_storage at;
    socklen_t len;
    bool loopback;
};

/** "127.0.0.1:5000", "[::1]:5000", "localhost:5000" (127.0.0.1), ":5000" (0.0.0.0); port 0 = any.
 *  @err INVALID_ARGUMENT */
FX_MUST bool fx_listen_parse(const char *text, struct fx_listen_addr *out, fx_error *err);
/** A non-blocking listening TCP socket (SO_REUSEADDR, close-on-exec) and the port it got.
 *  @err UNAVAILABLE (in use: names address and remedy), INVALID_ARGUMENT, PERMISSION_DENIED
 *  @own `fd`: the caller */
FX_MUST bool fx_listen_open(const char *text, int *fd, uint16_t *port, fx_error *err);

/** How a port is shared by several sockets of one process (SO_REUSEPORT). */
enum fx_listen_share {
    FX_LISTEN_ALONE,
    FX_LISTEN_FIRST, /* refused where anybody listens; others of ours may join it then */
    FX_LISTEN_JOIN,  /* beside FIRST */
};
FX_MUST bool fx_listen_open_shared(const char *text, enum fx_listen_share share, int *fd,
                                   uint16_t *port, fx_error *err);
