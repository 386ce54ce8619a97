/* Imports that meet another, lose their client, or die with the program. */
#include "tests/integ/slicer/slicer_process.h"
#include "tests/unit/model/large.h"

static struct slicer_process slicer;
static char large[FIXTURE_PATH];

static int setup(void **state) {
    slicer_start(&slicer);
    large_make(slicer.dir.path, large);
    *state = &slicer;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    slicer_stop(&slicer);
    return 0;
}

/* Has the import got to its weights, with work still to come? */
static bool is_in_the_middle(const Fractal__V1__ImportProgress *message) {
    return message->done_bytes > 0 && strcmp(message->stage, "publish") != 0;
}

static void expect_nothing(void) {
    assert_int_equal(slicer_models(&slicer, NULL), 0);
    assert_int_equal(slicer_left_over(&slicer), 0);
}

static bool import_another(struct import *import, const Fractal__V1__ImportProgress *message) {
    struct import *second = import->user;
    if (second->err.code == FX_OK && is_in_the_middle(message))
        (void)slicer_import_model(import->process, second);
    return true;
}

static void test_two_at_once(void **state) {
    struct import second = {.folder = FX_BUNDLED, .name = "second"};
    struct import first = {.folder = large, .name = "first", .at = import_another, .user = &second};
    (void)state;
    if (slicer_import_model(&slicer, &first) != FX_OK) fail_msg("%s", first.err.text);
    fixture_expect(&second.err, FX_RESOURCE_EXHAUSTED, "another import runs");
    assert_int_equal(slicer_models(&slicer, NULL), 1);
    second.err = (fx_error){0};
    if (slicer_import_model(&slicer, &second) != FX_OK) fail_msg("%s", second.err.text);
    assert_int_equal(slicer_models(&slicer, NULL), 2);
}

static bool list_meanwhile(struct import *import, const Fractal__V1__ImportProgress *message) {
    uint32_t *lists = import->user;
    if (!is_in_the_middle(message)) return true;
    *lists += slicer_models(import->process, NULL) == 0;
    return true;
}

/* Short calls do not wait for the import. */
static void test_lists_meanwhile(void **state) {
    uint32_t lists = 0;
    struct import import = {.folder = large, .name = "m", .at = list_meanwhile, .user = &lists};
    (void)state;
    if (slicer_import_model(&slicer, &import) != FX_OK) fail_msg("%s", import.err.text);
    assert_true(lists > 0);
}

static bool hang_up(struct import *import, const Fractal__V1__ImportProgress *message) {
    (void)import;
    return !is_in_the_middle(message);
}

static void test_client_gone(void **state) {
    struct import import = {.folder = large, .name = "m", .at = hang_up};
    char body[16384];
    (void)state;
    assert_int_not_equal(slicer_import_model(&slicer, &import), FX_OK);
    assert_true(slicer_log_until(&slicer, "event=import_failed"));
    expect_nothing();
    assert_int_equal(slicer_admin(&slicer, "/metrics", body, sizeof body), 200);
    assert_non_null(strstr(body, "\nfx_slicer_importing 0\n"));
    assert_non_null(strstr(body, "\nfx_slicer_imports_failed_total 1\n"));
    import = (struct import){.folder = large, .name = "m"};
    if (slicer_import_model(&slicer, &import) != FX_OK) fail_msg("%s", import.err.text);
}

static bool kill_slicer(struct import *import, const Fractal__V1__ImportProgress *message) {
    if (is_in_the_middle(message)) (void)kill(import->process->pid, SIGKILL);
    return true;
}

static void test_killed(void **state) {
    struct import import = {.folder = large, .name = "m", .at = kill_slicer};
    (void)state;
    assert_int_equal(slicer_import_model(&slicer, &import), FX_UNAVAILABLE);
    assert_true(WIFSIGNALED(slicer_end(&slicer, SIGKILL)));
    assert_int_equal(slicer_left_over(&slicer), 1); /* it was in the middle */
    slicer_run(&slicer);
    expect_nothing();
    import = (struct import){.folder = large, .name = "m"};
    if (slicer_import_model(&slicer, &import) != FX_OK) fail_msg("%s", import.err.text);
    assert_string_equal(import.version, "1");
}

