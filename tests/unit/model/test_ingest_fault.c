/* Imports that are killed, stopped, short of disk or several at once. */
#include "common/model/family.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "tests/unit/model/store_fixture.h"

static const char *const stages[] = {"read", "quantise", "digest", "publish"};

static void expect_nothing(const char *store) {
    struct fx_model_list list;
    fx_error err = {0};
    fx_model *model = NULL;
    assert_true(fx_store_list(store, &list, &err));
    assert_int_equal(list.count, 0);
    free(list.at);
    assert_false(fx_store_open(store, "m", &model, &err));
    assert_int_equal(err.code, FX_NOT_FOUND);
}

static size_t left_over(const char *store) {
    char path[FIXTURE_PATH];
    fixture_path(path, store, ".import");
    return access(path, F_OK) == 0 ? fixture_entries(path) : 0;
}

static bool die_at(void *ctx, const struct fx_ingest_progress *progress) {
    if (strcmp(progress->stage, ctx) == 0) (void)kill(getpid(), SIGKILL);
    return true;
}

static void import_and_die(const char *store, const char *stage) {
    pid_t child = fork();
    if (child == 0) {
        char *at = fx_strdup(stage);
        bool ok = fx_ingest(&(struct fx_ingest_opts){.folder = FX_GOLDENS "llama",
                                                     .store_dir = store,
                                                     .name = "m",
                                                     .dtype = FX_MODEL_INT4,
                                                     .progress = die_at,
                                                     .ctx = at},
                            NULL, NULL);
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_killed(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_COUNT(stages); i++) {
        struct fixture_dir store;
        struct fx_model_info info;
        fixture_dir_make(&store);
        import_and_die(store.path, stages[i]);
        expect_nothing(store.path);
        assert_int_equal(left_over(store.path), i >= 2 ? 1 : 0);
        fixture_import(FX_GOLDENS "llama", store.path, "m", FX_MODEL_INT4, 0, &info);
        assert_string_equal(info.version, "1");
        assert_int_equal(left_over(store.path), 0);
        fixture_dir_remove(&store);
    }
}

/* Died between the two renames: the version's folder is there, `current` does not name it. */
static void test_killed_between_renames(void **state) {
    struct fixture_dir store;
    struct fx_model_info info;
    char path[FIXTURE_PATH], hidden[FIXTURE_PATH];
    (void)state;
    fixture_dir_make(&store);
    fixture_import(FX_GOLDENS "llama", store.path, "m", FX_MODEL_INT4, 0, &info);
    fixture_import(FX_GOLDENS "mixtral", store.path, "m", FX_MODEL_F16, 0, &info);
    assert_string_equal(info.version, "2");
    fixture_path(path, store.path, "m");
    fixture_write(path, "current", "1\n", 2);
    fx_model *model = fixture_open(store.path, "m");
    assert_string_equal(fx_model_get_config(model)->family->name, "llama");
    fx_model_free(model);
    fixture_import(FX_GOLDENS "llama", store.path, "m", FX_MODEL_F32, 0, &info);
    assert_string_equal(info.version, "2");
    model = fixture_open(store.path, "m");
    assert_int_equal(fx_model_get_info(model)->dtype, FX_MODEL_F32);
    fx_model_free(model);
    assert_int_equal(fixture_entries(path), 3); /* 1, 2, current */
    fixture_path(hidden, path, "current");
    assert_int_equal(unlink(hidden), 0);
    expect_nothing(store.path);
    fixture_dir_remove(&store);
}

static bool stop_at(void *ctx, const struct fx_ingest_progress *progress) {
    return strcmp(progress->stage, ctx) != 0;
}

static void test_stopped(void **state) {
    struct fixture_dir store;
    (void)state;
    fixture_dir_make(&store);
    for (size_t i = 0; i < FX_COUNT(stages); i++) {
        char *stage = fx_strdup(stages[i]);
        fx_error err = {0};
        assert_false(fx_ingest(&(struct fx_ingest_opts){.folder = FX_BUNDLED,
                                                        .store_dir = store.path,
                                                        .name = "m",
                                                        .dtype = FX_MODEL_INT4,
                                                        .progress = stop_at,
                                                        .ctx = stage},
                               NULL, &err));
        fixture_expect(&err, FX_CANCELLED, "stopped");
        expect_nothing(store.path);
        assert_int_equal(left_over(store.path), 0);
        free(stage);
    }
    fixture_dir_remove(&store);
}

static bool stop_after(void *ctx, const struct fx_ingest_progress *progress) {
    return progress->done_bytes < *(const uint64_t *)ctx;
}

static void test_stopped_in_the_middle(void **state) {
    struct fixture_dir store;
    uint64_t bytes[] = {1, 5 << 20, 14 << 20, 18 << 20};
    (void)state;
    fixture_dir_make(&store);
    for (size_t i = 0; i < FX_COUNT(bytes); i++) {
        fx_error err = {0};
        assert_false(fx_ingest(&(struct fx_ingest_opts){.folder = FX_BUNDLED,
                                                        .store_dir = store.path,
                                                        .name = "m",
                                                        .dtype = FX_MODEL_INT4,
                                                        .progress = stop_after,
                                                        .ctx = &bytes[i]},
                               NULL, &err));
        assert_int_equal(err.code, FX_CANCELLED);
        assert_int_equal(left_over(store.path), 0);
    }
    expect_nothing(store.path);
    fixture_dir_remove(&store);
}

/* A write that fails as on a full disk: files may not grow past a limit. */
static void test_no_room(void **state) {
    struct fixture_dir store;
    struct rlimit old, small;
    fx_error err = {0};
    (void)state;
    fixture_dir_make(&store);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){100000, old.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool ok = fx_ingest(&(struct fx_ingest_opts){.folder = FX_GOLDENS "llama",
                                                 .store_dir = store.path,
                                                 .name = "m",
                                                 .dtype = FX_MODEL_F32},
                        NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_false(ok);
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
    expect_nothing(store.path);
    assert_int_equal(left_over(store.path), 0);
    fixture_dir_remove(&store);
}

static void test_no_store(void **state) {
    fx_error err = {0};
    (void)state;
    assert_false(fx_ingest(&(struct fx_ingest_opts){.folder = FX_BUNDLED,
                                                    .store_dir = "/nowhere/at/all",
                                                    .name = "m",
                                                    .dtype = FX_MODEL_F32},
                           NULL, &err));
    fixture_expect(&err, FX_NOT_FOUND, "model store '/nowhere/at/all'");
}

struct importer {
    const char *store, *folder;
    bool seen, ok;
    fx_error err;
    struct fx_model_info info;
};

static void *import_thread(void *ctx) {
    struct importer *importer = ctx;
    importer->ok = fx_ingest(&(struct fx_ingest_opts){.folder = importer->folder,
                                                      .store_dir = importer->store,
                                                      .name = "m",
                                                      .dtype = FX_MODEL_INT4},
                             &importer->info, &importer->err);
    return NULL;
}

/* Four at once under one name: each is whole, each gets a version of its own. */
static void test_at_once(void **state) {
    struct fixture_dir store;
    pthread_t threads[4];
    struct importer importers[4];
    const char *const folders[] = {FX_GOLDENS "llama", FX_GOLDENS "mixtral", FX_GOLDENS "llama",
                                   FX_GOLDENS "mistral-window"};
    struct fx_store_verified verified;
    fx_error err = {0};
    uint32_t versions = 0;
    (void)state;
    fixture_dir_make(&store);
    for (size_t i = 0; i < FX_COUNT(threads); i++) {
        importers[i] = (struct importer){.store = store.path, .folder = folders[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, import_thread, &importers[i]), 0);
    }
    for (size_t i = 0; i < FX_COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (!importers[i].ok) fail_msg("%s", importers[i].err.text);
        versions |= 1u << (importers[i].info.version[0] - '0');
    }
    assert_int_equal(versions, 0x1e); /* 1, 2, 3 and 4 */
    assert_true(fx_store_verify(store.path, "m", NULL, NULL, &verified, &err));
    assert_int_equal(left_over(store.path), 0);
    fixture_dir_remove(&store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_killed_between_renames),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_stopped_in_the_middle),
        cmocka_unit_test(test_no_room), cmocka_unit_test(test_no_store),
        cmocka_unit_test(test_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
