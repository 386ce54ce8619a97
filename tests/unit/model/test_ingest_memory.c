/* A checkpoint of 130 MB passes through a few MiB of memory, and an open model has none. */
#include "tests/unit/model/large.h"

enum { IMPORT_KIB_MAX = 24 * 1024, OPEN_KIB_MAX = 4 * 1024 };

/* Anonymous memory of this process. */
static long anon_kib(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (kib < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0) kib = strtol(line + 8, NULL, 10);
    (void)fclose(file);
    assert_true(kib > 0);
    return kib;
}

static bool keep_peak(void *ctx, const struct fx_ingest_progress *progress) {
    long *peak = ctx, now = anon_kib();
    (void)progress;
    if (now > *peak) *peak = now;
    return true;
}

static void test_memory(void **state) {
    struct fixture_dir dir;
    char folder[FIXTURE_PATH];
    fx_error err = {0};
    (void)state;
    fixture_dir_make(&dir);
    large_make(dir.path, folder);
    long before = anon_kib(), peak = before;
    const struct fx_ingest_opts opts = {.folder = folder,
                                        .store_dir = dir.path,
                                        .name = "m",
                                        .dtype = FX_MODEL_INT4,
                                        .progress = keep_peak,
                                        .ctx = &peak};
    if (!fx_ingest(&opts, NULL, &err)) fail_msg("%s", err.text);
    if (peak - before > IMPORT_KIB_MAX) fail_msg("the import took %ld KiB", peak - before);
    before = anon_kib();
    fx_model *model = fixture_open(dir.path, "m");
    fx_span pack = fx_model_get_pack(model);
    volatile uint8_t touched = 0;
    for (size_t i = 0; i < pack.len; i += 4096)
        touched = pack.at[i];
    (void)touched;
    if (anon_kib() - before > OPEN_KIB_MAX)
        fail_msg("an open model takes %ld KiB", anon_kib() - before);
    fx_model_free(model);
    fixture_dir_remove(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
