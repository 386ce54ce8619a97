/* SIGTERM to every service, under load, at its start, with Redis away, twice: it is unready at
 * once, takes no more, ends what it has or hands it over, and exits with 0. */
#include <dirent.h>
#include <signal.h>
#include "tests/e2e/herd.h"

#define PROMPT "It is a truth universally acknowledged,"
enum {
    HERD = 4,
    HELD_TOKENS = 200, /* far longer than a worker drains */
    STREAMS = 20,
    TOKENS = 100,
    LONG = 900,
    STEP_MS = 20000,
    LONG_END_MS = 60000, /* of what has LONG tokens, or is cancelled */
    PROMPT_MS = 5000,    /* an end that waits for nothing */
    AGAIN_MS = 1500,     /* a second signal that is not part of the first */
};

static bool ends_within(struct service *service, uint32_t ms) {
    return process_wait(&service->process, ms);
}

static void assert_ended_well(struct service *service, uint32_t ms) {
    if (!ends_within(service, ms)) fail_msg("%s does not end", service->process.name);
    if (service->process.code != 0)
        fail_msg("%s ended with %d", service->process.name, service->process.code);
}

static void start_again(struct suite *suite, struct service *service) {
    suite_service_start(suite, service);
    suite_await_ready(service);
}

/* An import that stopped in the middle would have a folder there. */
static void assert_nothing_half_written(const struct suite *suite) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s/.import", suite->models);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') fail_msg("%s/%s", path, entry->d_name);
    if (folder) (void)closedir(folder);
}

/* -- under load -- */

static struct service *tenant(struct suite *suite) {
    return &suite->tenant;
}
static struct service *slicer(struct suite *suite) {
    return &suite->slicer;
}
static struct service *scheduler(struct suite *suite) {
    return &suite->schedulers[0];
}
static struct service *idle_gateway(struct suite *suite) {
    return &suite->gateways[1];
}
/* Its leases would last for a minute. */
static struct service *busy_worker(struct suite *suite) {
    uint32_t i = 0;
    WAIT_FOR(!worker_is_free(&suite->workers[i = (i + 1) % SUITE_MANY]), STEP_MS, "all are free");
    return &suite->workers[i];
}

static const struct row {
    const char *name;
    struct service *(*pick)(struct suite *suite);
    bool needed;      /* without it new requests get 503 */
    const char *says; /* in its log; or NULL */
} rows[] = {
    {"a worker",         busy_worker,  false, "event=drain_gives_back"},
    {"a scheduler",      scheduler,    false, NULL                    },
    {"the slicer",       slicer,       false, NULL                    },
    {"the idle gateway", idle_gateway, false, NULL                    },
    {"the tenant",       tenant,       true,  NULL                    },
};

static bool serves(struct suite *suite) {
    auto_answer answer = suite_request(suite, "GET", "/v1/models", NULL);
    return answer.status == 200;
}

/* It has come back, and the gateway knows. */
static void replace(struct suite *suite, const struct row *row, struct service *service) {
    assert_ended_well(service, STEP_MS);
    assert_nothing_half_written(suite);
    auto_text log = process_text(service->process.out);
    start_again(suite, service);
    if (row->says && !strstr(log, row->says)) fail_msg("no %s in %s", row->says, log);
    WAIT_FOR(serves(suite), STEP_MS, "the gateway does not find it again");
}

static void drains(struct suite *suite, const struct row *row, const struct herd want[2]) {
    auto_herd running = {0};
    auto_herd fresh = {0};
    print_message("- %s\n", row->name);
    herd_send(&running, suite, 0, HERD, HELD_TOKENS);
    herd_begun(&running);
    struct service *service = row->pick(suite);
    process_signal(&service->process, SIGTERM);
    if (row->needed) replace(suite, row, service);
    herd_send(&fresh, suite, HERD, HERD, TOKENS); /* while it ends */
    herd_rest(&running);
    herd_rest(&fresh);
    herd_equal(&running, &want[0]);
    herd_equal(&fresh, &want[1]);
    if (!row->needed) replace(suite, row, service);
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        WAIT_FOR(worker_is_free(&suite->workers[i]), STEP_MS, "a slot is left");
}

static void each_service_loses_nothing(void **state) {
    struct suite *suite = *state;
    struct herd want[2];
    herd_send(&want[0], suite, 0, HERD, HELD_TOKENS);
    herd_rest(&want[0]);
    herd_send(&want[1], suite, HERD, HERD, TOKENS);
    herd_rest(&want[1]);
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        drains(suite, &rows[i], want);
    herd_close(&want[0]);
    herd_close(&want[1]);
}

/* -- a gateway with streams -- */

static void assert_told_to_go(const struct http_conn *conn) {
    char value[16] = "";
    assert_int_equal(conn->status, 503);
    assert_non_null(strstr(conn->body.at, "gateway_shutting_down"));
    assert_true(http_header(conn, "connection", value, sizeof value));
    assert_string_equal(value, "close");
    assert_true(http_header(conn, "retry-after", value, sizeof value));
    assert_in_range(strtoul(value, NULL, 10), 1, 60);
}

