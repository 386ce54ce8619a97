/* Memory stays flat: thousands of requests of every kind, then each service has what it had. */
#include <pthread.h>
#include <stdatomic.h>
#include "common/rpc/client.h"
#include "fractal/v1/inference.pb-c.h"
#include "tests/e2e/suite.h"

enum {
    REQUESTS = 10000,
    WARM_SHARE = 2, /* the warm-up is REQUESTS / WARM_SHARE more */
    THREADS = 16,
    SERVICES_MAX = 16,
    GROWTH_KIB_MAX = 1024,
    SETTLE_MS = 1500,
    CLIENT_MS = 60000,
    ARENA_BYTES = 65536,
};

static uint32_t requests = REQUESTS;

/* -- one request of each kind; false: it was not answered as it should be -- */

struct asker {
    struct suite *suite;
    fx_client *client;
    fx_arena arena;
    fx_error err;
};

struct kind {
    const char *name;
    bool (*ask)(struct asker *asker, const struct kind *kind);
    const char *path, *body;
    unsigned status;
    const char *end; /* of the answer's body */
};

static FX_MUST bool post(struct asker *asker, const struct kind *kind, const char *key,
                         struct http_conn *conn) {
    char bearer[SUITE_KEY_MAX + 32];
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", key);
    const char *const headers[] = {bearer, "Content-Type: application/json", NULL};
    const struct http_request request = {
        .method = "POST", .path = kind->path, .headers = headers, .body = fx_span_str(kind->body)};
    return http_open(conn, asker->suite->gateways[0].port, &asker->err) &&
           http_send(conn, &request, &asker->err);
}

static bool whole_with(struct asker *asker, const struct kind *kind, const char *key) {
    auto_http conn = {0};
    if (!post(asker, kind, key, &conn) || !http_read_all(&conn, CLIENT_MS, &asker->err))
        return false;
    size_t len = kind->end ? strlen(kind->end) : 0;
    if (conn.status == kind->status && conn.body.len >= len &&
        memcmp(conn.body.at + conn.body.len - len, kind->end ? kind->end : "", len) == 0)
        return true;
    return fx_fail(&asker->err, FX_DATA_LOSS, "%u: %.150s", conn.status,
                   conn.body.at ? conn.body.at : "");
}

static bool whole(struct asker *asker, const struct kind *kind) {
    return whole_with(asker, kind, asker->suite->key);
}

static bool stranger(struct asker *asker, const struct kind *kind) {
    return whole_with(asker, kind, "fx-nobody");
}

/* Hangs up behind the first chunk. */
static bool leave(struct asker *asker, const struct kind *kind) {
    auto_http conn = {0};
    if (!post(asker, kind, asker->suite->key, &conn)) return false;
    while (!conn.body.len)
        if (!http_read(&conn, CLIENT_MS, &asker->err)) return false;
    return conn.status == kind->status || fx_fail(&asker->err, FX_DATA_LOSS, "%u", conn.status);
}

static bool on_message(void *user, const void *message) {
    const Fractal__V1__GenerateResponse *response = message;
    (void)response;
    ++*(int *)user;
    return true;
}

static bool grpc(struct asker *asker, const struct kind *kind) {
    char bearer[SUITE_KEY_MAX + 32];
    int messages = 0;
    Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
    const struct fx_client_metadata metadata = {"authorization", bearer};
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", asker->suite->key);
    generate.model = (char *)(uintptr_t)SUITE_MODEL;
    generate.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT;
    generate.text = (char *)(uintptr_t)kind->body;
    generate.max_tokens = 3;
    struct fx_client_request request = {
        .method = kind->path,
        .message = &generate,
        .reply = &fractal__v1__generate_response__descriptor,
        .deadline_ms = CLIENT_MS,
        .metadata = &metadata,
        .metadata_count = 1,
        .arena = &asker->arena,
        .user = &messages,
        .on_message = on_message,
    };
    fx_arena_reset(&asker->arena);
    return fx_client_stream_wait(asker->client, &request, &asker->err) &&
           (messages > 1 || fx_fail(&asker->err, FX_DATA_LOSS, "%d messages", messages));
}

