/* What an import shows, on a terminal and elsewhere, and the sizes it is written in. */
#include "tests/fx_test.h"
#include "services/cli/progress.h"
#include "services/cli/terminal.h"

enum { MB = 1000000 };

static char text_[4096];

static FILE *open_out(void) {
    memset(text_, 0, sizeof text_);
    return fmemopen(text_, sizeof text_ - 1, "w");
}

static void show(struct cli_progress *progress, const char *stage, uint64_t done_mb,
                 uint64_t total_mb, uint64_t ms) {
    cli_progress_show(progress, &(struct cli_progress_at){stage, done_mb * MB, total_mb * MB,
                                                          1000000 + ms * 1000});
}

static void test_lines(void **state) {
    struct cli_progress progress;
    FILE *out = open_out();
    (void)state;
    cli_progress_init(&progress, out, false);
    show(&progress, "read", 0, 100, 0);
    show(&progress, "read", 5, 100, 500); /* the same tenth: nothing */
    show(&progress, "read", 20, 100, 1000);
    show(&progress, "read", 100, 100, 2000);
    show(&progress, "read", 100, 100, 2500);
    show(&progress, "pack", 1, 2, 3000);
    show(&progress, "publish", 0, 0, 4000);
    show(&progress, "publish", 5, 0, 5000);
    cli_progress_end(&progress);
    (void)fclose(out);
    assert_string_equal(text_, "read:   0%  0 B of 100 MB\n"
                               "read:  20%  20.0 MB of 100 MB  20.0 MB/s  0:04 left\n"
                               "read: 100%  100 MB of 100 MB  50.0 MB/s\n"
                               "pack:  50%  1.0 MB of 2.0 MB\n"
                               "publish\n");
}

static void test_bar(void **state) {
    struct cli_progress progress;
    FILE *out = open_out();
    (void)state;
    cli_progress_init(&progress, out, true);
    show(&progress, "read", 0, 100, 0);
    show(&progress, "read", 10, 100, 50); /* too soon to draw again */
    show(&progress, "read", 50, 100, 1000);
    show(&progress, "read", 100, 100, 1001); /* the end is always drawn */
    show(&progress, "pack", 0, 0, 1002);     /* an unknown total */
    cli_progress_end(&progress);
    cli_progress_end(&progress);
    (void)fclose(out);
    assert_string_equal(text_, "\r\033[Kread      [........................]   0%"
                               "\r\033[Kread      [############............]  50%"
                               "  50.0 MB/s  0:01 left"
                               "\r\033[Kread      [########################] 100%  99.9 MB/s\n"
                               "\r\033[Kpack     \n");
}

static void test_long_time_left(void **state) {
    struct cli_progress progress;
    FILE *out = open_out();
    (void)state;
    cli_progress_init(&progress, out, false);
    show(&progress, "a-stage-with-a-name-that-is-far-too-long", 0, 1000000, 0);
    show(&progress, "a-stage-with-a-name-that-is-far-too-long", 100000, 1000000, 1000000);
    show(&progress, "", 1, 2, 1000001);
    (void)fclose(out);
    assert_non_null(strstr(text_, "100 MB/s  150:00 left"));
    assert_non_null(strstr(text_, "a-stage-with-a-name-that-is-far:"));
}

static void test_bytes(void **state) {
    static const struct {
        double bytes;
        const char *want;
    } rows[] = {
        {0,      "0 B"    },
        {999,    "999 B"  },
        {1000,   "1.0 kB" },
        {1234,   "1.2 kB" },
        {99940,  "99.9 kB"},
        {99960,  "100 kB" },
        {150e6,  "150 MB" },
        {1.5e9,  "1.5 GB" },
        {999600, "1.0 MB" },
        {2.5e12, "2.5 TB" },
        {2.5e15, "2500 TB"},
    };
    char out[16];
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        assert_string_equal(cli_bytes(rows[i].bytes, out), rows[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_long_time_left),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
