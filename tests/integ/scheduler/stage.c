#include "tests/integ/scheduler/stage.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/hash.h"

enum { WAIT_MS = 10000, REPLY_BYTES = 1 << 20 };

void stage_exec(struct stage_process *process, const char *const *env, const char *argument) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        const char *const args[] = {"fractal-scheduler", argument, NULL};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execve(FX_BIN_DIR "/fractal-scheduler", (char *const *)(uintptr_t)args,
                     (char *const *)(uintptr_t)env);
        _exit(127);
    }
    (void)close(ends[1]);
    process->log_fd = ends[0];
    process->log[0] = 0;
}

bool stage_log_until(struct stage_process *process, const char *text) {
    uint64_t end = fx_clock_ms() + WAIT_MS;
    while (!text || !strstr(process->log, text)) {
        struct pollfd wait = {.fd = process->log_fd, .events = POLLIN};
        size_t len = strlen(process->log);
        if (fx_clock_ms() > end || len >= STAGE_LOG_MAX - 1) return false;
        if (poll(&wait, 1, 100) <= 0) continue;
        ssize_t got = read(process->log_fd, process->log + len, STAGE_LOG_MAX - 1 - len);
        if (got <= 0) return text == NULL;
        process->log[len + (size_t)got] = 0;
    }
    return true;
}

static unsigned log_number(const char *log, const char *key) {
    const char *at = strstr(log, key);
    assert_non_null(at);
    return (unsigned)strtoul(at + strlen(key), NULL, 10);
}

static void connect_client(struct stage_process *process) {
    char target[64];
    fx_error err = {0};
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", process->port);
    struct fx_client_opts opts = {.target = target, .attempts_max = 1, .health_check_off = true};
    assert_true(fx_client_open(&opts, &process->client, &err));
}

void stage_start(struct stage *stage, size_t at, const char *const *env) {
    struct stage_process *process = &stage->process[at];
    char redis[192];
    (void)snprintf(redis, sizeof redis, "FX_REDIS_URL=%s", stage->rig.server.url);
    const char *all[STAGE_ENV_MAX] = {"FX_GRPC_ADDR=127.0.0.1:0", "FX_ADMIN_ADDR=127.0.0.1:0",
                                      "FX_LEASE_MS=300", redis};
    for (size_t n = 4; env && *env; env++)
        all[n++] = *env;
    stage_exec(process, all, NULL);
    bool ready =
        stage_log_until(process, "event=redis_ready") && stage_log_until(process, "event=started");
    if (!ready) print_error("%s\n", process->log);
    assert_true(ready);
    process->port = log_number(process->log, " port=");
    process->admin_port = log_number(process->log, "admin_port=");
    connect_client(process);
}

int stage_wait(struct stage_process *process) {
    int status = -1;
    (void)stage_log_until(process, NULL);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    (void)close(process->log_fd);
    process->pid = 0;
    return status;
}

void stage_kill(struct stage_process *process) {
    fx_client_free(fx_take(process->client));
    if (!process->pid) return;
    (void)kill(process->pid, SIGKILL);
    (void)stage_wait(process);
}

int stage_get(const struct stage_process *process, const char *path, char *body, size_t size) {
    char text[256];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)process->admin_port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = -1;
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int len = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                       path);
    assert_int_equal(write(fd, text, (size_t)len), len);
    size_t got = 0;
    for (ssize_t n; got < size - 1 && (n = read(fd, body + got, size - 1 - got)) > 0;)
        got += (size_t)n;
    body[got] = 0;
    (void)close(fd);
    assert_int_equal(sscanf(body, "HTTP/1.1 %d", &status), 1);
    return status;
}