#define TO "{\"model\":\"" SUITE_MODEL "\","
#define CHAT TO "\"messages\":[{\"role\":\"user\",\"content\":\"Say hello\"}],"
#define COMPLETIONS "/v1/completions"
#define CHATS "/v1/chat/completions"
#define DONE "data: [DONE]\n\n"
static const struct kind kinds[] = {
    {"completion",     whole,    COMPLETIONS,                             TO "\"prompt\":\"Call me\",\"max_tokens\":2}",                   200, "}}"},
    {"streamed",       whole,    COMPLETIONS,                             TO "\"prompt\":\"Call me\",\"max_tokens\":3,\"stream\":true}",
     200,                                                                                                                                       DONE},
    {"chat",           whole,    CHATS,                                   CHAT "\"max_tokens\":2,\"stop\":[\"zzz\"],\"logprobs\":true}",   200,
     "}}"                                                                                                                                           },
    {"chat, streamed", whole,    CHATS,
     CHAT "\"max_tokens\":3,\"stream\":true,\"stream_options\":{\"include_usage\":true}}",                                                 200,
     DONE                                                                                                                                           },
    {"two choices",    whole,    COMPLETIONS,
     TO "\"prompt\":\"Call\",\"max_tokens\":2,\"n\":2,\"seed\":7,\"stream\":true}",                                                        200, DONE},
    {"gRPC",           grpc,     "/fractal.v1.InferenceService/Generate", "Call me",                                                       0,   NULL},
    {"no such model",  whole,    COMPLETIONS,                             "{\"model\":\"none\",\"prompt\":\"x\"}",                         404, "}}"},
    {"no JSON",        whole,    CHATS,                                   "{\"model\":",                                                   400, "}}"},
    {"nobody's key",   stranger, CHATS,                                   CHAT "\"max_tokens\":2}",                                        401, "}}"},
    {"left",           leave,    COMPLETIONS,                             TO "\"prompt\":\"Call me\",\"max_tokens\":200,\"stream\":true}",
     200,                                                                                                                                       NULL},
};

/* -- many at once -- */

struct crowd {
    struct suite *suite;
    fx_client *client;
    atomic_uint next;
    uint32_t count;
    pthread_mutex_t lock; /* why */
    char why[512];
};

static void complain(struct crowd *crowd, const struct kind *kind, const fx_error *err) {
    (void)pthread_mutex_lock(&crowd->lock);
    if (!*crowd->why)
        (void)snprintf(crowd->why, sizeof crowd->why, "%s: %s", kind->name, err->text);
    (void)pthread_mutex_unlock(&crowd->lock);
    crowd->next = crowd->count; /* the others end too */
}

static void *asker_run(void *arg) {
    struct crowd *crowd = arg;
    struct asker asker = {.suite = crowd->suite, .client = crowd->client};
    static _Thread_local uint8_t memory[ARENA_BYTES];
    fx_arena_init(&asker.arena, memory, sizeof memory);
    for (uint32_t i; (i = atomic_fetch_add(&crowd->next, 1)) < crowd->count;) {
        const struct kind *kind = &kinds[i % FX_TEST_COUNT(kinds)];
        if (!kind->ask(&asker, kind)) complain(crowd, kind, &asker.err);
    }
    fx_arena_done(&asker.arena);
    return NULL;
}

static void crowd_run(struct suite *suite, fx_client *client, uint32_t count) {
    struct crowd crowd = {.suite = suite, .client = client, .count = count};
    pthread_t threads[THREADS];
    (void)pthread_mutex_init(&crowd.lock, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, asker_run, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)pthread_mutex_destroy(&crowd.lock);
    if (*crowd.why) fail_msg("%s", crowd.why);
}

/* -- memory -- */

/* What is its own of a process: shared libraries and mapped weights come and go with the page
 * cache. */
static uint64_t own_kib(const struct service *service) {
    char path[64], line[256];
    unsigned long long value, sum = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)service->process.pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Dirty: %llu kB", &value) == 1 ||
            sscanf(line, "Swap: %llu kB", &value) == 1)
            sum += value;
    (void)fclose(file);
    assert_true(sum > 0);
    return sum;
}

static void settle(struct suite *suite) {
    uint64_t end_ms = fx_clock_ms() + CLIENT_MS;
    while (!worker_is_free(&suite->workers[0])) {
        assert_true(fx_clock_ms() < end_ms);
        (void)usleep(20000);
    }
    (void)usleep(SETTLE_MS * 1000);
}

static uint32_t memory_read(struct suite *suite, uint64_t *kib) {
    uint32_t count = 0;
    const struct service *service;
    settle(suite);
    for (; (service = suite_service(suite, count)); count++)
        kib[count] = own_kib(service);
    assert_true(count <= SERVICES_MAX);
    return count;
}

static void memory_is_flat(void **state) {
    struct suite *suite = *state;
    char target[32];
    fx_client *client = NULL;
    uint64_t before[SERVICES_MAX], after[SERVICES_MAX];
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", suite->gateways[0].grpc);
    MUST(fx_client_open(&(struct fx_client_opts){.target = target}, &client, &err));
    crowd_run(suite, client, requests / WARM_SHARE);
    uint32_t count = memory_read(suite, before), fat = 0;
    uint64_t begun_ms = fx_clock_ms();
    crowd_run(suite, client, requests);
    uint64_t took_ms = fx_clock_ms() - begun_ms;
    (void)memory_read(suite, after);
    fx_client_free(client);
    print_message("%u requests in %.1f s\n", requests, (double)took_ms / 1000);
    for (uint32_t i = 0; i < count; i++) {
        print_message("%-12s %6llu kB, then %6llu kB\n", suite_service(suite, i)->process.name,
                      (unsigned long long)before[i], (unsigned long long)after[i]);
        fat += after[i] > before[i] + GROWTH_KIB_MAX;
    }
    assert_int_equal(fat, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_flat)};
    if (argc > 1) requests = (uint32_t)strtoul(argv[1], NULL, 10);
    return suite_main("flat", tests, FX_TEST_COUNT(tests), &(struct suite_opts){.workers = 1});
}
