#include "tests/e2e/suite.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include "common/base/hash.h"

#define PATHS "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
enum { CLI_MS = 120000, TOKEN_BYTES = 32, TAIL_BYTES = 3000 };

/* -- starting -- */

static uint32_t or_one(uint32_t count) {
    assert_true(count <= SUITE_MANY);
    return count ? count : 1;
}

static void places_choose(struct suite *suite) {
    uint16_t ports[2 + 2 * SUITE_MANY];
    free_ports(ports, FX_TEST_COUNT(ports));
    suite->tenant = (struct service){.program = "tenant", .port = ports[0]};
    suite->slicer = (struct service){.program = "slicer", .port = ports[1]};
    for (uint32_t i = 0; i < SUITE_WORKERS; i++)
        suite->workers[i] = (struct service){.program = "worker", .number = i};
    for (uint32_t i = 0; i < SUITE_MANY; i++) {
        suite->schedulers[i] =
            (struct service){.program = "scheduler", .number = i, .port = ports[2 + i]};
        suite->gateways[i] =
            (struct service){.program = "gateway", .number = i, .port = ports[2 + SUITE_MANY + i]};
    }
}

static void env_make(struct suite *suite) {
    struct process_env *env = &suite->env;
    char schedulers[64] = "";
    for (uint32_t i = 0; i < suite->opts.schedulers; i++) {
        size_t len = strlen(schedulers);
        (void)snprintf(schedulers + len, sizeof schedulers - len, "%s127.0.0.1:%u", i ? "," : "",
                       suite->schedulers[i].port);
    }
    process_env_put(env, "PATH=%s", PATHS);
    process_env_put(env, "HOME=%s", suite->folder);
    process_env_put(env, "FX_REDIS_URL=%s", suite->redis.url);
    process_env_put(env, "FX_MODEL_DIR=%s", suite->models);
    process_env_put(env, "FX_BOOTSTRAP_TOKEN_FILE=%s/bootstrap-token", suite->folder);
    process_env_put(env, "FX_TENANT_ADDR=127.0.0.1:%u", suite->tenant.port);
    process_env_put(env, "FX_SLICER_ADDR=127.0.0.1:%u", suite->slicer.port);
    process_env_put(env, "FX_SCHEDULER_ADDR=%s", schedulers);
    process_env_put(env, "FX_HTTP_ADDR=127.0.0.1:%u", suite->gateways[0].port);
    process_env_put_all(env, suite->opts.env);
}

static void folder_make(struct suite *suite) {
    uint8_t random[TOKEN_BYTES];
    char path[96], token[2 * TOKEN_BYTES + 1];
    (void)snprintf(suite->folder, sizeof suite->folder, "/tmp/fx-e2e-XXXXXX");
    assert_non_null(mkdtemp(suite->folder));
    (void)snprintf(suite->models, sizeof suite->models, "%s/models", suite->folder);
    assert_int_equal(mkdir(suite->models, 0700), 0);
    fx_random(random, sizeof random);
    fx_hex((fx_span){random, sizeof random}, token);
    (void)snprintf(path, sizeof path, "%s/bootstrap-token", suite->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, token, sizeof token - 1), sizeof token - 1);
    assert_int_equal(close(fd), 0);
}

/* What one service gets beside the others. */
static struct process_env env_of(const struct suite *suite, const struct service *service) {
    struct process_env env = suite->env;
    bool is_gateway = strcmp(service->program, "gateway") == 0;
    if (is_gateway) process_env_put(&env, "FX_HTTP_ADDR=127.0.0.1:%u", service->port);
    process_env_put(&env, "FX_GRPC_ADDR=127.0.0.1:%u", service->grpc);
    process_env_put(&env, "FX_ADMIN_ADDR=127.0.0.1:%u", service->admin);
    if (suite->opts.redis_url)
        process_env_put(&env, "FX_REDIS_URL=%s",
                        suite->opts.redis_url(suite, service->program, service->number));
    if (strcmp(service->program, "worker") != 0) return env;
    process_env_put(&env, "FX_MODEL=%s", SUITE_MODEL);
    process_env_put_all(&env, suite->opts.worker_env);
    return env;
}

void suite_service_start(struct suite *suite, struct service *service) {
    char path[512], name[32];
    uint16_t ports[3];
    process_close(&service->process);
    service->killed = false;
    free_ports(ports, 3);
    service->admin = ports[0];
    if (!service->port) service->port = ports[1];
    service->grpc = strcmp(service->program, "gateway") == 0 ? ports[2] : service->port;
    struct process_env env = env_of(suite, service);
    (void)snprintf(path, sizeof path, "%s/fractal-%s", service->bin ? service->bin : FX_BIN_DIR,
                   service->program);
    (void)snprintf(name, sizeof name, "%s-%u", service->program, service->number);
    process_start(&service->process, name,
                  &(struct process_opts){.args = WORDS(path), .env = &env});
}

void suite_await_ready(struct service *service) {
    struct process *process = &service->process;
    uint64_t end_ms = fx_clock_ms() + SUITE_READY_MS;
    while (service_get(service, "/readyz") != 200) {
        if (!process_runs(process)) fail_msg("%s ended with %d", process->name, process->code);
        if (fx_clock_ms() > end_ms) fail_msg("%s is not ready", process->name);
        (void)usleep(10000);
    }
}

void suite_worker_start(struct suite *suite, uint32_t number) {
    suite_service_start(suite, &suite->workers[number]);
    suite_await_ready(&suite->workers[number]);
}