enum fx_code stage_call(struct stage_process *process, const char *method, const void *message,
                        const ProtobufCMessageDescriptor *type, void *out, fx_error *err) {
    static uint8_t memory[REPLY_BYTES];
    static fx_arena arena;
    fx_error ignored = {0};
    if (!err) err = &ignored;
    if (arena.base) fx_arena_done(&arena);
    fx_arena_init(&arena, memory, sizeof memory);
    struct fx_client_request request = {.method = method,
                                        .message = message,
                                        .reply = type,
                                        .deadline_ms = WAIT_MS,
                                        .wait_for_ready = true,
                                        .arena = &arena};
    return fx_client_call_wait(process->client, &request, out, err) ? FX_OK : err->code;
}

void stage_submission(struct stage_submission *out, uint32_t n) {
    *out = (struct stage_submission){
        .request = FRACTAL__V1__SUBMIT_GENERATION_REQUEST__INIT,
        .task = FRACTAL__V1__GENERATION_TASK__INIT,
        .sampling = FRACTAL__V1__SAMPLING_PARAMS__INIT,
        .prompt = {1, 2, 3, 4, 5, 6, 7, 8},
        .id = rig_id(n)
    };
    out->request.task = &out->task;
    out->task.sampling = &out->sampling;
    out->task.schema = 1;
    out->task.id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, out->id.bytes};
    out->task.tenant = 1;
    out->task.model = RIG_MODEL;
    out->task.model_name = (char *)(uintptr_t) "org/tiny";
    out->task.prompt_ids = out->prompt;
    out->task.n_prompt_ids = 8;
    out->task.max_tokens = 16;
}

enum fx_code stage_submit(struct stage_process *process, uint32_t n, uint64_t *seed) {
    struct stage_submission submission;
    Fractal__V1__SubmitGenerationReply *reply;
    fx_error err = {0};
    stage_submission(&submission, n);
    enum fx_code code = STAGE_CALL(process, "SubmitGeneration", &submission.request,
                                   submit_generation_reply, &reply, &err);
    if (code == FX_OK && seed) *seed = reply->seed;
    return code;
}

enum fx_gen_state stage_state(struct stage_process *process, uint32_t n) {
    Fractal__V1__GetGenerationRequest request = FRACTAL__V1__GET_GENERATION_REQUEST__INIT;
    Fractal__V1__Generation *reply;
    fx_gen_id id = rig_id(n);
    request.id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, id.bytes};
    request.model = RIG_MODEL;
    assert_int_equal(STAGE_CALL(process, "GetGeneration", &request, generation, &reply, NULL),
                     FX_OK);
    return (enum fx_gen_state)reply->state;
}

struct rig_tasks stage_pull(struct stage *stage, uint32_t count) {
    uint64_t end = fx_clock_ms() + 3000;
    struct rig_tasks tasks;
    do {
        tasks = rig_pull(&stage->rig, "w", count);
        if (!tasks.count) rig_sleep(&stage->rig, 5);
    } while (!tasks.count && fx_clock_ms() < end);
    return tasks;
}

/* ---- rows ---- */

static struct stage stage_global;

static int setup(void **state) {
    (void)state;
    rig_start(&stage_global.rig);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rig_stop(&stage_global.rig);
    return 0;
}

static int row_setup(void **state) {
    const struct stage_row *row = *state;
    struct stage *stage = &stage_global;
    if (!stage->rig.server.pid) redis_fixture_restart(&stage->rig.server, NULL);
    rig_connect(&stage->rig);
    rig_flush(&stage->rig);
    stage_start(stage, 0, row->env);
    if (row->two) stage_start(stage, 1, row->env);
    return 0;
}

static int row_teardown(void **state) {
    (void)state;
    for (size_t i = 0; i < STAGE_PROCESSES_MAX; i++)
        stage_kill(&stage_global.process[i]);
    rig_disconnect(&stage_global.rig);
    return 0;
}

static void run_row(void **state) {
    const struct stage_row *row = *state;
    row->run(&stage_global);
}

int stage_main(const char *group, const struct stage_row *rows, size_t count) {
    static struct CMUnitTest tests[FX_TEST_ROWS_MAX];
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, run_row, row_setup, row_teardown,
                                       (void *)(uintptr_t)&rows[i]};
    return _cmocka_run_group_tests(group, tests, count, setup, teardown);
}
