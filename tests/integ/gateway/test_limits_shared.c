/* Two gateway processes, one truth: a race for the last of a budget, a gateway that is killed, a
 * stream longer than its lease. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "tests/integ/gateway/limit_answers.h"

enum { GATEWAYS = 2, ASKED = 50, BUDGET = 10, LEASE_MS = 3000, ANSWER_TOKENS = 8, ENV_MAX = 16 };

struct process {
    pid_t pid;
    uint16_t port;
};

static struct process gateways_[GATEWAYS];

/* -- processes -- */

static uint16_t free_port(void) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    close(fd);
    return ntohs(in.sin_port);
}

static void spawn(const struct stage *stage, struct process *process) {
    char text[ENV_MAX][192], *env[ENV_MAX] = {0};
    size_t count = 0;
    process->port = free_port();
#define SET(...)                                                                                   \
    (void)(snprintf(text[count], sizeof text[0], __VA_ARGS__), env[count] = text[count], count++)
    SET("FX_HTTP_ADDR=127.0.0.1:%u", process->port);
    SET("FX_ADMIN_ADDR=127.0.0.1:0");
    SET("FX_GRPC_ADDR=127.0.0.1:0");
    SET("FX_TENANT_ADDR=%s", stage->address);
    SET("FX_SCHEDULER_ADDR=%s", stage->address);
    SET("FX_SLICER_ADDR=%s", stage->address);
    SET("FX_REDIS_URL=%s", stage->redis_server.url);
    SET("FX_LIMIT_LEASE_MS=%d", LEASE_MS);
    SET("FX_LOG_LEVEL=error");
    SET("ASAN_OPTIONS=%s", "abort_on_error=0");
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid) return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execle(FX_BIN_DIR "/fractal-gateway", "fractal-gateway", (char *)NULL, env);
    _exit(127);
}

static void end(struct process *process, int number) {
    int status = -1;
    if (!process->pid) return;
    (void)kill(process->pid, number);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    if (number == SIGTERM) assert_int_equal(status, 0);
    process->pid = 0;
}

/* -- clients -- */

static int connect_to(const struct process *process) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(process->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&in, sizeof in) == 0) return fd;
    close(fd);
    return -1;
}

/* An answer and its connection's end; waits as long as it takes. */
static char *whole(int fd) {
    char *text = calloc(1, WIRE_REPLY_MAX);
    size_t len = 0;
    for (ssize_t got; (got = recv(fd, text + len, WIRE_REPLY_MAX - 1 - len, 0)) > 0;)
        len += (size_t)got;
    return text;
}

