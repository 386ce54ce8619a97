#include "tests/integ/gateway/processes.h"
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "common/base/hash.h"
#include "fractal/v1/slicer.pb-c.h"
#include "fractal/v1/tenant.pb-c.h"

enum { READY_MS = 60000, ARENA_BYTES = 65536 };

/* The same bits either way. Slowly, so that there is time to interfere; ASan is slow enough. */
#if defined(__SANITIZE_ADDRESS__)
#define BACKEND "cpu"
#else
#define BACKEND "ref"
#endif

static void free_address(char out[32]) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    close(fd);
    (void)snprintf(out, 32, "127.0.0.1:%u", ntohs(in.sin_port));
}

uint16_t processes_port(const char *address) {
    return (uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10);
}

/* -- processes -- */

static void variables_set(const struct processes *all, const struct process *process) {
    char token_file[128];
    (void)snprintf(token_file, sizeof token_file, "%s/token", all->folder);
    (void)setenv("FX_REDIS_URL", all->redis.url, 1);
    (void)setenv("FX_MODEL_DIR", all->folder, 1);
    (void)setenv("FX_BOOTSTRAP_TOKEN_FILE", token_file, 1);
    (void)setenv("FX_TENANT_ADDR", all->tenant.grpc, 1);
    (void)setenv("FX_SLICER_ADDR", all->slicer.grpc, 1);
    (void)setenv("FX_SCHEDULER_ADDR", all->scheduler.grpc, 1);
    (void)setenv("FX_HTTP_ADDR", all->http, 1);
    (void)setenv("FX_MODEL", "tiny", 1);
    (void)setenv("FX_BACKEND", BACKEND, 1);
    (void)setenv("FX_LOG_LEVEL", "error", 1);
    (void)setenv("FX_GRPC_ADDR", process->grpc, 1);
    (void)setenv("FX_ADMIN_ADDR", process->admin, 1);
}

static void run(const struct processes *all, struct process *process, const char *program) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/fractal-%s", FX_BIN_DIR, program);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid) return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    variables_set(all, process);
    (void)execl(path, path, (char *)NULL);
    _exit(127);
}

