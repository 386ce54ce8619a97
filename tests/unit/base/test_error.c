#include "tests/fx_test.h"
#include "tests/fx_death.h"
#include "common/base/error.h"
#include <errno.h>

static void test_fail_sets_code_and_text(void **state) {
    (void)state;
    fx_error err = {0};
    assert_false(fx_fail(&err, FX_NOT_FOUND, "model '%s'", "m"));
    assert_int_equal(err.code, FX_NOT_FOUND);
    assert_string_equal(err.text, "model 'm'");
}

static void test_wrap_prepends_and_keeps_the_code(void **state) {
    (void)state;
    fx_error err = {0};
    assert_false(fx_fail(&err, FX_DATA_LOSS, "short"));
    assert_false(fx_wrap(&err, "part %d", 3));
    assert_false(fx_wrap(&err, "weights"));
    assert_string_equal(err.text, "weights: part 3: short");
    assert_int_equal(err.code, FX_DATA_LOSS);
}

static void test_own_text_may_be_an_argument(void **state) {
    (void)state;
    fx_error err = {0};
    assert_false(fx_fail(&err, FX_INTERNAL, "inner"));
    assert_false(fx_fail(&err, FX_UNAVAILABLE, "[%s]", err.text));
    assert_string_equal(err.text, "[inner]");
}

static void test_long_text_is_cut(void **state) {
    (void)state;
    fx_error err = {0};
    char text[600];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_false(fx_fail(&err, FX_INTERNAL, "%s", text));
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_false(fx_wrap(&err, "%s", text));
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void test_null_is_nobody_listening(void **state) {
    (void)state;
    errno = ENOENT;
    assert_false(fx_fail(NULL, FX_INTERNAL, "x"));
    assert_false(fx_fail_errno(NULL, "x"));
    assert_false(fx_wrap(NULL, "x"));
}

struct errno_row {
    const char *title;
    int number;
    enum fx_code code;
};
static const struct errno_row errno_rows[] = {
    {"ENOENT",       ENOENT,       FX_NOT_FOUND         },
    {"EEXIST",       EEXIST,       FX_ALREADY_EXISTS    },
    {"EACCES",       EACCES,       FX_PERMISSION_DENIED },
    {"EPERM",        EPERM,        FX_PERMISSION_DENIED },
    {"ENOMEM",       ENOMEM,       FX_RESOURCE_EXHAUSTED},
    {"ENOSPC",       ENOSPC,       FX_RESOURCE_EXHAUSTED},
    {"EMFILE",       EMFILE,       FX_RESOURCE_EXHAUSTED},
    {"EINVAL",       EINVAL,       FX_INVALID_ARGUMENT  },
    {"ECONNREFUSED", ECONNREFUSED, FX_UNAVAILABLE       },
    {"ETIMEDOUT",    ETIMEDOUT,    FX_DEADLINE_EXCEEDED },
    {"EDOM",         EDOM,         FX_INTERNAL          },
};

static void test_errno_gives_code_and_strerror(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_COUNT(errno_rows); i++) {
        fx_error err = {0};
        char want[128];
        errno = errno_rows[i].number;
        assert_false(fx_fail_errno(&err, "open '%s'", "f"));
        (void)snprintf(want, sizeof want, "open 'f': %s", strerror(errno_rows[i].number));
        assert_string_equal(err.text, want);
        if (err.code != errno_rows[i].code) fail_msg("%s", errno_rows[i].title);
    }
}

static void test_names_follow_grpcs_numbers(void **state) {
    (void)state;
    assert_string_equal(fx_code_name(FX_OK), "OK");
    assert_string_equal(fx_code_name((enum fx_code)5), "NOT_FOUND");
    assert_string_equal(fx_code_name((enum fx_code)14), "UNAVAILABLE");
    assert_string_equal(fx_code_name(FX_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(fx_code_name((enum fx_code)17), "UNKNOWN");
}

static void broken(void) {
    FX_ASSERT(1 + 1 == 3);
}
static void sound(void) {
    FX_ASSERT(1 + 1 == 2);
}

static void test_assert_aborts_in_release_too(void **state) {
    (void)state;
    assert_true(fx_dies(broken));
    assert_false(fx_dies(sound));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_sets_code_and_text),
        cmocka_unit_test(test_wrap_prepends_and_keeps_the_code),
        cmocka_unit_test(test_own_text_may_be_an_argument),
        cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_null_is_nobody_listening),
        cmocka_unit_test(test_errno_gives_code_and_strerror),
        cmocka_unit_test(test_names_follow_grpcs_numbers),
        cmocka_unit_test(test_assert_aborts_in_release_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
