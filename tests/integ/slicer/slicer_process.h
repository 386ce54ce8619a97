#pragma once
/* The real fractal-slicer on a model store of the test's own. */
#include "tests/fx_test.h"
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "common/base/clock.h"
#include "common/rpc/client.h"
#include "fractal/v1/slicer.pb-c.h"
#include "tests/unit/model/store_fixture.h"

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
enum { LOG_MAX = 16384, REPLY_BYTES = 4 * 1024 * 1024, CALL_MS = 60000 };

struct slicer_process {
    struct fixture_dir dir; /* token, models/, and what the test puts there */
    char store[FIXTURE_PATH];
    const char *more; /* NAME=value that slicer_run() sets beside; or NULL */
    pid_t pid;
    int log_fd; /* its stderr */
    char log[LOG_MAX];
    unsigned port, admin_port;
    fx_client *client;
};

/* Runs the program with these NAME=value only; its stderr (and stdout) come to log_fd. */
static inline void slicer_exec(struct slicer_process *process, const char *const *env) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        const char *const args[] = {"fractal-slicer", NULL};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execve(FX_BIN_DIR "/fractal-slicer", (char *const *)(uintptr_t)args,
                     (char *const *)(uintptr_t)env);
        _exit(127);
    }
    (void)close(ends[1]);
    process->log_fd = ends[0];
    process->log[0] = '\0';
}

/* Reads its log until `text` (NULL: the end) is there; false after 20 s, or at its end. */
static inline bool slicer_log_until(struct slicer_process *process, const char *text) {
    uint64_t end = fx_clock_ms() + 20000;
    while (!text || !strstr(process->log, text)) {
        struct pollfd wait = {.fd = process->log_fd, .events = POLLIN};
        size_t len = strlen(process->log);
        if (fx_clock_ms() > end || len >= LOG_MAX - 1) return false;
        if (poll(&wait, 1, 100) <= 0) continue;
        ssize_t got = read(process->log_fd, process->log + len, LOG_MAX - 1 - len);
        if (got <= 0) return text == NULL;
        process->log[len + (size_t)got] = '\0';
    }
    return true;
}

static inline unsigned log_number(const char *log, const char *key) {
    const char *at = strstr(log, key);
    assert_non_null(at);
    return (unsigned)strtoul(at + strlen(key), NULL, 10);
}

/* Starts the program on process->dir, also again after its end. */
static inline void slicer_run(struct slicer_process *process) {
    char token[FIXTURE_PATH + 32], store[FIXTURE_PATH + 16], target[32];
    fx_error err = {0};
    (void)snprintf(token, sizeof token, "FX_BOOTSTRAP_TOKEN_FILE=%s/token", process->dir.path);
    (void)snprintf(store, sizeof store, "FX_MODEL_DIR=%s", process->store);
    const char *const env[] = {
        "FX_GRPC_ADDR=127.0.0.1:0", "FX_ADMIN_ADDR=127.0.0.1:0", token, store, process->more, NULL};
    slicer_exec(process, env);
    if (!slicer_log_until(process, "event=ready")) fail_msg("%s", process->log);
    process->port = log_number(process->log, " port=");
    process->admin_port = log_number(process->log, "admin_port=");
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", process->port);
    const struct fx_client_opts opts = {.target = target,
                                        .message_bytes_max = REPLY_BYTES,
                                        .arena_bytes = REPLY_BYTES,
                                        .attempts_max = 1};
    assert_true(fx_client_open(&opts, &process->client, &err));
}

static inline void slicer_start(struct slicer_process *process) {
    char path[FIXTURE_PATH];
    *process = (struct slicer_process){0};
    fixture_dir_make(&process->dir);
    fixture_path(process->store, process->dir.path, "models");
    fixture_write(process->dir.path, "token", TOKEN "\n", sizeof TOKEN);
    fixture_path(path, process->dir.path, "token");
    assert_int_equal(chmod(path, 0600), 0);
    slicer_run(process);
}

/* Ends it by `signal`: its wait status. */
static inline int slicer_end(struct slicer_process *process, int signal) {
    int status = -1;
    if (process->pid > 0) (void)kill(process->pid, signal);
    (void)slicer_log_until(process, NULL);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    (void)close(process->log_fd);
    process->pid = 0;
    fx_client_free(process->client);
    process->client = NULL;
    return status;
}

static inline void slicer_stop(struct slicer_process *process) {
    if (process->pid > 0) assert_int_equal(slicer_end(process, SIGTERM), 0);
    fixture_dir_remove(&process->dir);
}

/* A blocking call; *out lives until the next one. */
static inline enum fx_code slicer_call(struct slicer_process *process, const char *method,
                                       const void *message, const ProtobufCMessageDescriptor *reply,
                                       void *out, fx_error *err) {
    static uint8_t memory[REPLY_BYTES];
    static fx_arena arena;
    if (arena.base) fx_arena_done(&arena);
    fx_arena_init(&arena, memory, sizeof memory);
    const struct fx_client_request request = {.method = method,
                                              .message = message,
                                              .reply = reply,
                                              .deadline_ms = CALL_MS,
                                              .wait_for_ready = true,
                                              .arena = &arena};
    *err = (fx_error){0};
    return fx_client_call_wait(process->client, &request, out, err) ? FX_OK : err->code;
}

