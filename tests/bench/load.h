#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/error.h"
#include "tests/bench/source.h"

/* A load generator: keep-alive connections over loopback, one thread, one epoll. It reads every
 * answer to its end and checks it: an echo byte for byte, a text letter by letter, so that a token
 * that is lost, repeated or changed is counted. */

enum load_kind {
    LOAD_ECHO,   /* the answer is the request's body */
    LOAD_WHOLE,  /* one JSON */
    LOAD_STREAM, /* server-sent events to [DONE] */
};

struct load_opts {
    uint16_t port;
    enum load_kind kind;
    const char *model, *key;
    uint32_t connections;
    uint32_t tokens;        /* of an answer */
    uint32_t pace_ms;       /* between two tokens; 0: as fast as they are taken */
    double warm_s, seconds; /* asks again and again: uncounted, then counted; 0: each asks once */
    pid_t server;           /* whose processor time is counted */
    struct source_times *times; /* when tokens were published; NULL: no latencies wanted */
    bool any_text;              /* a real model's: its letters are not known */
    /** The counted time begins, ends; may be NULL. */
    void (*counting)(void *ctx, bool begins);
    /** Once, when every connection has had its second token; may be NULL. */
    void (*midway)(void *ctx);
    void *ctx;
};

enum { LOAD_LATENCIES_MAX = 1 << 20 };

struct load_result {
    uint64_t answers, events, tokens; /* within the counted time; all when each asks once */
    uint64_t reads;                   /* that brought bytes: how events come together */
    uint64_t failed, wrong; /* answers without 200 or cut off; with other letters than published */
    double seconds, cpu_s;  /* of that time; the server's */
    double *latency_us;     /* [latency_count], sorted; of each token. Owned, free() */
    size_t latency_count;
    char why[256]; /* the first failure */
};

/** @err UNAVAILABLE: it could not connect, or the answers stopped coming */
FX_MUST bool load_run(const struct load_opts *opts, struct load_result *out, fx_error *err);
/** One GET with the key: its status, 0 when nobody answers. */
unsigned load_get(uint16_t port, const char *path, const char *key);
/** A port of 127.0.0.1 that is free at the moment. */
FX_MUST bool load_free_port(uint16_t *out, fx_error *err);
