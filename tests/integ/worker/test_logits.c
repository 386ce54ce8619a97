#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "common/model/ingest.h"
#include <fcntl.h>
#include <ftw.h>
#include <sys/wait.h>
#include <unistd.h>

/* `fractal logits` as a user runs it: its raw file against the goldens, whatever the options. */

struct run {
    char folder[32], raw[64], router[64], out[64], err[64];
};

static void run_open(struct run *run) {
    *run = (struct run){.folder = "/tmp/fx-logits-XXXXXX"};
    assert_non_null(mkdtemp(run->folder));
    (void)snprintf(run->raw, sizeof run->raw, "%s/raw", run->folder);
    (void)snprintf(run->router, sizeof run->router, "%s/router", run->folder);
    (void)snprintf(run->out, sizeof run->out, "%s/out", run->folder);
    (void)snprintf(run->err, sizeof run->err, "%s/err", run->folder);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void run_close(struct run *run) {
    (void)nftw(run->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void redirect(const char *path, int to) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, to) < 0) _exit(126);
}

static int cli(const struct run *run, char *const *args) {
    int status = -1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char store[64];
        char *const env[] = {store, NULL};
        (void)snprintf(store, sizeof store, "FX_MODEL_DIR=%s", run->folder);
        redirect(run->out, STDOUT_FILENO);
        redirect(run->err, STDERR_FILENO);
        if (chdir(FX_SOURCE_DIR) == 0) (void)execve(FX_BIN_DIR "/fractal-cli", args, env);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static size_t file_read(const char *path, void *out, size_t cap) {
    fx_auto(FILE) file = fopen(path, "rbe");
    assert_non_null(file);
    return fread(out, 1, cap, file);
}

static void ids_text(const struct rig_prompt *prompt, char *out, size_t cap) {
    size_t len = 0;
    for (uint32_t i = 0; i < prompt->count && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "%s%u", i ? "," : "", prompt->ids[i]);
    assert_true(len < cap);
}

static char *arg(const char *text) {
    return (char *)(uintptr_t)text;
}

static void test_golden(void **state) {
    (void)state;
    enum { VOCAB = 320 };
    static float first[64 * VOCAB], second[64 * VOCAB];
    struct run run;
    struct rig_prompts prompts =
        rig_prompts_load("tests/goldens/mixtral", "golden.json", "logits", "greedy", VOCAB);
    const struct rig_prompt *prompt = &prompts.at[2];
    char ids[1024];
    run_open(&run);
    ids_text(prompt, ids, sizeof ids);
    char *const plain[] = {arg("fractal-cli"),
                           arg("logits"),
                           arg("tests/goldens/mixtral"),
                           arg("--ids"),
                           ids,
                           arg("--raw"),
                           run.raw,
                           arg("--router"),
                           run.router,
                           NULL};
    assert_int_equal(cli(&run, plain), 0);
    assert_int_equal(file_read(run.raw, first, sizeof first), sizeof first);
    assert_true(rig_distance(first, prompt->logits, FX_TEST_COUNT(first)) <= 1e-5);
    char *const other[] = {arg("fractal-cli"),
                           arg("logits"),
                           arg("--backend=ref"),
                           arg("--threads"),
                           arg("2"),
                           arg("--page"),
                           arg("16"),
                           arg("--chunk"),
                           arg("5"),
                           arg("--ids"),
                           ids,
                           arg("--raw"),
                           run.raw,
                           arg("tests/goldens/mixtral"),
                           NULL};
    assert_int_equal(cli(&run, other), 0);
    assert_int_equal(file_read(run.raw, second, sizeof second), sizeof second);
    assert_memory_equal(first, second, sizeof first);
    char router[256] = "";
    (void)file_read(run.router, router, sizeof router - 1);
    assert_true(strncmp(router, "{\"layers\":{\"0\":{\"experts\":[[4,7],", 33) == 0);
    rig_prompts_free(&prompts);
    run_close(&run);
}

static void test_printed(void **state) {
    (void)state;
    struct run run;
    char out[1024] = "";
    run_open(&run);
    char *const args[] = {arg("fractal-cli"), arg("logits"), arg("tests/goldens/mixtral"),
                          arg("--ids"),       arg("1,2,3"),  NULL};
    assert_int_equal(cli(&run, args), 0);
    (void)file_read(run.out, out, sizeof out - 1);
    assert_non_null(strstr(out, "1 ->  218 (3.2378)"));
    run_close(&run);
}

/* A model of the store by its name, and by its folder: the same file. */
static void test_stored(void **state) {
    (void)state;
    static float by_folder[3 * 320], by_name[3 * 320];
    struct run run;
    char said[1024] = "";
    fx_error err = {0};
    run_open(&run);
    const struct fx_ingest_opts opts = {.folder = FX_SOURCE_DIR "/tests/goldens/llama",
                                        .store_dir = run.folder,
                                        .name = "org/tiny",
                                        .dtype = FX_MODEL_INT4};
    if (!fx_ingest(&opts, NULL, &err)) fail_msg("%s", err.text);
    char *args[] = {arg("fractal-cli"),
                    arg("logits"),
                    arg("tests/goldens/llama"),
                    arg("--ids"),
                    arg("1,2,3"),
                    arg("--raw"),
                    run.raw,
                    arg("--dtype"),
                    arg("int4"),
                    NULL};
    assert_int_equal(cli(&run, args), 0);
    assert_int_equal(file_read(run.raw, by_folder, sizeof by_folder), sizeof by_folder);
    args[2] = arg("org/tiny");
    assert_int_equal(cli(&run, args), 0);
    assert_int_equal(file_read(run.raw, by_name, sizeof by_name), sizeof by_name);
    assert_memory_equal(by_folder, by_name, sizeof by_name);
    args[8] = arg("f32");
    assert_int_equal(cli(&run, args), 1);
    (void)file_read(run.err, said, sizeof said - 1);
    assert_non_null(strstr(said, "stored as int4"));
    run_close(&run);
}

struct row {
    const char *name, *model, *ids, *option, *value, *said;
    int status;
};
static const struct row refused[] = {
    {"no model",   "no/such",             "1",     NULL,        NULL,                "no model",           1},
    {"wild id",    "tests/goldens/llama", "1,320", NULL,        NULL,                "vocabulary has 320", 1},
    {"no number",  "tests/goldens/llama", "1,x",   NULL,        NULL,                "--ids",              2},
    {"empty id",   "tests/goldens/llama", "1,,2",  NULL,        NULL,                "--ids",              2},
    {"page 32",    "tests/goldens/llama", "1",     "--page",    "32",                "16 or 64",           1},
    {"backend",    "tests/goldens/llama", "1",     "--backend", "gpu",               "--backend",          2},
    {"no experts", "tests/goldens/llama", "1",     "--router",  "/dev/null",         "no experts",         1},
    {"unwritable", "tests/goldens/llama", "1",     "--raw",     "/no/such/folder/x", "/no/such/folder",    1},
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(refused); i++) {
        const struct row *row = &refused[i];
        struct run run;
        char said[1024] = "";
        run_open(&run);
        char *const args[] = {arg("fractal-cli"), arg("logits"),    arg(row->model), arg("--ids"),
                              arg(row->ids),      arg(row->option), arg(row->value), NULL};
        assert_int_equal(cli(&run, args), row->status);
        (void)file_read(run.err, said, sizeof said - 1);
        if (!strstr(said, row->said)) fail_msg("%s: %s", row->name, said);
        run_close(&run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_printed),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
