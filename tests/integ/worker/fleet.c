#include "tests/integ/worker/fleet.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/model/ingest.h"
#include "common/model/store.h"
#include "common/rpc/client.h"

enum { READY_MS = 20000, ENV_MAX = 40, STOP_MS = 10000, STEP_US = 10000 };

/* ---- processes ---- */

struct variables {
    char text[ENV_MAX][256];
    char *at[ENV_MAX + 1];
    size_t count;
};

static void set(struct variables *env, const char *name, const char *value) {
    assert_true(env->count < ENV_MAX);
    (void)snprintf(env->text[env->count], sizeof(env->text[0]), "%s=%s", name, value);
    env->at[env->count] = env->text[env->count];
    env->count++;
}

static void set_all(struct variables *env, const char *const *extra) {
    for (; extra && *extra; extra++) {
        assert_true(env->count < ENV_MAX);
        (void)snprintf(env->text[env->count], sizeof(env->text[0]), "%s", *extra);
        env->at[env->count] = env->text[env->count];
        env->count++;
    }
}

static pid_t spawn(const char *program, struct variables *env, const char *log) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", FX_BIN_DIR, program);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) (void)dup2(fd, STDERR_FILENO);
    char *const args[] = {path, NULL};
    (void)execve(path, args, env->at);
    _exit(127);
}

static void show(const char *log) {
    char line[512];
    fx_auto(FILE) file = fopen(log, "re");
    while (file && fgets(line, sizeof line, file))
        (void)fprintf(stderr, "| %s", line);
}

static int end(pid_t pid, int signal) {
    int status = -1;
    (void)kill(pid, signal);
    for (uint32_t waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited += STEP_US / 1000) {
        (void)usleep(STEP_US);
        if (waited == STOP_MS) (void)kill(pid, SIGKILL);
    }
    return status;
}

/* ---- the fleet ---- */

static void scheduler_start(struct fleet *fleet) {
    struct variables env = {0};
    char address[160], log[160];
    (void)snprintf(fleet->scheduler_socket, sizeof fleet->scheduler_socket, "%s/sched",
                   fleet->redis.folder);
    (void)snprintf(address, sizeof address, "unix:%s", fleet->scheduler_socket);
    (void)snprintf(log, sizeof log, "%s/scheduler.log", fleet->redis.folder);
    set(&env, "FX_REDIS_URL", fleet->redis.url);
    set(&env, "FX_GRPC_ADDR", address);
    set(&env, "FX_ADMIN_ADDR", "127.0.0.1:0");
    fleet->scheduler = spawn("fractal-scheduler", &env, log);
}

void fleet_worker_start(struct fleet *fleet, uint32_t number, const char *const *extra) {
    struct variables env = {0};
    struct fleet_worker *worker = &fleet->workers[number];
    char address[160], scheduler[160], folder[sizeof fleet->redis.folder];
    memcpy(folder, fleet->redis.folder, sizeof folder);
    (void)snprintf(worker->socket, sizeof worker->socket, "%s/w%u", folder, number);
    (void)snprintf(worker->log, sizeof worker->log, "%s/w%u.log", folder, number);
    (void)snprintf(address, sizeof address, "unix:%s", worker->socket);
    (void)snprintf(scheduler, sizeof scheduler, "unix:%s", fleet->scheduler_socket);
    set(&env, "FX_MODEL", FLEET_MODEL);
    set(&env, "FX_MODEL_DIR", fleet->store);
    set(&env, "FX_REDIS_URL", fleet->redis.url);
    set(&env, "FX_SCHEDULER_ADDR", scheduler);
    set(&env, "FX_GRPC_ADDR", address);
    set(&env, "FX_ADMIN_ADDR", "127.0.0.1:0");
    set(&env, "FX_THREADS", "1");
    set_all(&env, extra);
    worker->pid = spawn("fractal-worker", &env, worker->log);
}

void fleet_worker_stop(struct fleet *fleet, uint32_t number) {
    struct fleet_worker *worker = &fleet->workers[number];
    int status = end(worker->pid, SIGTERM);
    worker->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        show(worker->log);
        fail_msg("the worker ended with %d", status);
    }
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
            show(fleet->workers[0].log);
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
        if (fleet->workers[i].pid > 0) (void)end(fleet->workers[i].pid, SIGKILL);
    if (fleet->scheduler > 0) (void)end(fleet->scheduler, SIGKILL);
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

uint64_t fleet_proc_kib(const struct fleet *fleet, uint32_t worker, const char *key) {
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)fleet->workers[worker].pid);
    fx_auto(FILE) file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) return strtoull(line + strlen(key), NULL, 10);
    fail_msg("%s has no %s", path, key);
    return 0;
}

bool fleet_log_has(const struct fleet *fleet, uint32_t worker, const char *text) {
    char line[512];
    fx_auto(FILE) file = fopen(fleet->workers[worker].log, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strstr(line, text)) return true;
    return false;
}
