#include "engine/kv.h"
#include "tests/fx_test.h"

static fx_kv_pool *pool_open(struct fx_kv_pool_opts opts) {
    fx_kv_pool *kv = NULL;
    fx_error err = {0};
    assert_true(fx_kv_pool_open(&opts, &kv, &err));
    return kv;
}

static uint32_t page_of(const fx_kv_pool *kv, uint32_t sequence, uint32_t index) {
    uint32_t stride;
    const uint32_t *tables = fx_kv_tables(kv, &stride);
    return tables[(size_t)sequence * stride + index];
}

static void test_refused(void **state) {
    (void)state;
    fx_kv_pool *kv = NULL;
    const struct fx_kv_pool_opts bad[] = {
        {4, 17, 1, 64, 0},
        {0, 16, 1, 64, 0},
        {4, 16, 0, 64, 0},
        {4, 16, 1, 0,  0}
    };
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        fx_error err = {0};
        assert_false(fx_kv_pool_open(&bad[i], &kv, &err));
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    }
    assert_null(kv);
    fx_kv_pool_free(NULL);
}

static void test_grow_and_clear(void **state) {
    (void)state;
    fx_auto(fx_kv_pool) kv = pool_open((struct fx_kv_pool_opts){8, 16, 3, 128, 0});
    assert_int_equal(page_of(kv, 0, 0), FX_KV_NO_PAGE);
    assert_int_equal(fx_kv_missing(kv, 0, 0, 17), 2);
    assert_true(fx_kv_reserve(kv, 0, 0, 17));
    assert_int_equal(fx_kv_pages_held(kv, 0), 2);
    assert_int_equal(fx_kv_missing(kv, 0, 17, 32), 0);
    assert_true(fx_kv_reserve(kv, 0, 17, 32)); /* the page has room */
    assert_int_equal(fx_kv_pages_free(kv), 6);
    assert_true(fx_kv_reserve(kv, 1, 0, 96));
    assert_int_equal(fx_kv_pages_free(kv), 0);
    assert_true(page_of(kv, 0, 1) != page_of(kv, 1, 0));
    assert_false(fx_kv_reserve(kv, 0, 32, 33)); /* exhausted: nothing changes */
    assert_int_equal(fx_kv_pages_held(kv, 0), 2);
    assert_int_equal(page_of(kv, 0, 2), FX_KV_NO_PAGE);
    fx_kv_clear(kv, 1);
    assert_int_equal(fx_kv_pages_free(kv), 6);
    assert_int_equal(page_of(kv, 1, 0), FX_KV_NO_PAGE);
    assert_true(fx_kv_reserve(kv, 0, 32, 128));
    fx_kv_clear(kv, 0);
    fx_kv_clear(kv, 0);
    assert_int_equal(fx_kv_pages_free(kv), fx_kv_pages(kv));
}

/* Every page has one owner, whatever the order of growing and clearing. */
static void test_no_page_twice(void **state) {
    (void)state;
    enum { PAGES = 40, SEQUENCES = 5, CONTEXT = 256 };
    fx_auto(fx_kv_pool) kv = pool_open((struct fx_kv_pool_opts){PAGES, 16, SEQUENCES, CONTEXT, 0});
    uint32_t length[SEQUENCES] = {0}, random = 12345;
    for (int turn = 0; turn < 4000; turn++) {
        random = random * 1664525U + 1013904223U;
        uint32_t s = (random >> 8) % SEQUENCES, grow = (random >> 16) % 40;
        if (length[s] + grow > CONTEXT || (random >> 28) == 0) {
            fx_kv_clear(kv, s);
            length[s] = 0;
        } else if (fx_kv_reserve(kv, s, length[s], length[s] + grow)) {
            length[s] += grow;
        }
        bool seen[PAGES] = {false};
        uint32_t held = 0;
        for (uint32_t i = 0; i < SEQUENCES; i++)
            for (uint32_t p = 0; p < (length[i] + 15) / 16; p++, held++) {
                uint32_t page = page_of(kv, i, p);
                assert_true(page < PAGES && !seen[page]);
                seen[page] = true;
            }
        assert_int_equal(held + fx_kv_pages_free(kv), PAGES);
    }
}

static void test_window(void **state) {
    (void)state;
    fx_auto(fx_kv_pool) kv = pool_open((struct fx_kv_pool_opts){4, 16, 2, 512, 20});
    assert_int_equal(fx_kv_pages_for(kv, 512, 16), 4); /* 19 + 16 positions touch 3, or 4 */
    assert_int_equal(fx_kv_pages_for(kv, 30, 16), 2);
    for (uint32_t next = 0; next < 512; next++) {
        assert_true(fx_kv_reserve(kv, 0, next, next + 1));
        uint32_t oldest = next >= 20 ? next - 19 : 0;
        assert_true(page_of(kv, 0, next / 16) != FX_KV_NO_PAGE);
        assert_true(page_of(kv, 0, oldest / 16) != FX_KV_NO_PAGE);
        if (oldest >= 16) assert_int_equal(page_of(kv, 0, oldest / 16 - 1), FX_KV_NO_PAGE);
        assert_true(fx_kv_pages_held(kv, 0) <= 3);
    }
    fx_kv_clear(kv, 0);
    assert_int_equal(fx_kv_pages_free(kv), 4);
}

/* Pages leaving the window pay for the new ones, even from an empty pool. */
static void test_window_pays(void **state) {
    (void)state;
    fx_auto(fx_kv_pool) kv = pool_open((struct fx_kv_pool_opts){3, 16, 2, 512, 16});
    assert_true(fx_kv_reserve(kv, 0, 0, 48));
    assert_int_equal(fx_kv_pages_free(kv), 0);
    assert_int_equal(fx_kv_missing(kv, 0, 48, 64), 0);
    assert_true(fx_kv_reserve(kv, 0, 48, 64));
    assert_int_equal(page_of(kv, 0, 1), FX_KV_NO_PAGE);
    assert_int_equal(fx_kv_pages_free(kv), 1);
}

static void test_share(void **state) {
    (void)state;
    fx_auto(fx_kv_pool) kv = pool_open((struct fx_kv_pool_opts){6, 16, 3, 96, 0});
    assert_true(fx_kv_reserve(kv, 0, 0, 48));
    fx_kv_share(kv, 0, 1, 2);
    assert_int_equal(page_of(kv, 1, 1), page_of(kv, 0, 1));
    assert_true(fx_kv_reserve(kv, 1, 32, 40));
    assert_true(page_of(kv, 1, 2) != page_of(kv, 0, 2));
    assert_int_equal(fx_kv_pages_free(kv), 2);
    fx_kv_clear(kv, 0);
    assert_int_equal(fx_kv_pages_free(kv), 3); /* two are still held by 1 */
    fx_kv_clear(kv, 1);
    assert_int_equal(fx_kv_pages_free(kv), 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_grow_and_clear),
        cmocka_unit_test(test_no_page_twice), cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_pays),   cmocka_unit_test(test_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
