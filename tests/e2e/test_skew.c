/* Services of this version beside those of the version before it: whichever of them are old, every
 * answer is the one that all new ones give, and nothing is left behind. */
#include <hiredis/hiredis.h>
#include <signal.h>
#include "tests/chaos/rolling.h"

enum {
    MADE = 8, /* requests of the chaos clients */
    REQUESTS = 12,
    HUNG_UP = 3,   /* chunks before a client hangs up */
    KILLED_AT = 6, /* appends of the worker that dies; each may bring many tokens */
    STEP_MS = 20000,
};

/* The services of the cluster, one bit each. */
enum {
    TENANT = 1,
    SLICER = 2,
    SCHEDULER_A = 4,
    SCHEDULER_B = 8,
    WORKER_A = 16,
    WORKER_B = 32,
    GATEWAY_A = 64,
    GATEWAY_B = 128,
    SCHEDULERS = SCHEDULER_A | SCHEDULER_B,
    WORKERS = WORKER_A | WORKER_B,
    GATEWAYS = GATEWAY_A | GATEWAY_B,
    ALL = 255,
};

static const char *previous; /* the folder of the version before */
static char previous_bin[512];
static struct request requests[REQUESTS];
static struct client recorded[REQUESTS], clients[REQUESTS];
static unsigned old_now;

/* -- who is old -- */

static void replace(struct service *service, bool old) {
    process_stop(&service->process);
    if (service->process.code != 0)
        fail_msg("%s ended with %d", service->process.name, service->process.code);
    service->bin = old ? previous_bin : NULL;
    suite_service_start(&cluster, service);
}

/* Those that are not yet as they shall be are told to end, and started again. */
static void fleet_set(unsigned old) {
    for (uint32_t i = 0; suite_service(&cluster, i); i++)
        if ((old ^ old_now) >> i & 1) replace(suite_service(&cluster, i), old >> i & 1);
    for (uint32_t i = 0; suite_service(&cluster, i); i++)
        suite_await_ready(suite_service(&cluster, i));
    old_now = old;
}

/* -- what is asked -- */

static void request_set(uint32_t number, bool stream, const char *fields) {
    struct request *out = &requests[number];
    auto_json body = suite_prompt("It is a truth universally acknowledged,", NULL);
    auto_json more = json_loads(fields, 0, NULL);
    assert_non_null(more);
    *out = (struct request){.number = number, .choices = 1, .stream = stream};
    assert_int_equal(json_object_update(body, more), 0);
    assert_int_equal(json_object_set_new(body, "stream", json_boolean(stream)), 0);
    size_t len = json_dumpb(body, out->body, sizeof out->body - 1, 0);
    assert_in_range(len, 1, sizeof out->body - 1);
    out->body[len] = 0;
}

/* What both versions take: every kind the chaos clients ask for, stop strings, and all that makes a
 * task one of schema 2. */
static void requests_fill(void) {
    for (uint32_t i = 0; i < MADE; i++)
        request_make(i, &requests[i]);
    request_set(MADE, true, "{\"max_tokens\": 120, \"stop\": [\"the \", \"man\"]}");
    request_set(MADE + 1, false,
                "{\"max_tokens\": 90, \"temperature\": 0.8, \"seed\": 5, \"stop\": [\"e\"],"
                " \"min_tokens\": 40}");
    request_set(MADE + 2, true,
                "{\"max_tokens\": 80, \"temperature\": 1, \"seed\": 7, \"top_p\": 0.9,"
                " \"presence_penalty\": 0.5, \"frequency_penalty\": 0.25,"
                " \"logit_bias\": {\"101\": -4}}");
    request_set(MADE + 3, false, "{\"max_tokens\": 60, \"logprobs\": 2, \"ignore_eos\": true}");
}

static void ask_all(const char *run) {
    memset(clients, 0, sizeof clients);
    for (uint32_t i = 0; i < REQUESTS; i++)
        crowd_ask(&clients[i], &requests[i], run);
}

static void join_all(void) {
    for (uint32_t i = 0; i < REQUESTS; i++)
        crowd_join_same(&clients[i], &recorded[i]);
}

static void free_all(void) {
    for (uint32_t i = 0; i < REQUESTS; i++)
        client_free(&clients[i]);
}

/* A client of the first gateway leaves in mid-answer: whoever is to stop hears of it. */
static void hang_up(void) {
    auto_stream stream = {0};
    MUST(stream_open(&stream, &cluster, "And then", json_pack("{s:i}", "max_tokens", 900), &err));
    MUST(stream_until(&stream, HUNG_UP, &err));
}

