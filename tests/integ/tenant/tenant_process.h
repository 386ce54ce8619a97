#pragma once
/* The real fractal-tenant on a Redis of the test's own. */
#include "tests/fx_test.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/rpc/client.h"
#include "fractal/v1/tenant.pb-c.h"
#include "tests/integ/queue/redis_fixture.h"

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
enum { ENV_MAX = 16, LOG_MAX = 8192, REPLY_BYTES = 1024 * 1024 };

struct tenant_process {
    struct redis_fixture redis;
    char token_file[128];
    pid_t pid;
    int log_fd;
    char log[LOG_MAX];
    unsigned port, admin_port;
};

static inline void write_file(const char *path, const char *text, mode_t mode) {
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

/* Runs the program with these NAME=value only; its stderr and stdout go to log_fd, a file, so that
 * nobody need read along. */
static inline void tenant_exec(struct tenant_process *process, const char *const *env,
                               const char *argument) {
    process->log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(process->log_fd >= 0);
    process->log[0] = '\0';
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        const char *const args[] = {"fractal-tenant", argument, NULL};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(process->log_fd, STDERR_FILENO);
        (void)dup2(process->log_fd, STDOUT_FILENO);
        (void)execve(FX_BIN_DIR "/fractal-tenant", (char *const *)(uintptr_t)args,
                     (char *const *)(uintptr_t)env);
        _exit(127);
    }
}

/* The log so far, from its start, as much as fits. */
static inline void tenant_log_read(struct tenant_process *process) {
    ssize_t got = pread(process->log_fd, process->log, LOG_MAX - 1, 0);
    process->log[got > 0 ? got : 0] = '\0';
}

/* Waits until the log has `text`; false after 10 s. */
static inline bool tenant_log_until(struct tenant_process *process, const char *text) {
    uint64_t end = fx_clock_ms() + 10000;
    do {
        tenant_log_read(process);
        if (strstr(process->log, text)) return true;
        usleep(5000);
    } while (fx_clock_ms() < end);
    return false;
}

static inline unsigned log_number(const char *log, const char *key) {
    const char *at = strstr(log, key);
    assert_non_null(at);
    return (unsigned)strtoul(at + strlen(key), NULL, 10);
}

/* `more`: further NAME=value, NULL at the end; or NULL. */
static inline void tenant_start_with(struct tenant_process *process, const char *const *more) {
    char token[192], redis[192];
    *process = (struct tenant_process){0};
    redis_fixture_start(&process->redis, NULL);
    (void)snprintf(process->token_file, sizeof process->token_file, "%s/token",
                   process->redis.folder);
    write_file(process->token_file, TOKEN "\n", 0600);
    (void)snprintf(token, sizeof token, "FX_BOOTSTRAP_TOKEN_FILE=%s", process->token_file);
    (void)snprintf(redis, sizeof redis, "FX_REDIS_URL=%s", process->redis.url);
    const char *env[ENV_MAX] = {"FX_GRPC_ADDR=127.0.0.1:0", "FX_ADMIN_ADDR=127.0.0.1:0", token,
                                redis};
    for (size_t i = 0; more && more[i]; i++)
        env[4 + i] = more[i];
    tenant_exec(process, env, NULL);
    bool up = tenant_log_until(process, "event=redis_ready") &&
              tenant_log_until(process, "event=started"); /* by another thread: any order */
    if (!up) print_error("%s\n", process->log);
    assert_true(up);
    process->port = log_number(process->log, " port=");
    process->admin_port = log_number(process->log, "admin_port=");
}

static inline void tenant_start(struct tenant_process *process) {
    tenant_start_with(process, NULL);
}

/* Its exit status; killed when it does not end within 20 s. */
static inline int tenant_wait(struct tenant_process *process) {
    uint64_t end = fx_clock_ms() + 20000;
    int status = -1;
    pid_t ended;
    while ((ended = waitpid(process->pid, &status, WNOHANG)) == 0 && fx_clock_ms() < end)
        usleep(2000);
    if (ended == 0) {
        (void)kill(process->pid, SIGKILL);
        (void)waitpid(process->pid, &status, 0);
    }
    tenant_log_read(process);
    (void)close(process->log_fd);
    process->pid = 0;
    return status;
}

static inline int tenant_stop(struct tenant_process *process) {
    int status = 0;
    if (process->pid > 0) {
        (void)kill(process->pid, SIGTERM);
        status = tenant_wait(process);
    }
    redis_fixture_stop(&process->redis);
    return status;
}