static bool is_ready(const struct process *process) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(processes_port(process->admin)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool closed, ready = false;
    if (connect(fd, (struct sockaddr *)&in, sizeof in) == 0) {
        wire_say(fd, "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        char *answer = wire_read(fd, NULL, &closed);
        ready = wire_status(answer) == 200;
        free(answer);
    }
    close(fd);
    return ready;
}

static void await(const struct process *process, const char *what) {
    for (uint64_t end_ms = fx_clock_ms() + READY_MS; fx_clock_ms() < end_ms; usleep(20000)) {
        if (is_ready(process)) return;
        if (waitpid(process->pid, NULL, WNOHANG) != 0) fail_msg("%s ended", what);
    }
    fail_msg("%s is not ready", what);
}

/* -- what an administrator does -- */

static fx_client *client_of(struct process *process) {
    struct fx_client_opts opts = {.target = process->grpc};
    fx_error err = {0};
    if (!process->client && !fx_client_open(&opts, &process->client, &err))
        fail_msg("%s", err.text);
    return process->client;
}

static void bearer_of(const struct processes *all, char out[96]) {
    (void)snprintf(out, 96, "Bearer %s", all->token);
}

void processes_call(struct process *process, const struct processes *all,
                    struct fx_client_request *request, void *out) {
    char bearer[96];
    struct fx_client_metadata metadata = {"authorization", bearer};
    fx_client *client = client_of(process);
    fx_error err = {0};
    bearer_of(all, bearer);
    request->metadata = &metadata;
    request->metadata_count = 1;
    request->deadline_ms = 10000;
    request->wait_for_ready = true;
    if (!fx_client_call_wait(client, request, out, &err))
        fail_msg("%s: %s", request->method, err.text);
}

static bool on_progress(void *user, const void *message) {
    *(bool *)user = ((const Fractal__V1__ImportProgress *)message)->done;
    return true;
}

static void model_import(struct processes *all) {
    char bearer[96];
    struct fx_client_metadata metadata = {"authorization", bearer};
    Fractal__V1__ImportModelRequest message = FRACTAL__V1__IMPORT_MODEL_REQUEST__INIT;
    bool done = false;
    struct fx_client_request request = {.method = "/fractal.v1.SlicerService/ImportModel",
                                        .message = &message,
                                        .reply = &fractal__v1__import_progress__descriptor,
                                        .deadline_ms = READY_MS,
                                        .metadata = &metadata,
                                        .metadata_count = 1,
                                        .wait_for_ready = true,
                                        .user = &done,
                                        .on_message = on_progress};
    fx_client *client = client_of(&all->slicer);
    fx_error err = {0};
    bearer_of(all, bearer);
    message.folder = FX_SOURCE_DIR "/models/fractal-tiny-moe";
    message.name = "tiny";
    message.dtype = "f16";
    if (!fx_client_stream_wait(client, &request, &err)) fail_msg("%s", err.text);
    assert_true(done);
}

static void tenant_make(struct processes *all) {
    static uint8_t memory[ARENA_BYTES];
    fx_arena arena;
    Fractal__V1__CreateTenantRequest message = FRACTAL__V1__CREATE_TENANT_REQUEST__INIT;
    Fractal__V1__Tenant *reply;
    struct fx_client_request request = {.method = "/fractal.v1.TenantService/CreateTenant",
                                        .message = &message,
                                        .reply = &fractal__v1__tenant__descriptor,
                                        .arena = &arena};
    message.name = "test";
    fx_arena_init(&arena, memory, sizeof memory);
    processes_call(&all->tenant, all, &request, &reply);
    fx_arena_done(&arena);
}

void processes_key(struct processes *all, char out[128]) {
    static uint8_t memory[ARENA_BYTES];
    fx_arena arena;
    Fractal__V1__CreateKeyRequest message = FRACTAL__V1__CREATE_KEY_REQUEST__INIT;
    Fractal__V1__CreateKeyReply *reply;
    struct fx_client_request request = {.method = "/fractal.v1.TenantService/CreateKey",
                                        .message = &message,
                                        .reply = &fractal__v1__create_key_reply__descriptor,
                                        .arena = &arena};
    message.tenant = "test";
    fx_arena_init(&arena, memory, sizeof memory);
    processes_call(&all->tenant, all, &request, &reply);
    (void)snprintf(out, 128, "%s", reply->key);
    fx_arena_done(&arena);
}

/* -- life -- */

static void token_write(struct processes *all) {
    uint8_t random[32];
    char path[128];
    fx_random(random, sizeof random);
    fx_hex((fx_span){random, sizeof random}, all->token);
    (void)snprintf(path, sizeof path, "%s/token", all->folder);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, all->token, 64) == 64);
    close(fd);
}

void processes_start(struct processes *all) {
    struct process *const each[] = {&all->tenant,  &all->slicer,     &all->scheduler,
                                    &all->gateway, &all->workers[0], &all->workers[1]};
    (void)snprintf(all->folder, sizeof all->folder, "/tmp/fx-path-XXXXXX");
    assert_non_null(mkdtemp(all->folder));
    token_write(all);
    redis_fixture_start(&all->redis, NULL);
    free_address(all->http);
    for (size_t i = 0; i < FX_TEST_COUNT(each); i++) {
        free_address(each[i]->grpc);
        free_address(each[i]->admin);
    }
    run(all, &all->tenant, "tenant");
    run(all, &all->slicer, "slicer");
    run(all, &all->scheduler, "scheduler");
    await(&all->slicer, "slicer");
    model_import(all);
    run(all, &all->workers[0], "worker");
    run(all, &all->workers[1], "worker");
    run(all, &all->gateway, "gateway");
    await(&all->tenant, "tenant");
    tenant_make(all);
    processes_key(all, all->key);
    await(&all->scheduler, "scheduler");
    await(&all->workers[0], "worker");
    await(&all->workers[1], "worker");
    await(&all->gateway, "gateway");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void processes_stop(struct processes *all) {
    struct process *const each[] = {&all->gateway,   &all->workers[0], &all->workers[1],
                                    &all->scheduler, &all->slicer,     &all->tenant};
    for (size_t i = 0; i < FX_TEST_COUNT(each); i++) {
        fx_client_free(each[i]->client);
        if (each[i]->pid <= 0) continue;
        (void)kill(each[i]->pid, SIGKILL);
        (void)waitpid(each[i]->pid, NULL, 0);
    }
    redis_fixture_stop(&all->redis);
    (void)nftw(all->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
