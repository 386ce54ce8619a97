#pragma once
/* Private to tests/bench/load*.c. */
#include "common/base/span.h"
#include "tests/bench/load.h"

enum { LOAD_LINE_MAX = 1024 };

enum load_state {
    LOAD_HEAD,
    LOAD_BODY,  /* of a length */
    LOAD_SIZE,  /* a chunk's */
    LOAD_CHUNK, /* its bytes */
    LOAD_CRLF,  /* behind them */
    LOAD_LAST,  /* the empty line behind the final chunk */
    LOAD_END,
};

struct load_conn {
    int fd; /* -1: closed */
    uint32_t index;
    bool asking, done; /* an answer is owed; [DONE] came */
    bool wrong;        /* another letter than was published */
    enum load_state state;
    unsigned status;
    uint32_t tokens; /* of this answer */
    size_t left;     /* bytes of the body or chunk to come */
    size_t body_bytes;
    size_t line_len;
    char line[LOAD_LINE_MAX];
};

struct load {
    const struct load_opts *opts;
    struct load_result *out, kept;
    struct load_conn *conns;
    int epoll;
    uint32_t open, running;
    uint32_t seconds_seen; /* connections that have had a second token */
    bool asking, counting, counted, midway_told;
    uint64_t begun_ns, counted_ns, heard_ns;
};

/* load_read.c */
void load_conn_begin(struct load_conn *conn);
/** Takes what came. False: it is no HTTP/1.1 answer. */
FX_MUST bool load_conn_feed(struct load *load, struct load_conn *conn, fx_span bytes);
/** Why the answer that has ended is not the right one; NULL: it is. */
const char *load_conn_check(struct load *load, const struct load_conn *conn);