static void list_models(const struct suite *suite, struct http_conn *conn) {
    char bearer[128];
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {
        .method = "GET", .path = "/v1/models", .headers = WORDS(bearer)};
    MUST(http_send(conn, &request, &err));
    MUST(http_read_all(conn, STEP_MS, &err));
}

static void twenty_streams_end_and_new_requests_are_refused(void **state) {
    struct suite *suite = *state;
    struct service *gateway = &suite->gateways[0];
    auto_herd want = {0};
    auto_herd streams = {0};
    auto_http kept = {0}; /* a connection from before */
    herd_send(&want, suite, 0, STREAMS, TOKENS);
    herd_rest(&want);
    MUST(http_open(&kept, gateway->port, &err));
    herd_send(&streams, suite, 0, STREAMS, TOKENS);
    herd_begun(&streams);
    process_signal(&gateway->process, SIGTERM);
    WAIT_FOR(service_get(gateway, "/readyz") == 503, STEP_MS, "it stays ready");
    assert_int_equal(service_get(gateway, "/livez"), 200);
    list_models(suite, &kept);
    assert_told_to_go(&kept);
    auto_answer refused =
        suite_request(suite, "POST", "/v1/completions", suite_prompt(PROMPT, NULL));
    assert_told_to_go(&refused.conn);
    herd_rest(&streams);
    herd_equal(&streams, &want);
    assert_ended_well(gateway, STEP_MS);
    start_again(suite, gateway);
}

/* -- twice -- */

static void workers_signal(struct suite *suite, int signal) {
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        process_signal(&suite->workers[i].process, signal);
}

/* What comes with the first signal is the first; then there is no more patience. The answer does
 * not end meanwhile: its worker stands still. */
static void a_second_signal_ends_it_at_once(void **state) {
    struct suite *suite = *state;
    struct service *gateway = &suite->gateways[0];
    auto_stream stream = {0};
    MUST(stream_open(&stream, suite, PROMPT, json_pack("{s:i}", "max_tokens", LONG), &err));
    MUST(stream_until(&stream, 3, &err));
    workers_signal(suite, SIGSTOP);
    process_signal(&gateway->process, SIGTERM);
    WAIT_FOR(service_get(gateway, "/readyz") == 503, STEP_MS, "it stays ready");
    process_signal(&gateway->process, SIGINT);
    assert_false(ends_within(gateway, AGAIN_MS));
    process_signal(&gateway->process, SIGINT);
    assert_true(ends_within(gateway, PROMPT_MS));
    workers_signal(suite, SIGCONT);
    assert_int_equal(gateway->process.code, 128 + SIGINT);
    start_again(suite, gateway);
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        WAIT_FOR(worker_is_free(&suite->workers[i]), LONG_END_MS, "a slot is left");
}

/* -- at the start, and without Redis -- */

/* From its first line on: before, nothing of ours runs. */
static bool blocks_sigterm(const struct service *service) {
    char path[64], line[256];
    unsigned long long blocked = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)service->process.pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "SigBlk:", 7) == 0) blocked = strtoull(line + 7, NULL, 16);
    if (file) (void)fclose(file);
    return blocked & (1ULL << (SIGTERM - 1));
}

static void start_and_end(struct suite *suite, struct service *service) {
    process_stop(&service->process);
    assert_int_equal(service->process.code, 0);
    suite_service_start(suite, service);
    WAIT_FOR(blocks_sigterm(service), STEP_MS, "%s does not start", service->process.name);
    process_signal(&service->process, SIGTERM);
    assert_ended_well(service, PROMPT_MS);
    start_again(suite, service);
}

static void a_start_can_be_ended(void **state) {
    struct suite *suite = *state;
    struct service *service;
    for (uint32_t i = 0; (service = suite_service(suite, i)); i++)
        start_and_end(suite, service);
}

static void without_redis_they_end_too(void **state) {
    struct suite *suite = *state;
    struct service *service;
    redis_fixture_kill(&suite->redis);
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        WAIT_FOR(service_get(&suite->workers[i], "/readyz") == 503, STEP_MS, "it stays ready");
    for (uint32_t i = 0; (service = suite_service(suite, i)); i++) {
        process_signal(&service->process, SIGTERM);
        assert_ended_well(service, PROMPT_MS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_service_loses_nothing),
        cmocka_unit_test(twenty_streams_end_and_new_requests_are_refused),
        cmocka_unit_test(a_second_signal_ends_it_at_once),
        cmocka_unit_test(a_start_can_be_ended),
        cmocka_unit_test(without_redis_they_end_too),
    };
    return suite_main("drain", tests, FX_TEST_COUNT(tests),
                      &(struct suite_opts){.workers = 2,
                                           .schedulers = 2,
                                           .gateways = 2,
                                           .worker_env = WORDS("FX_BACKEND=ref", "FX_DRAIN_MS=10"),
                                           .env = WORDS("FX_LEASE_MS=60000", "FX_RENEW_MS=400")});
}
