#pragma once
/* A whole suite of real processes on free ports in a temporary folder, and what tests ask of it.
 * What takes no fx_error asserts, and belongs to the test's own thread. */
#include <jansson.h>
#include "tests/fx_test.h"
#include <unistd.h>
#include "common/base/clock.h"
#include "tests/e2e/http_client.h"
#include "tests/e2e/process.h"
#include "tests/integ/queue/redis_fixture.h"

#define SUITE_MODEL "fractal-tiny-moe"
#define SUITE_MODEL_DIR FX_SOURCE_DIR "/models/" SUITE_MODEL
enum {
    SUITE_MANY = 2,
    SUITE_WORKERS = 3,
    SUITE_KEY_MAX = 72,
    SUITE_ANSWER_MS = 120000,
    SUITE_READY_MS = 60000
};

struct suite;
struct suite_opts {
    uint32_t workers, schedulers, gateways;     /* 0 = 1; at most SUITE_MANY */
    const char *const *env, *const *worker_env; /* NAME=value, NULL at the end; or NULL */
    const char *dtype;                          /* NULL: int4 */
    const char *const *redis_args;              /* of redis-server; or NULL */
    /* Where a service finds Redis; NULL: where it is. The text lives as long as the suite. */
    const char *(*redis_url)(const struct suite *suite, const char *program, uint32_t number);
};

struct service {
    const char *program; /* "worker", ... */
    const char *bin;     /* the folder of its program; NULL: this build's */
    uint32_t number;
    struct process process;
    uint16_t port, admin; /* gRPC (gateway: HTTP); /livez /readyz /metrics */
    uint16_t grpc;        /* as port, but of a gateway's own API */
    bool killed;          /* by the test: its exit status is no finding */
};

struct suite {
    struct suite_opts opts;
    char folder[64], models[96];
    char key[SUITE_KEY_MAX];
    struct redis_fixture redis;
    struct process_env env; /* what every service gets */
    struct service tenant, slicer, schedulers[SUITE_MANY], workers[SUITE_WORKERS],
        gateways[SUITE_MANY];
};

/** Redis, tenant, slicer, the bundled model, schedulers, workers, gateways, and a key of tenant
 *  `default`: all of them ready. After a failure too, suite_close() ends what there is. */
void suite_open(struct suite *suite, const struct suite_opts *opts);
/** SIGTERM to all, gateways first, Redis last. False: one that was not killed did not end well. */
bool suite_close(struct suite *suite);
/** The last lines of every process. */
void suite_show(const struct suite *suite);
/** A program's main: its tests over one suite, which they get as *state; logs when one fails. */
int suite_main(const char *name, const struct CMUnitTest *tests, size_t count,
               const struct suite_opts *opts);
/** Each service in the order of starting; NULL past the last. */
struct service *suite_service(struct suite *suite, uint32_t index);
/** Starts one again, on its port, in place of one that was killed; it is not ready yet. */
void suite_service_start(struct suite *suite, struct service *service);
/** A worker, also in place of one that was killed; it is ready. */
void suite_worker_start(struct suite *suite, uint32_t number);
void suite_await_ready(struct service *service);

/** What the CLI gets: the suite's addresses and its key. */
struct process_env suite_cli_env(const struct suite *suite);
/** fractal-cli with these arguments. @own caller, output_free() */
struct output suite_cli(struct suite *suite, const char *const *args);
/** As suite_cli, must succeed; its stdout. @own caller, free() */
char *suite_cli_ok(struct suite *suite, const char *const *args);
void suite_key_make(struct suite *suite, char key[SUITE_KEY_MAX]);

/* -- the admin port -- */

/** The status of GET `path`; 0 when nobody answers. */
unsigned service_get(const struct service *service, const char *path);
/** The text of /metrics. @own caller, free() */
FX_MUST bool service_metrics_try(const struct service *service, char **out, fx_error *err);
char *service_metrics(const struct service *service);
/** A metric's value in such a text, summed over labels; fails the test when it is not there. */
double metric_of(const char *metrics, const char *name);
/** As metric_of, for any thread; false: not there. */
bool metric_find(const char *metrics, const char *name, double *out);
double service_metric(const struct service *service, const char *name);
/** Every slot and KV block of a worker is free. */
bool worker_is_free(const struct service *worker);

/* -- asking a gateway -- */

/** An answer, whole. */
struct answer {
    unsigned status;
    struct http_conn conn; /* head and body */
    json_t *json;          /* of a body that is JSON */
};
void answer_close(struct answer *answer);
#define auto_answer __attribute__((cleanup(answer_close))) struct answer

/** A request as it stands, to the first gateway. @own caller, answer_close() */
struct answer suite_send(struct suite *suite, const struct http_request *request);
/** With the suite's key; `body`, which may be NULL, is taken over. */
struct answer suite_request(struct suite *suite, const char *method, const char *path,
                            json_t *body);
/** {"model", "prompt", max_tokens 32, temperature 0} updated with `fields`, which are taken over.
 */
json_t *suite_prompt(const char *prompt, json_t *fields);
/** The text of a completion, not streamed. @own caller, free() */
char *suite_complete(struct suite *suite, const char *prompt, json_t *fields);

/** The chunks of one stream. */
struct stream {
    struct http_conn conn;
    size_t at;             /* of the body: the next line */
    uint32_t chunks;       /* read so far */
    bool done;             /* [DONE] came */
    char generation[64];   /* the id of its last chunk */
    struct http_text text; /* of the chunks read so far */
};
/** POST of suite_prompt(prompt, fields) with "stream": true. `fields` are taken over.
 *  @own caller, stream_close(), which hangs up if it has not ended */
FX_MUST bool stream_open(struct stream *stream, const struct suite *suite, const char *prompt,
                         json_t *fields, fx_error *err);
/** Reads until it has `chunks` chunks. @err NOT_FOUND: it ended before */
FX_MUST bool stream_until(struct stream *stream, uint32_t chunks, fx_error *err);
/** To its [DONE]. @err what came instead */
FX_MUST bool stream_rest(struct stream *stream, fx_error *err);
void stream_close(struct stream *stream);
#define auto_stream __attribute__((cleanup(stream_close))) struct stream
#define MUST(call) /* a call with `&err` must succeed */                                           \
    do {                                                                                           \
        fx_error err = {0};                                                                        \
        if (!(call)) fail_msg("%s: %s", #call, err.text);                                          \
    } while (0)
#define auto_text __attribute__((cleanup(suite_text_free))) char *
static inline void suite_text_free(char **text) {
    free(*text);
}
static inline void suite_json_free(json_t **json) {
    json_decref(*json);
}
#define auto_json __attribute__((cleanup(suite_json_free))) json_t *
