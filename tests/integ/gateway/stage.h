#pragma once
/* The gateway between the test's own servers: one gRPC server that speaks for tenant, scheduler and
 * slicer, and a scripted worker on the real queue functions of a real Redis. A test tool: it runs
 * no model, it says the bytes it is told. */
#include "tests/unit/http/wire.h"
#include "common/queue/queue.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "services/gateway/process.h"
#include "tests/integ/queue/redis_fixture.h"

#define STAGE_KEY "fx-good"
#define STAGE_MODEL "org/tiny model"
#define STAGE_OTHER_MODEL "org/other" /* listed while show_other */
enum {
    STAGE_NUMBER = 7,
    STAGE_CONTEXT = 256,
    STAGE_TENANT = 42,
    STAGE_EOS = 257, /* of the bundled model's tokenizer, whose ids below 256 are bytes */
    STAGE_RUNS_MAX = 64,
    STAGE_TOKENS_MAX = 4096,
};

/** What the worker says to every prompt. */
struct stage_script {
    const char *bytes; /* one token a byte; NULL: 'x' for ever */
    size_t len;
    uint32_t first_ms, every_ms; /* before the first token; between two */
    uint32_t burst;              /* tokens an append; 0 = 1 */
    enum fx_finish finish;
    const char *detail;
};

struct stage_run {
    bool used, ending;
    fx_gen_id id;
    uint32_t epoch, n, max_tokens;
    uint32_t logprobs_each; /* asked for; 0: none */
    uint64_t next_ms;
};

/** A minute, a minute, at once; 0: none. Gateways keep what they heard for 5 s. */
struct stage_limits {
    atomic_uint requests, tokens, streams;
};

struct stage {
    struct redis_fixture redis_server;
    fx_loop *loop;
    fx_redis *redis;
    fx_queue *queue;
    fx_work *work;
    struct event *tick;
    fx_server *server;
    struct gw_config config;
    struct gw_process *process;
    struct gateway *gateway; /* its first loop */
    char address[32], *tokenizer;
    size_t tokenizer_len;
    char *other_tokenizer; /* of STAGE_OTHER_MODEL */
    size_t other_tokenizer_len;

    pthread_mutex_t lock; /* script, last_task */
    struct stage_script script;
    uint8_t last_task[65536];
    size_t last_task_len;
    struct stage_run runs[STAGE_RUNS_MAX];
    uint64_t beat_ms;
    atomic_uint slots; /* 0: everything stays in the queue */
    atomic_int running, authenticated, listed, submitted, cancelled, pulled;
    atomic_int tenant_code, submit_code, list_code; /* FX_OK: as it should be */
    atomic_int submit_good; /* submits that succeed before submit_code holds */
    atomic_int hide_model, show_other;
    atomic_int old_scheduler, submit_calls; /* without SubmitGenerations; calls of it */
    atomic_int hold_submits;                /* calls of it wait */
    struct stage_limits key_limits, tenant_limits;
    atomic_ullong idle_ms; /* when running last became 0 */
};

int stage_setup(void **state);
int stage_teardown(void **state);
void stage_say(struct stage *stage, struct stage_script script);
/** Waits until `*counter` is `want`; false after 5 s. */
bool stage_wait(atomic_int *counter, int want);
/** The value of a header (lower case) in an answer, as a copy of up to 63 bytes; false: none. */
bool stage_header(const char *answer, const char *name, char out[64]);
void stage_gateway_open(struct stage *stage);
void stage_gateway_close(struct stage *stage);

/* stage_groups.c */
void stage__submit_generations(fx_call *call, const void *message, void *stage);
/* stage_worker.c, on the stage's loop */
void stage__worker_tick(evutil_socket_t fd, short what, void *stage);
void stage__worker_event(void *stage, enum fx_work_event event, const fx_gen_id *id);

/* -- a raw client -- */

int stage_connect(const struct stage *stage);
/** With little room of its own, so that it is noticed soon when it does not read. */
int stage_connect_narrow(const struct stage *stage);
/** POST of JSON with the good key. */
void stage_post(int fd, const char *path, const char *json);
/** The same of a chat with an Idempotency-Key, on a connection of its own. */
void stage_post_once(int fd, const char *key, const char *json);
/** The answer to one request on a connection of its own: head and body, NUL-terminated. */
char *stage_ask(const struct stage *stage, const char *path, const char *json);
char *stage_get(const struct stage *stage, const char *path, const char *headers);
/** Undoes chunked framing in place; fails the test when the final chunk is missing. */
char *stage_dechunk(char *answer);
/** The body of an answer with a content-length. */
char *stage_body(char *answer);
/** The concatenated contents (or texts) of a stream's chunks, checked on the way: framing of
 * events, the same id, the role once and first, n rising, one finish reason at the end, [DONE]
 * last.
 *  @own caller, free() */
struct stage_stream {
    char *text;
    char reason[16];
    size_t deltas, usages, last_n;
    bool role_first;
};
struct stage_stream stage_stream_read(char *answer);