/* New gateways tell of what new workers ended, also of what an old scheduler let in. */
static void check_status(const struct client *client) {
    char path[160];
    if (old_now & (GATEWAYS | WORKERS)) return;
    (void)snprintf(path, sizeof path, "/v1/generations/%s", client->name);
    auto_answer answer = suite_request(&cluster, "GET", path, NULL);
    if (answer.status != 200) fail_msg("%s: %u %s", path, answer.status, answer.conn.body.at);
    assert_string_equal(json_string_value(json_object_get(answer.json, "status")), "finished");
}

/* -- what is shared under one name is the same -- */

static const char *const libraries[] = {"common/queue/fractal.lua", "services/gateway/limits.lua",
                                        "services/tenant/tenant.lua"};

static char *file_text(const char *folder, const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("no %s", path);
    char *text = NULL;
    size_t cap = 0;
    assert_true(getdelim(&text, &cap, 0, file) > 0);
    (void)fclose(file);
    return text;
}

/* Two versions would replace each other's functions in Redis for ever. */
static void a_library_of_the_same_name_is_the_same(void **state) {
    (void)state;
    for (uint32_t i = 0; i < FX_TEST_COUNT(libraries); i++) {
        auto_text ours = file_text(FX_SOURCE_DIR, libraries[i]);
        auto_text theirs = file_text(previous, libraries[i]);
        size_t name = strcspn(ours, "\n");
        assert_int_equal(strncmp(ours, "#!lua name=", 11), 0);
        if (strncmp(ours, theirs, name + 1) == 0) assert_string_equal(ours, theirs);
    }
}

/* Redis has what services of that version loaded. */
static void assert_loaded(const char *folder) {
    redisContext *redis = redisConnectUnix(cluster.redis.socket);
    auto_text text = file_text(folder, libraries[0]);
    const char *name = strchr(text, '=') + 1;
    assert_true(redis && !redis->err);
    redisReply *reply =
        redisCommand(redis, "FUNCTION LIST LIBRARYNAME %b", name, strcspn(name, "\n"));
    assert_true(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1);
    freeReplyObject(reply);
    redisFree(redis);
}

/* -- fleets -- */

static const struct fleet {
    const char *name;
    unsigned old;
} fleets[] = {
    {"all are old",                                    ALL                               },
    {"all but the tenant service",                     ALL & ~TENANT                     },
    {"all but the slicer",                             ALL & ~SLICER                     },
    {"all but the schedulers",                         ALL & ~SCHEDULERS                 },
    {"all but the workers",                            ALL & ~WORKERS                    },
    {"all but the gateways",                           ALL & ~GATEWAYS                   },
    {"the tenant service",                             TENANT                            },
    {"the slicer",                                     SLICER                            },
    {"the schedulers",                                 SCHEDULERS                        },
    {"the workers",                                    WORKERS                           },
    {"the gateways",                                   GATEWAYS                          },
    {"one of two schedulers, of workers, of gateways", SCHEDULER_A | WORKER_A | GATEWAY_A},
    {"the others of them",                             SCHEDULER_B | WORKER_A | GATEWAY_B},
};

static void check_fleet(const struct fleet *fleet, uint32_t index) {
    char run[32];
    (void)snprintf(run, sizeof run, "fleet-%u", index);
    uint64_t begin_ms = fx_clock_ms();
    fleet_set(fleet->old);
    ask_all(run);
    hang_up();
    join_all();
    check_status(&clients[0]);
    cluster_await_clean();
    free_all();
    print_message("old: %s (%llu ms)\n", fleet->name,
                  (unsigned long long)(fx_clock_ms() - begin_ms));
}

static void any_service_may_be_old(void **state) {
    (void)state;
    requests_fill();
    crowd_record(recorded, requests, REQUESTS, REQUESTS);
    for (uint32_t i = 0; i < FX_TEST_COUNT(fleets); i++)
        check_fleet(&fleets[i], i);
    assert_loaded(FX_SOURCE_DIR);
    assert_loaded(previous);
}

/* -- one version goes on with the other's work -- */