/* What an import told. `at` is called with each message; false hangs up. */
struct import {
    const char *folder, *name, *dtype, *token;
    bool (*at)(struct import *import, const Fractal__V1__ImportProgress *message);
    struct slicer_process *process;
    void *user;
    uint32_t messages;
    char stages[256]; /* each once, with a blank after it */
    uint64_t done_bytes, total_bytes;
    bool done, broken; /* broken: a message after the last, or one that goes back */
    char version[16], digest[80], numerics_id[96];
    uint32_t number;
    fx_error err;
};

static inline void import_note_stage(struct import *import, const char *stage) {
    size_t len = strlen(import->stages), stage_len = strlen(stage);
    bool known =
        len > stage_len && strncmp(import->stages + len - 1 - stage_len, stage, stage_len) == 0;
    if (!known) (void)snprintf(import->stages + len, sizeof import->stages - len, "%s ", stage);
}

static inline bool import_on_message(void *user, const void *message_) {
    struct import *import = user;
    const Fractal__V1__ImportProgress *message = message_;
    import->broken |=
        import->done || message->done_bytes< import->done_bytes ||
                      message->done_bytes > message->total_bytes;
    import->messages++;
    import->done_bytes = message->done_bytes;
    import->total_bytes = message->total_bytes;
    import_note_stage(import, message->stage);
    import->done = message->done;
    if (message->model) {
        (void)snprintf(import->version, sizeof import->version, "%s", message->model->version);
        (void)snprintf(import->digest, sizeof import->digest, "%s",
                       message->model->tokenizer_digest);
        (void)snprintf(import->numerics_id, sizeof import->numerics_id, "%s",
                       message->model->numerics_id);
        import->number = message->model->number;
    }
    return !import->at || import->at(import, message);
}

static inline enum fx_code slicer_import_model(struct slicer_process *process,
                                               struct import *import) {
    char bearer[128];
    Fractal__V1__ImportModelRequest message = FRACTAL__V1__IMPORT_MODEL_REQUEST__INIT;
    message.folder = (char *)(uintptr_t)import->folder;
    message.name = (char *)(uintptr_t)import->name;
    message.dtype = (char *)(uintptr_t)(import->dtype ? import->dtype : "int4");
    const char *token = import->token ? import->token : TOKEN;
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
    const struct fx_client_metadata metadata = {"authorization", bearer};
    const struct fx_client_request request = {.method = "/fractal.v1.SlicerService/ImportModel",
                                              .message = &message,
                                              .reply = &fractal__v1__import_progress__descriptor,
                                              .deadline_ms = CALL_MS,
                                              .metadata = &metadata,
                                              .metadata_count = *token ? 1 : 0,
                                              .wait_for_ready = true,
                                              .user = import,
                                              .on_message = import_on_message};
    import->process = process;
    return fx_client_stream_wait(process->client, &request, &import->err) ? FX_OK
                                                                          : import->err.code;
}

static inline size_t slicer_models(struct slicer_process *process,
                                   Fractal__V1__ListModelsReply **out) {
    Fractal__V1__ListModelsRequest message = FRACTAL__V1__LIST_MODELS_REQUEST__INIT;
    Fractal__V1__ListModelsReply *reply = NULL;
    fx_error err;
    if (slicer_call(process, "/fractal.v1.SlicerService/ListModels", &message,
                    &fractal__v1__list_models_reply__descriptor, &reply, &err) != FX_OK)
        fail_msg("ListModels: %s", err.text);
    if (out) *out = reply;
    return reply->n_models;
}

static inline enum fx_code slicer_verify_model(struct slicer_process *process, const char *name,
                                               Fractal__V1__VerifyModelReply **out, fx_error *err) {
    Fractal__V1__VerifyModelRequest message = FRACTAL__V1__VERIFY_MODEL_REQUEST__INIT;
    message.name = (char *)(uintptr_t)name;
    return slicer_call(process, "/fractal.v1.SlicerService/VerifyModel", &message,
                       &fractal__v1__verify_model_reply__descriptor, out, err);
}

/* What imports that did not end left. */
static inline size_t slicer_left_over(const struct slicer_process *process) {
    char path[FIXTURE_PATH];
    fixture_path(path, process->store, ".import");
    return access(path, F_OK) == 0 ? fixture_entries(path) : 0;
}

/* The body of GET `path` at the admin address; returns the status. */
static inline int slicer_admin(const struct slicer_process *process, const char *path, char *body,
                               size_t cap) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)process->admin_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[256];
    size_t used = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int len = snprintf(request, sizeof request,
                       "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(write(fd, request, (size_t)len), len);
    for (ssize_t got; used < cap - 1 && (got = read(fd, body + used, cap - 1 - used)) > 0;)
        used += (size_t)got;
    (void)close(fd);
    body[used] = '\0';
    return (int)strtol(body + strlen("HTTP/1.1 "), NULL, 10);
}