/* Once: a second one would be the last. */
static bool terminate(struct import *import, const Fractal__V1__ImportProgress *message) {
    bool *told = import->user;
    if (!*told && is_in_the_middle(message)) *told = !kill(import->process->pid, SIGTERM);
    return true;
}

static void drain_for(const char *drain) {
    (void)slicer_end(&slicer, SIGTERM);
    slicer.more = drain;
    slicer_run(&slicer);
}

/* Within the grace it is finished. */
static void test_terminated(void **state) {
    bool told = false;
    struct import import = {.folder = large, .name = "m", .at = terminate, .user = &told};
    (void)state;
    drain_for("FX_DRAIN_MS=100000");
    if (slicer_import_model(&slicer, &import) != FX_OK) fail_msg("%s", import.err.text);
    assert_true(import.done);
    assert_int_equal(slicer_end(&slicer, 0), 0);
    assert_int_equal(slicer_left_over(&slicer), 0);
    slicer_run(&slicer);
    assert_int_equal(slicer_models(&slicer, NULL), 1);
}

/* Past it, it is stopped and leaves nothing. */
static void test_terminated_past_the_grace(void **state) {
    bool told = false;
    struct import import = {.folder = large, .name = "m", .at = terminate, .user = &told};
    (void)state;
    drain_for("FX_DRAIN_MS=0");
    uint64_t begin_ms = fx_clock_ms();
    assert_int_equal(slicer_import_model(&slicer, &import), FX_UNAVAILABLE);
    assert_int_equal(slicer_end(&slicer, 0), 0);
    assert_true(fx_clock_ms() - begin_ms < 9000);
    assert_int_equal(slicer_left_over(&slicer), 0);
    slicer_run(&slicer);
    expect_nothing();
}

/* A program that can't start says why, and how to help. */
static void expect_no_start(const char *const *env, const char *text) {
    struct slicer_process other = {0};
    int status = 0;
    slicer_exec(&other, env);
    (void)slicer_log_until(&other, NULL);
    assert_int_equal(waitpid(other.pid, &status, 0), other.pid);
    (void)close(other.log_fd);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    if (!strstr(other.log, text)) fail_msg("'%s' is not in: %s", text, other.log);
}

static void test_no_start(void **state) {
    char token[FIXTURE_PATH + 32], store[FIXTURE_PATH + 16], path[FIXTURE_PATH], grpc[64];
    (void)state;
    (void)snprintf(token, sizeof token, "FX_BOOTSTRAP_TOKEN_FILE=%s/token", slicer.dir.path);
    (void)snprintf(store, sizeof store, "FX_MODEL_DIR=%s", slicer.store);
    (void)snprintf(grpc, sizeof grpc, "FX_GRPC_ADDR=127.0.0.1:%u", slicer.port);
    const char *const port_in_use[] = {grpc, "FX_ADMIN_ADDR=127.0.0.1:0", token, store, NULL};
    expect_no_start(port_in_use, "FX_GRPC_ADDR");
    const char *const no_store[] = {"FX_ADMIN_ADDR=127.0.0.1:0", token, NULL};
    expect_no_start(no_store, "FX_MODEL_DIR");
    const char *const no_folder[] = {token, "FX_MODEL_DIR=/nowhere/at/all", NULL};
    expect_no_start(no_folder, "FX_MODEL_DIR");
    const char *const no_token[] = {store, "FX_BOOTSTRAP_TOKEN_FILE=/nowhere/at/all", NULL};
    expect_no_start(no_token, "FX_BOOTSTRAP_TOKEN_FILE");
    const char *const unknown[] = {store, token, "FX_MODEL_FOLDER=x", NULL};
    expect_no_start(unknown, "FX_MODEL_FOLDER");
    fixture_path(path, slicer.dir.path, "token");
    assert_int_equal(chmod(path, 0644), 0);
    const char *const open_token[] = {store, token, NULL};
    expect_no_start(open_token, "FX_BOOTSTRAP_TOKEN_FILE");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_two_at_once),
        TEST(test_lists_meanwhile),
        TEST(test_client_gone),
        TEST(test_killed),
        TEST(test_terminated),
        TEST(test_no_start),
        TEST(test_terminated_past_the_grace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
