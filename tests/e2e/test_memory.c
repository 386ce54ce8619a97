/* No weight lies in anonymous memory: workers map the store's files. */
#include "tests/e2e/suite.h"

enum {
    MIB = 1 << 20,
    KV_MIB = 64,
    LIMIT_MIB = KV_MIB + 64,
    LINE_MAX_BYTES = 1024,
    SMALL_BYTES = 6000000
};

struct use {
    uint64_t anonymous, mapped; /* bytes */
};

static FILE *proc_open(const struct service *worker, const char *name) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)worker->process.pid, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    return file;
}

static uint64_t anonymous_bytes(const struct service *worker) {
    char line[LINE_MAX_BYTES];
    uint64_t kib = 0;
    FILE *file = proc_open(worker, "status");
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0) kib = strtoull(line + 8, NULL, 10);
    (void)fclose(file);
    assert_true(kib > 0);
    return kib << 10;
}

/* Is it a packed file of weights: .../pack-LAYOUT.bin? */
static bool is_pack(const char *path) {
    const char *name = strrchr(path, '/');
    size_t len = strlen(path);
    return name && strncmp(name, "/pack-", 6) == 0 && strcmp(path + len - 4, ".bin") == 0;
}

static uint64_t mapped_bytes(const struct service *worker) {
    char line[LINE_MAX_BYTES], rights[8], path[LINE_MAX_BYTES];
    unsigned long long begin, end, mapped = 0;
    FILE *file = proc_open(worker, "maps");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %1023s", &begin, &end, rights, path) != 4 ||
            !is_pack(path))
            continue;
        if (rights[1] != '-') fail_msg("mapped for writing: %s", line);
        mapped += end - begin;
    }
    (void)fclose(file);
    return mapped;
}

/* What a service keeps when it has done its part and waits: reserved memory costs nothing until it
 * is used. */
static void check_small(const struct service *service) {
    uint64_t bytes = anonymous_bytes(service);
    print_message("%s: RssAnon %llu KiB\n", service->program, (unsigned long long)bytes >> 10);
    assert_true(bytes <= SMALL_BYTES);
}

static struct use measure(struct suite *suite, const char *dtype) {
    suite_open(suite, &(struct suite_opts){.dtype = dtype, .worker_env = WORDS("FX_KV_MIB=64")});
    free(suite_complete(suite, "Call me", json_pack("{s:i}", "max_tokens", 64)));
    struct use use = {anonymous_bytes(&suite->workers[0]), mapped_bytes(&suite->workers[0])};
    print_message("%s: RssAnon %llu KiB, packed weights mapped %llu KiB\n", dtype,
                  (unsigned long long)use.anonymous >> 10, (unsigned long long)use.mapped >> 10);
    assert_true(use.anonymous <= (uint64_t)LIMIT_MIB * MIB);
    check_small(&suite->gateways[0]);
    check_small(&suite->tenant);
    check_small(&suite->schedulers[0]);
    check_small(&suite->slicer);
    assert_true(suite_close(suite));
    return use;
}

static struct suite suite_;

static void weights_are_mapped(void **state) {
    (void)state;
    struct use small = measure(&suite_, "int4"), large = measure(&suite_, "f32");
    /* 7.5 million parameters: 4 bytes each in f32, 0.5625 in int4 */
    assert_true(large.mapped >= 28ULL * MIB);
    assert_true(large.mapped - small.mapped >= 20ULL * MIB);
    assert_true(large.anonymous <= small.anonymous + 8ULL * MIB);
}

static int end(void **state) {
    (void)state;
    if (!*suite_.folder) return 0;
    suite_show(&suite_); /* it failed on the way */
    (void)suite_close(&suite_);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(weights_are_mapped, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