static inline fx_client *tenant_client_tls(const struct tenant_process *process, bool health_off,
                                           struct fx_tls tls) {
    char target[64];
    fx_error err = {0};
    fx_client *client = NULL;
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", process->port);
    struct fx_client_opts opts = {.target = target,
                                  .tls = tls,
                                  .message_bytes_max = REPLY_BYTES,
                                  .attempts_max = 1,
                                  .health_check_off = health_off};
    assert_true(fx_client_open(&opts, &client, &err));
    return client;
}

static inline fx_client *tenant_client(const struct tenant_process *process, bool health_off) {
    return tenant_client_tls(process, health_off, (struct fx_tls){0});
}

/* One method: its name and types. */
struct method {
    const char *name;
    const ProtobufCMessageDescriptor *reply;
};
#define METHOD(name, reply)                                                                        \
    ((struct method){"/fractal.v1.TenantService/" name, &fractal__v1__##reply##__descriptor})

/* A blocking call with `token` (NULL: none); *out lives until this thread's next call. */
static inline enum fx_code tenant_call(fx_client *client, struct method method, const void *message,
                                       const char *token, void *out, fx_error *err) {
    static _Thread_local uint8_t memory[REPLY_BYTES];
    char bearer[128];
    fx_arena arena;
    fx_error ignored = {0};
    if (!err) err = &ignored;
    fx_arena_init(&arena, memory, sizeof memory); /* poison of the last call ends here */
    fx_arena_done(&arena);
    fx_arena_init(&arena, memory, sizeof memory);
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", token ? token : "");
    struct fx_client_metadata metadata = {"authorization", bearer};
    struct fx_client_request request = {.method = method.name,
                                        .message = message,
                                        .reply = method.reply,
                                        .deadline_ms = 5000,
                                        .metadata = &metadata,
                                        .metadata_count = token ? 1 : 0,
                                        .arena = &arena};
    return fx_client_call_wait(client, &request, out, err) ? FX_OK : err->code;
}

static inline enum fx_code create_tenant(fx_client *client, const char *name, uint32_t weight,
                                         Fractal__V1__Tenant **out) {
    Fractal__V1__CreateTenantRequest message = FRACTAL__V1__CREATE_TENANT_REQUEST__INIT;
    Fractal__V1__Tenant *ignored;
    message.name = (char *)(uintptr_t)name;
    message.weight = weight;
    return tenant_call(client, METHOD("CreateTenant", tenant), &message, TOKEN,
                       out ? out : &ignored, NULL);
}

/* `key` holds 68 bytes, `key_id` 17. */
static inline enum fx_code create_key(fx_client *client, const char *tenant, const char *label,
                                      char *key, char *key_id) {
    Fractal__V1__CreateKeyRequest message = FRACTAL__V1__CREATE_KEY_REQUEST__INIT;
    Fractal__V1__CreateKeyReply *reply = NULL;
    message.tenant = (char *)(uintptr_t)tenant;
    message.label = (char *)(uintptr_t)label;
    enum fx_code code =
        tenant_call(client, METHOD("CreateKey", create_key_reply), &message, TOKEN, &reply, NULL);
    if (code != FX_OK) return code;
    (void)snprintf(key, 68, "%s", reply->key);
    (void)snprintf(key_id, 17, "%s", reply->key_id);
    return code;
}

static inline enum fx_code authenticate(fx_client *client, const char *key,
                                        Fractal__V1__AuthenticateReply **out) {
    Fractal__V1__AuthenticateRequest message = FRACTAL__V1__AUTHENTICATE_REQUEST__INIT;
    Fractal__V1__AuthenticateReply *ignored;
    message.key = (char *)(uintptr_t)key;
    return tenant_call(client, METHOD("Authenticate", authenticate_reply), &message, NULL,
                       out ? out : &ignored, NULL);
}

static inline enum fx_code revoke_key(fx_client *client, const char *key_id) {
    Fractal__V1__RevokeKeyRequest message = FRACTAL__V1__REVOKE_KEY_REQUEST__INIT;
    Fractal__V1__RevokeKeyReply *reply;
    message.key_id = (char *)(uintptr_t)key_id;
    return tenant_call(client, METHOD("RevokeKey", revoke_key_reply), &message, TOKEN, &reply,
                       NULL);
}

/* The status of GET `path` at the admin address. */
static inline int admin_get(const struct tenant_process *process, const char *path, char *body,
                            size_t cap) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)process->admin_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[256], reply[16384] = "";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int len = snprintf(request, sizeof request,
                       "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(write(fd, request, (size_t)len), len);
    size_t used = 0;
    for (ssize_t got; (got = read(fd, reply + used, sizeof reply - 1 - used)) > 0;)
        used += (size_t)got;
    (void)close(fd);
    reply[used] = '\0';
    if (body) (void)snprintf(body, cap, "%s", reply);
    return (int)strtol(reply + strlen("HTTP/1.1 "), NULL, 10);
}