static void post(int fd, const char *json) {
    char request[1024];
    (void)snprintf(request, sizeof request,
                   "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Authorization: Bearer " STAGE_KEY "\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(json), json);
    wire_say(fd, request);
}

static char *ask(const struct process *process, const char *json) {
    int fd = connect_to(process);
    assert_true(fd >= 0);
    post(fd, json);
    char *answer = whole(fd);
    close(fd);
    return answer;
}

static char *look(const struct process *process) {
    int fd = connect_to(process);
    if (fd < 0) return NULL;
    wire_say(fd, "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                 "Authorization: Bearer " STAGE_KEY "\r\n\r\n");
    char *answer = whole(fd);
    close(fd);
    return answer;
}

/* Until it can tell the limits: models, queue and ledger are there. */
static void await(const struct process *process) {
    char value[64];
    for (int i = 0; i < 3000; i++, usleep(10000)) {
        char *answer = look(process);
        bool ready = answer && wire_status(answer) == 200 &&
                     stage_header(answer, "x-ratelimit-limit-requests", value);
        free(answer);
        if (ready) return;
    }
    fail_msg("a gateway does not come up");
}

static struct stage *begin(void **state, unsigned rpm, unsigned tpm, unsigned streams) {
    struct stage *stage = *state;
    stage->key_limits.requests = rpm;
    stage->key_limits.tokens = tpm;
    stage->key_limits.streams = streams;
    for (size_t i = 0; i < GATEWAYS; i++)
        spawn(stage, &gateways_[i]);
    for (size_t i = 0; i < GATEWAYS; i++)
        await(&gateways_[i]);
    return stage;
}

static int teardown(void **state) {
    for (size_t i = 0; i < GATEWAYS; i++)
        end(&gateways_[i], SIGTERM);
    return stage_teardown(state);
}

/* -- a race -- */

static const struct row {
    const char *name;
    unsigned rpm, tpm, streams;
    unsigned first_ms; /* how long an answer holds its stream */
} rows[] = {
    {"requests", BUDGET, 0,                                             0,      0   },
    {"tokens",   0,      BUDGET *(LIMIT_PROMPT_TOKENS + ANSWER_TOKENS), 0,      0   },
    {"streams",  0,      0,                                             BUDGET, 2500},
};

/* Of 50 at once over both, exactly 10 are admitted; who is not knows when to come again. */
static void race(struct stage *stage) {
    char json[256];
    int fds[ASKED];
    size_t admitted = 0;
    (void)snprintf(json, sizeof json, LIMIT_ASK(",\"max_tokens\":%d"), ANSWER_TOKENS);
    for (size_t i = 0; i < ASKED; i++) {
        fds[i] = connect_to(&gateways_[i % GATEWAYS]);
        assert_true(fds[i] >= 0);
    }
    for (size_t i = 0; i < ASKED; i++)
        post(fds[i], json);
    for (size_t i = 0; i < ASKED; i++) {
        char *answer = whole(fds[i]);
        close(fds[i]);
        if (wire_status(answer) == 200) {
            admitted++;
            assert_six_headers(answer);
        } else {
            assert_limited(answer);
        }
        free(answer);
    }
    assert_int_equal(admitted, BUDGET);
    assert_int_equal(stage->submitted, BUDGET);
}

static void test_race(void **state) {
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        assert_int_equal(stage_setup(state), 0);
        struct stage *stage = begin(state, row->rpm, row->tpm, row->streams);
        print_message("- %s\n", row->name);
        stage_say(stage, (struct stage_script){.first_ms = row->first_ms});
        race(stage);
        assert_int_equal(teardown(state), 0);
    }
}

/* -- leases -- */

static int stream_begin(const struct process *process) {
    bool closed;
    int fd = connect_to(process);
    post(fd, LIMIT_ASK(",\"max_tokens\":90,\"stream\":true"));
    char *answer = wire_read(fd, "\"n\":2}", &closed);
    assert_int_equal(wire_status(answer), 200);
    free(answer);
    return fd;
}

static unsigned long tokens_left(const struct process *process) {
    char *answer = look(process);
    unsigned long left = header_number(answer, "x-ratelimit-remaining-tokens");
    free(answer);
    return left;
}

/* kill -9: its stream and its tokens come back when the lease runs out, and not before. */
static void test_killed(void **state) {
    struct stage *stage = begin(state, 0, 100, 1);
    stage_say(stage, (struct stage_script){.every_ms = 30});
    int fd = stream_begin(&gateways_[0]);
    uint64_t killed_ms = fx_clock_ms();
    (void)kill(gateways_[0].pid, SIGKILL);
    char *answer = ask(&gateways_[1], LIMIT_ASK(",\"max_tokens\":1"));
    assert_limited(answer);
    assert_non_null(strstr(answer, "1 generations running"));
    free(answer);
    assert_true(tokens_left(&gateways_[1]) < 20);
    end(&gateways_[0], SIGKILL);
    do {
        usleep(50000);
        answer = ask(&gateways_[1], LIMIT_ASK(",\"max_tokens\":1"));
        if (wire_status(answer) == 200) break;
        free(answer);
    } while (fx_clock_ms() - killed_ms < 20000);
    uint64_t took_ms = fx_clock_ms() - killed_ms;
    assert_int_equal(wire_status(answer), 200);
    print_message("- free after %llu ms of a %d ms lease\n", (unsigned long long)took_ms, LEASE_MS);
    assert_true(took_ms < 2 * LEASE_MS + 2000);
    assert_true(header_number(answer, "x-ratelimit-remaining-tokens") > 50);
    free(answer);
    close(fd);
}

/* A stream that lasts twice a lease keeps its place, and ends it at the other gateway too. */
static void test_renewed(void **state) {
    struct stage *stage = begin(state, 0, 0, 1);
    stage_say(stage, (struct stage_script){.every_ms = 80});
    int fd = stream_begin(&gateways_[0]);
    for (uint64_t end_ms = fx_clock_ms() + 2 * LEASE_MS; fx_clock_ms() < end_ms; usleep(200000)) {
        char *answer = ask(&gateways_[1], LIMIT_ASK(",\"max_tokens\":1"));
        assert_limited(answer);
        free(answer);
    }
    free(whole(fd));
    close(fd);
    unsigned status = 0;
    for (int i = 0; i < 100 && status != 200; i++, usleep(10000)) {
        char *answer = ask(&gateways_[1], LIMIT_ASK(",\"max_tokens\":1"));
        status = wire_status(answer);
        free(answer);
    }
    assert_int_equal(status, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_race),
        cmocka_unit_test_setup_teardown(test_killed, stage_setup, teardown),
        cmocka_unit_test_setup_teardown(test_renewed, stage_setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