static const struct handover {
    const char *name;
    unsigned old;
} handovers[] = {
    {"the old scheduler gives a new worker's to the old worker",  SCHEDULER_B | WORKER_B},
    {"the new scheduler gives a new worker's to the old worker",  SCHEDULER_A | WORKER_B},
    {"the old scheduler gives an old worker's to the new worker", SCHEDULER_B | WORKER_A},
    {"the new scheduler gives an old worker's to the new worker", SCHEDULER_A | WORKER_A},
};

static void killed(struct service *service) {
    service->killed = true;
    assert_true(process_wait(&service->process, STEP_MS));
}

/* Worker A dies at an append while others of its generations run, and scheduler A with it. */
static void kill_first_ones(void) {
    struct service *worker = &cluster.workers[0], *scheduler = &cluster.schedulers[0];
    struct proxy_ids held;
    WAIT_FOR(proxy_sprung(cluster_proxy(worker), &held), STEP_MS, "worker A appends nothing");
    process_signal(&scheduler->process, SIGKILL);
    killed(worker);
    killed(scheduler);
    assert_true(held.count > 0);
}

static void start_again(struct service *service) {
    proxy_forget(cluster_proxy(service));
    suite_service_start(&cluster, service);
    suite_await_ready(service);
}

static void assert_same_numerics(void) {
    redisContext *redis = redisConnectUnix(cluster.redis.socket);
    assert_true(redis && !redis->err);
    redisReply *reply = redisCommand(
        redis, "EVAL %s 0", "return redis.call('HVALS', redis.call('KEYS', 'fx:*:workers')[1])");
    assert_true(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= SUITE_MANY);
    const char *first = strrchr(reply->element[0]->str, ' ');
    for (size_t i = 1; first && i < reply->elements; i++)
        assert_string_equal(strrchr(reply->element[i]->str, ' '), first);
    freeReplyObject(reply);
    redisFree(redis);
}

static void check_handover(const struct handover *handover, uint32_t index) {
    static const char resumed[] = "fx_worker_generations_resumed_total";
    struct service *worker = &cluster.workers[0], *heir = &cluster.workers[1];
    char run[32];
    (void)snprintf(run, sizeof run, "handover-%u", index);
    uint64_t begin_ms = fx_clock_ms();
    fleet_set(handover->old);
    assert_same_numerics();
    double before = service_metric(heir, resumed);
    proxy_arm(cluster_proxy(worker), &(struct proxy_trap){.call = "append",
                                                          .when = PROXY_BEFORE,
                                                          .nth = KILLED_AT,
                                                          .pid = worker->process.pid,
                                                          .signal = SIGKILL});
    process_signal(&heir->process, SIGSTOP); /* it has nothing yet, and takes nothing */
    ask_all(run);
    kill_first_ones();
    process_signal(&heir->process, SIGCONT);
    join_all();
    double after = service_metric(heir, resumed);
    start_again(&cluster.schedulers[0]);
    start_again(worker);
    cluster_await_clean();
    free_all();
    assert_true(after > before);
    print_message("%s: %.0f resumed (%llu ms)\n", handover->name, after - before,
                  (unsigned long long)(fx_clock_ms() - begin_ms));
}

static void either_goes_on_with_the_others_work(void **state) {
    (void)state;
    for (uint32_t i = 0; i < FX_TEST_COUNT(handovers); i++)
        check_handover(&handovers[i], i);
}

/* -- an upgrade, and the way back -- */

/* One by one, in the order of starting: workers after schedulers, gateways last. */
static void replace_all(const char *run, const char *bin) {
    struct service *service;
    rolling_begin(run, requests, recorded, REQUESTS);
    for (uint32_t i = 0; (service = suite_service(&cluster, i)); i++)
        rolling_replace(service, bin);
    (void)rolling_end();
}

static void an_upgrade_under_load_loses_nothing(void **state) {
    (void)state;
    fleet_set(ALL);
    replace_all("upgrade", NULL);
    replace_all("downgrade", previous_bin);
    old_now = ALL;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_of_the_same_name_is_the_same),
        cmocka_unit_test(any_service_may_be_old),
        cmocka_unit_test(either_goes_on_with_the_others_work),
        cmocka_unit_test(an_upgrade_under_load_loses_nothing),
    };
    if (argc != 2) {
        (void)fprintf(stderr, "usage: previous.sh %s\n", argv[0]);
        return 2;
    }
    previous = argv[1];
    (void)snprintf(previous_bin, sizeof previous_bin, "%s/bin", previous);
    return cluster_main("skew", tests, FX_TEST_COUNT(tests), &cluster_opts);
}
