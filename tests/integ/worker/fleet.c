#include "tests/integ/worker/fleet.h"
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/model/ingest.h"
#include "common/model/store.h"
#include "common/rpc/client.h"

enum { READY_MS = 20000 };

static void show(const struct fleet_worker *worker) {
    char *text = process_text(worker->process.out);
    (void)fprintf(stderr, "%s\n", text);
    free(text);
}

/* ---- the fleet ---- */

static void start(struct process *process, const char *program, const struct process_env *env) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", FX_BIN_DIR, program);
    process_start(process, program, &(struct process_opts){.args = WORDS(path), .env = env});
}

static void scheduler_start(struct fleet *fleet) {
    struct process_env env = {0};
    (void)snprintf(fleet->scheduler_socket, sizeof fleet->scheduler_socket, "%s/sched",
                   fleet->redis.folder);
    process_env_put(&env, "FX_REDIS_URL=%s", fleet->redis.url);
    process_env_put(&env, "FX_GRPC_ADDR=unix:%s", fleet->scheduler_socket);
    process_env_put(&env, "FX_ADMIN_ADDR=127.0.0.1:0");
    start(&fleet->scheduler, "fractal-scheduler", &env);
}

void fleet_worker_start(struct fleet *fleet, uint32_t number, const char *const *extra) {
    struct process_env env = {0};
    struct fleet_worker *worker = &fleet->workers[number];
    char folder[sizeof fleet->redis.folder];
    memcpy(folder, fleet->redis.folder, sizeof folder);
    process_close(&worker->process);
    (void)snprintf(worker->socket, sizeof worker->socket, "%s/w%u", folder, number);
    process_env_put(&env, "FX_MODEL=%s", FLEET_MODEL);
    process_env_put(&env, "FX_MODEL_DIR=%s", fleet->store);
    process_env_put(&env, "FX_REDIS_URL=%s", fleet->redis.url);
    process_env_put(&env, "FX_SCHEDULER_ADDR=unix:%s", fleet->scheduler_socket);
    process_env_put(&env, "FX_GRPC_ADDR=unix:%s", worker->socket);
    process_env_put(&env, "FX_ADMIN_ADDR=127.0.0.1:0");
    process_env_put(&env, "FX_THREADS=1");
    process_env_put_all(&env, extra);
    start(&worker->process, "fractal-worker", &env);
}

void fleet_worker_stop(struct fleet *fleet, uint32_t number) {
    struct fleet_worker *worker = &fleet->workers[number];
    process_stop(&worker->process);
    if (worker->process.code == 0) return;
    show(worker);
    fail_msg("the worker ended with %d", worker->process.code);
}

static void store_make(struct fleet *fleet) {
    char folder[512];
    fx_error err = {0};
    (void)snprintf(fleet->store, sizeof fleet->store, "%s/store", fleet->redis.folder);
    assert_int_equal(mkdir(fleet->store, 0700), 0);
    (void)snprintf(folder, sizeof folder, "%s/models/%s", FX_SOURCE_DIR, FLEET_MODEL);
    const struct fx_ingest_opts opts = {
        .folder = folder, .store_dir = fleet->store, .name = FLEET_MODEL, .dtype = FX_MODEL_INT4};
    if (!fx_ingest(&opts, NULL, &err)) fail_msg("%s", err.text);
}

static void client_open(struct fleet *fleet) {
    fx_error err = {0};
    fleet->base = event_base_new();
    assert_non_null(fleet->base);
    const struct fx_redis_opts redis = {
        .base = fleet->base, .url = fleet->redis.url, .library = fx_queue_library()};
    if (!fx_redis_open(&redis, &fleet->client, &err) ||
        !fx_redis_wait_ready(fleet->client, READY_MS, &err) ||
        !fx_queue_open(&(struct fx_queue_opts){.redis = fleet->client, .silence_ms = 100},
                       &fleet->queue, &err))
        fail_msg("%s", err.text);
}

struct live {
    uint32_t workers;
    bool answered;
};

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct live *live = ctx;
    live->answered = true;
    if (!err) live->workers = stats->workers;
}

static bool is_answered(void *ctx) {
    return ((struct live *)ctx)->answered;
}