struct service *suite_service(struct suite *suite, uint32_t index) {
    struct service *all[] = {&suite->tenant,        &suite->slicer,      &suite->schedulers[0],
                             &suite->schedulers[1], &suite->workers[0],  &suite->workers[1],
                             &suite->workers[2],    &suite->gateways[0], &suite->gateways[1]};
    for (uint32_t i = 0; i < FX_TEST_COUNT(all); i++)
        if (all[i]->process.out && index-- == 0) return all[i];
    return NULL;
}

void suite_open(struct suite *suite, const struct suite_opts *opts) {
    *suite = (struct suite){.opts = *opts};
    suite->opts.workers = or_one(opts->workers);
    suite->opts.schedulers = or_one(opts->schedulers);
    suite->opts.gateways = or_one(opts->gateways);
    folder_make(suite);
    redis_fixture_start(&suite->redis, opts->redis_args);
    places_choose(suite);
    env_make(suite);
    suite_service_start(suite, &suite->tenant);
    suite_service_start(suite, &suite->slicer);
    suite_await_ready(&suite->tenant);
    suite_await_ready(&suite->slicer);
    free(suite_cli_ok(suite, WORDS("import", SUITE_MODEL_DIR, "--name", SUITE_MODEL, "--dtype",
                                   opts->dtype ? opts->dtype : "int4")));
    for (uint32_t i = 0; i < suite->opts.schedulers; i++)
        suite_service_start(suite, &suite->schedulers[i]);
    for (uint32_t i = 0; i < suite->opts.schedulers; i++)
        suite_await_ready(&suite->schedulers[i]);
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        suite_service_start(suite, &suite->workers[i]);
    for (uint32_t i = 0; i < suite->opts.gateways; i++)
        suite_service_start(suite, &suite->gateways[i]);
    for (uint32_t i = 0; suite_service(suite, i); i++)
        suite_await_ready(suite_service(suite, i));
    suite_key_make(suite, suite->key);
}

/* -- ending -- */

static void tail_show(const char *name, int fd) {
    char *text = process_text(fd);
    size_t len = strlen(text);
    (void)fprintf(stderr, "--- %s\n%s\n", name, text + (len > TAIL_BYTES ? len - TAIL_BYTES : 0));
    free(text);
}

void suite_show(const struct suite *suite) {
    char path[96];
    for (uint32_t i = 0;; i++) {
        const struct service *service = suite_service((struct suite *)(uintptr_t)suite, i);
        if (!service) break;
        tail_show(service->process.name, service->process.out);
    }
    (void)snprintf(path, sizeof path, "%s/redis.log", suite->redis.folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    tail_show("redis", fd);
    (void)close(fd);
}

static bool service_end(struct service *service) {
    struct process *process = &service->process;
    if (!process->out) return true;
    process_stop(process);
    bool well = service->killed || process->code == 0;
    if (!well) (void)fprintf(stderr, "%s ended with %d\n", process->name, process->code);
    process_close(process);
    return well;
}

bool suite_close(struct suite *suite) {
    struct service *order[] = {&suite->gateways[0],   &suite->gateways[1], &suite->workers[0],
                               &suite->workers[1],    &suite->workers[2],  &suite->schedulers[0],
                               &suite->schedulers[1], &suite->slicer,      &suite->tenant};
    bool well = true;
    for (uint32_t i = 0; i < FX_TEST_COUNT(order); i++)
        well &= service_end(order[i]);
    if (suite->redis.pid) {
        int code = redis_fixture_end(&suite->redis);
        if (code != 0) (void)fprintf(stderr, "redis ended with %d\n", code);
        well &= code == 0;
    }
    if (*suite->redis.folder) redis_fixture_stop(&suite->redis);
    if (*suite->folder) folder_remove(suite->folder);
    *suite = (struct suite){0};
    return well;
}

/* -- a program of tests -- */

static struct suite shared;
static const struct suite_opts *shared_opts;

static int shared_open(void **state) {
    *state = &shared;
    suite_open(&shared, shared_opts);
    return 0;
}

int suite_main(const char *name, const struct CMUnitTest *tests, size_t count,
               const struct suite_opts *opts) {
    shared_opts = opts;
    int failed = _cmocka_run_group_tests(name, tests, count, shared_open, NULL);
    failed += !*shared.key; /* it did not even start */
    if (failed) suite_show(&shared);
    failed += !suite_close(&shared);
    return failed != 0;
}

/* -- the CLI -- */

struct process_env suite_cli_env(const struct suite *suite) {
    struct process_env env = suite->env;
    if (*suite->key) process_env_put(&env, "FX_API_KEY=%s", suite->key);
    return env;
}

struct output suite_cli(struct suite *suite, const char *const *args) {
    const char *argv[24] = {FX_BIN_DIR "/fractal-cli"};
    struct process_env env = suite_cli_env(suite);
    for (size_t i = 1; *args; i++) {
        assert_true(i + 1 < FX_TEST_COUNT(argv));
        argv[i] = *args++;
    }
    return process_run(&(struct process_opts){.args = argv, .env = &env}, CLI_MS);
}

char *suite_cli_ok(struct suite *suite, const char *const *args) {
    struct output output = suite_cli(suite, args);
    if (output.code != 0)
        fail_msg("%s ends with %d: %s%s", args[0], output.code, output.out, output.err);
    free(output.err);
    return output.out;
}

void suite_key_make(struct suite *suite, char key[SUITE_KEY_MAX]) {
    enum { KEY_LEN = 3 + 64 };
    auto_text said = suite_cli_ok(suite, WORDS("keys", "create", "--tenant", "default"));
    const char *at = strstr(said, "fx-");
    assert_non_null(at);
    assert_int_equal(strspn(at + 3, "0123456789abcdef"), 64);
    (void)snprintf(key, SUITE_KEY_MAX, "%.*s", KEY_LEN, at);
}
