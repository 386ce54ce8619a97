/* Where a client is: as it says it, and as it is told. */
#include "tests/fx_test.h"
#include "services/gateway/rejoin.h"

static const struct row {
    const char *name, *text;
    uint32_t count; /* choices */
    bool ok;
    struct gw_place want[3];
} rows[] = {
    {"the beginning",         "0",           1, true,  {{0, false}}                        },
    {"the beginning of all",  "0",           3, true,  {{0, false}, {0, false}, {0, false}}},
    {"tokens",                "12",          1, true,  {{12, false}}                       },
    {"an end",                "12e",         1, true,  {{12, true}}                        },
    {"an end without tokens", "0e",          1, true,  {{0, true}}                         },
    {"each of three",         "1,2e,3",      3, true,  {{1, false}, {2, true}, {3, false}} },
    {"the largest",           "4294967295",  1, true,  {{UINT32_MAX, false}}               },
    {"too large",             "4294967296",  1, false, {{0}}                               },
    {"far too large",         "99999999999", 1, false, {{0}}                               },
    {"one of two",            "1",           2, false, {{0}}                               },
    {"three of two",          "1,2,3",       2, false, {{0}}                               },
    {"a comma at the end",    "1,",          1, false, {{0}}                               },
    {"a comma at the front",  ",1",          2, false, {{0}}                               },
    {"nothing between",       "1,,2",        3, false, {{0}}                               },
    {"a sign",                "-1",          1, false, {{0}}                               },
    {"a space",               " 1",          1, false, {{0}}                               },
    {"two ends",              "1ee",         1, false, {{0}}                               },
    {"only an end",           "e",           1, false, {{0}}                               },
    {"a word",                "one",         1, false, {{0}}                               },
    {"nothing",               "",            1, false, {{0}}                               },
};

static void test_read(void **state) {
    (void)state;
    for (size_t r = 0; r < FX_TEST_COUNT(rows); r++) {
        const struct row *row = &rows[r];
        struct gw_place places[GW_CHOICES_MAX] = {{0}};
        if (gw_places_read(fx_span_str(row->text), places, row->count) != row->ok)
            fail_msg("%s: '%s'", row->name, row->text);
        for (uint32_t i = 0; row->ok && i < row->count; i++) {
            assert_int_equal(places[i].after, row->want[i].after);
            assert_int_equal(places[i].end, row->want[i].end);
        }
    }
}

/* The longest there is fits, and is read as it was written. */
static void test_longest(void **state) {
    struct gw_choice choices[GW_CHOICES_MAX] = {{0}};
    struct gw_visit visit = {.choices = choices, .choice_count = GW_CHOICES_MAX};
    struct gw_place places[GW_CHOICES_MAX] = {{0}};
    char text[GW_PLACES_MAX] = "";
    fx_buf out = {(uint8_t *)text, 0, sizeof text - 1};
    (void)state;
    for (uint32_t i = 0; i < GW_CHOICES_MAX; i++)
        choices[i].had = (struct gw_place){UINT32_MAX - i, true};
    gw_places_write(&visit, &out);
    assert_true(fx_buf_fits(&out));
    assert_true(gw_places_read(fx_span_str(text), places, GW_CHOICES_MAX));
    for (uint32_t i = 0; i < GW_CHOICES_MAX; i++) {
        assert_int_equal(places[i].after, UINT32_MAX - i);
        assert_true(places[i].end);
    }
}

/* A client never goes back, and never loses an end. */
static void test_move(void **state) {
    struct gw_choice choice = {
        .tokens = 3, .had = {5, false}
    };
    (void)state;
    gw_place_move(&choice, false);
    assert_int_equal(choice.had.after, 5);
    assert_false(choice.had.end);
    choice.tokens = 8;
    gw_place_move(&choice, true);
    gw_place_move(&choice, false);
    assert_int_equal(choice.had.after, 8);
    assert_true(choice.had.end);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