void fleet_wait_workers(struct fleet *fleet, uint32_t workers) {
    uint64_t deadline_ms = fx_clock_ms() + READY_MS;
    struct live live = {0};
    while (live.workers < workers) {
        fx_error err = {0};
        live.answered = false;
        assert_true(fx_queue_stats(fleet->queue, fleet->model, on_stats, &live, &err));
        fleet_until(fleet, is_answered, &live, READY_MS);
        if (fx_clock_ms() > deadline_ms) {
            show(&fleet->workers[0]);
            fail_msg("%u of %u workers came", live.workers, workers);
        }
        fleet_sleep(fleet, 20);
    }
}

struct fleet *fleet_open(uint32_t workers, const char *const *env) {
    struct fleet *fleet = fx_alloc(1, sizeof(*fleet));
    assert_non_null(fleet);
    fleet->model = fx_model_number(FLEET_MODEL);
    redis_fixture_start(&fleet->redis, NULL);
    store_make(fleet);
    client_open(fleet);
    scheduler_start(fleet);
    for (uint32_t i = 0; i < workers; i++)
        fleet_worker_start(fleet, i, env);
    fleet_wait_workers(fleet, workers);
    return fleet;
}

void fleet_close(struct fleet **at) {
    struct fleet *fleet = *at;
    if (!fleet) return;
    for (uint32_t i = 0; i < FLEET_WORKERS_MAX; i++)
        process_close(&fleet->workers[i].process);
    process_close(&fleet->scheduler);
    fx_queue_free(fleet->queue);
    fx_redis_free(fleet->client);
    if (fleet->base) event_base_free(fleet->base);
    redis_fixture_stop(&fleet->redis);
    free(fleet);
}

Fractal__V1__WorkerStatus fleet_status(struct fleet *fleet, uint32_t worker) {
    char target[160];
    uint8_t bytes[4096];
    fx_arena arena;
    fx_error err = {0};
    fx_auto(fx_client) client = NULL;
    (void)snprintf(target, sizeof target, "unix:%s", fleet->workers[worker].socket);
    fx_arena_init(&arena, bytes, sizeof bytes);
    Fractal__V1__GetWorkerRequest message = FRACTAL__V1__GET_WORKER_REQUEST__INIT;
    Fractal__V1__WorkerStatus *reply = NULL, copy;
    const struct fx_client_request request = {
        .method = "/fractal.v1.WorkerService/GetWorker",
        .message = &message,
        .reply = &fractal__v1__worker_status__descriptor,
        .deadline_ms = 5000,
        .arena = &arena,
    };
    if (!fx_client_open(&(struct fx_client_opts){.target = target, .health_check_off = true},
                        &client, &err) ||
        !fx_client_call_wait(client, &request, &reply, &err))
        fail_msg("GetWorker: %s", err.text);
    copy = *reply;
    copy.worker = copy.model_name = copy.backend = NULL; /* they lie in the arena */
    fx_arena_done(&arena);
    return copy;
}

Fractal__V1__WorkerStatus fleet_idle(struct fleet *fleet, uint32_t worker) {
    uint64_t until_ms = fx_clock_ms() + 3000;
    for (;;) {
        Fractal__V1__WorkerStatus status = fleet_status(fleet, worker);
        bool idle = status.slots_free == status.slots && status.kv_blocks_free == status.kv_blocks;
        if (idle) return status;
        if (fx_clock_ms() >= until_ms)
            fail_msg("%u of %u slots, %u of %u KV blocks free", status.slots_free, status.slots,
                     status.kv_blocks_free, status.kv_blocks);
        fleet_sleep(fleet, 5);
    }
}

uint64_t fleet_proc_kib(const struct fleet *fleet, uint32_t worker, const char *key) {
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)fleet->workers[worker].process.pid);
    fx_auto(FILE) file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) return strtoull(line + strlen(key), NULL, 10);
    fail_msg("%s has no %s", path, key);
    return 0;
}

bool fleet_log_has(const struct fleet *fleet, uint32_t worker, const char *text) {
    char *log = process_text(fleet->workers[worker].process.out);
    bool has = strstr(log, text) != NULL;
    free(log);
    return has;
}
