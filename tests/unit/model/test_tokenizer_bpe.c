/* Merging against a naive reference that works on strings, and its work on long texts. */
#include "tests/unit/model/text_fixture.h"
#include "common/model/detok.h"

enum { TEXT_MAX = 200, ROUNDS = 400, LONG = 1 << 20 };

struct piece {
    char text[2 * TEXT_MAX + 1];
};

static uint64_t seed_ = 0x2545f4914f6cdd1d;
static uint32_t random_below(uint32_t limit) {
    seed_ ^= seed_ << 13;
    seed_ ^= seed_ >> 7;
    seed_ ^= seed_ << 17;
    return (uint32_t)(seed_ >> 32) % limit;
}

/* "left right" */
static void join(const char *left, const char *right, char *out, size_t cap) {
    fx_buf key = {(uint8_t *)out, 0, cap};
    fx_buf_put(&key, fx_span_str(left));
    fx_buf_put(&key, fx_span_str(" "));
    fx_buf_put(&key, (fx_span){(const uint8_t *)right, strlen(right) + 1});
    assert_true(fx_buf_fits(&key));
}

/* "left right" -> rank */
static json_t *ranks_of(const json_t *spec) {
    json_t *ranks = json_object(), *merge;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(spec, "model"), "merges"), i, merge) {
        char key[256];
        join(json_string_value(json_array_get(merge, 0)),
             json_string_value(json_array_get(merge, 1)), key, sizeof key);
        json_object_set_new(ranks, key, json_integer((json_int_t)i));
    }
    return ranks;
}

/* Joins the best pair, false when none merges. O(n) a call. */
static bool naive_step(const json_t *ranks, struct piece *pieces, size_t *count) {
    json_int_t best = -1;
    size_t at = 0;
    for (size_t i = 0; i + 1 < *count; i++) {
        char key[2 * sizeof(struct piece)];
        join(pieces[i].text, pieces[i + 1].text, key, sizeof key);
        const json_t *rank = json_object_get(ranks, key);
        if (!rank || (best >= 0 && json_integer_value(rank) >= best)) continue;
        best = json_integer_value(rank);
        at = i;
    }
    if (best < 0) return false;
    size_t len = strlen(pieces[at].text);
    memcpy(pieces[at].text + len, pieces[at + 1].text, strlen(pieces[at + 1].text) + 1);
    memmove(&pieces[at + 1], &pieces[at + 2], (*count - at - 2) * sizeof *pieces);
    (*count)--;
    return true;
}

/* Printable ASCII and space only, whose alphabet is simple. */
static void naive_encode(const json_t *vocab, const json_t *ranks, const char *text, json_t *ids) {
    static struct piece pieces[TEXT_MAX];
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++)
        (void)snprintf(pieces[i].text, sizeof pieces[i].text, text[i] == ' ' ? "Ġ" : "%c", text[i]);
    while (naive_step(ranks, pieces, &count))
        continue;
    for (size_t i = 0; i < count; i++)
        json_array_append(ids, json_object_get(vocab, pieces[i].text));
}

static void test_random(void **state) {
    static const char letters[] = "aaabbnnttthhe   wslimpor";
    (void)state;
    fx_auto(json_t) spec = fixture_json(FX_VECTORS_FOLDER "tokenizer-bpe.json");
    fx_auto(json_t) ranks = ranks_of(spec);
    fx_auto(fx_tokenizer) tokenizer = fixture_load(FX_VECTORS_FOLDER "tokenizer-bpe.json", NULL);
    const json_t *vocab = json_object_get(json_object_get(spec, "model"), "vocab");
    size_t merged = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char text[TEXT_MAX + 1];
        uint32_t at[TEXT_MAX], len = random_below(TEXT_MAX);
        for (uint32_t i = 0; i < len; i++) { /* no four spaces: an added token */
            text[i] = letters[random_below(sizeof letters - 1)];
            if (i && text[i - 1] == ' ' && text[i] == ' ') text[i] = 'a';
        }
        text[len] = 0;
        fx_auto(json_t) want = json_array();
        naive_encode(vocab, ranks, text, want);
        struct fx_ids got = {at, 0, TEXT_MAX};
        fixture_encode(tokenizer, fx_span_str(text), false, FX_ENCODE_PLAIN, &got);
        fixture_equal_ids(text, got, want);
        merged += len - got.len;
    }
    assert_true(merged > 1000);
}

/* 1 MiB of one letter, and of a text that merges everywhere: n log n. n^2 takes hours, which the
 * test's TIMEOUT ends. */
static void test_long(void **state) {
    (void)state;
    static const char *const units[] = {"a", "banana bandana the whale "};
    fx_auto(fx_tokenizer) tokenizer = fixture_load(FX_VECTORS_FOLDER "tokenizer-bpe.json", NULL);
    fx_auto(uint8_t) text = fx_alloc(LONG, 1);
    uint32_t *at = fx_alloc(LONG, sizeof *at);
    for (size_t unit = 0; unit < FX_TEST_COUNT(units); unit++) {
        size_t len = strlen(units[unit]);
        for (size_t i = 0; i < LONG; i++)
            text[i] = (uint8_t)units[unit][i % len];
        struct fx_ids ids = {at, 0, LONG};
        fixture_encode(tokenizer, (fx_span){text, LONG}, true, FX_ENCODE_PLAIN, &ids);
        assert_true(ids.len < LONG / 2);
        size_t bytes = 0;
        for (size_t i = 0; i < ids.len; i++) {
            fx_span token = fx_tokenizer_bytes(tokenizer, at[i]);
            assert_memory_equal(token.at, text + bytes, token.len);
            bytes += token.len;
        }
        assert_int_equal(bytes, LONG);
    }
    free(at);
}

/* Any bytes come back, with U+FFFD for what is no UTF-8. */
static void check_round_trip(const fx_tokenizer *tokenizer, fx_span text) {
    uint8_t repaired[3 * TEXT_MAX];
    uint32_t at[3 * TEXT_MAX];
    size_t bytes = 0;
    struct fx_ids ids = {at, 0, FX_TEST_COUNT(at)};
    fx_buf want = {repaired, 0, sizeof repaired};
    struct fx_detok detok;
    fx_detok_init(&detok, NULL);
    fx_detok_push_bytes(&detok, text, &want);
    fx_detok_flush(&detok, &want);
    fixture_encode(tokenizer, text, false, FX_ENCODE_PLAIN, &ids);
    for (size_t i = 0; i < ids.len; i++) {
        fx_span token = fx_tokenizer_bytes(tokenizer, at[i]);
        assert_true(bytes + token.len <= want.len);
        assert_memory_equal(token.at, repaired + bytes, token.len);
        bytes += token.len;
    }
    assert_int_equal(bytes, want.len);
}

static void test_round_trip(void **state) {
    (void)state;
    fx_auto(fx_tokenizer) merging = fixture_load(FX_VECTORS_FOLDER "tokenizer-bpe.json", NULL);
    fx_auto(fx_tokenizer) bundled = fixture_bundled();
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t text[TEXT_MAX];
        uint32_t len = random_below(TEXT_MAX);
        for (uint32_t i = 0; i < len; i++)
            text[i] = (uint8_t)random_below(256);
        check_round_trip(round % 2 ? bundled : merging, (fx_span){text, len});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
