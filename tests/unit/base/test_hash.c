#include "tests/fx_test.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* FIPS 180-2 appendix B; CRC-32C check value of the CRC catalogue and RFC 3720 B.4. */
static const struct {
    const char *text, *sha256;
} vectors[] = {
    {"",                                                         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc",                                                      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"                                                            },
};

static void test_sha256_known_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_COUNT(vectors); i++) {
        uint8_t digest[FX_SHA256_BYTES];
        char hex[FX_SHA256_HEX];
        fx_sha256(fx_span_str(vectors[i].text), digest);
        fx_hex((fx_span){digest, sizeof digest}, hex);
        assert_string_equal(hex, vectors[i].sha256);
    }
}

static void test_sha256_stream_of_a_million_and_again(void **state) {
    (void)state;
    fx_auto(fx_sha256_stream) stream = fx_sha256_new();
    assert_non_null(stream);
    uint8_t thousand[1000], digest[FX_SHA256_BYTES];
    char hex[FX_SHA256_HEX];
    memset(thousand, 'a', sizeof thousand);
    for (int i = 0; i < 1000; i++)
        fx_sha256_add(stream, (fx_span){thousand, sizeof thousand});
    fx_sha256_end(stream, digest);
    fx_hex((fx_span){digest, sizeof digest}, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    fx_sha256_add(stream, fx_span_str("a")); /* begun anew */
    fx_sha256_add(stream, fx_span_str("bc"));
    fx_sha256_end(stream, digest);
    fx_hex((fx_span){digest, sizeof digest}, hex);
    assert_string_equal(hex, vectors[1].sha256);
    fx_sha256_free(NULL);
}

static void test_crc32c_known_answers(void **state) {
    (void)state;
    uint8_t bytes[32] = {0};
    assert_true(fx_crc32c(0, fx_span_str("123456789")) == 0xE3069283U);
    assert_true(fx_crc32c(0, (fx_span){NULL, 0}) == 0);
    assert_true(fx_crc32c(0, (fx_span){bytes, 32}) == 0x8A9136AAU);
    memset(bytes, 0xFF, sizeof bytes);
    assert_true(fx_crc32c(0, (fx_span){bytes, 32}) == 0x62A8AB43U);
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_true(fx_crc32c(0, (fx_span){bytes, 32}) == 0x46DD794EU);
    uint32_t split = fx_crc32c(fx_crc32c(0, (fx_span){bytes, 5}), (fx_span){bytes + 5, 27});
    assert_true(split == 0x46DD794EU);
}

static void test_random_differs(void **state) {
    (void)state;
    uint8_t a[32] = {0}, b[32] = {0}, zero[32] = {0};
    fx_random(a, sizeof a);
    fx_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a, zero, sizeof a);
}

/* Small ones share a block: none comes twice, across blocks, threads and a fork. */
enum { DRAWS = 4000, DRAW_BYTES = 16 };
static uint8_t drawn[3][DRAWS][DRAW_BYTES];

static void *draw(void *row) {
    for (size_t i = 0; i < DRAWS; i++)
        fx_random(((uint8_t(*)[DRAW_BYTES])row)[i], DRAW_BYTES);
    return NULL;
}

static void draw_in_child(void) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)draw(drawn[2]);
        (void)!write(ends[1], drawn[2], sizeof drawn[2]);
        _exit(0);
    }
    (void)close(ends[1]);
    uint8_t *at = drawn[2][0];
    for (ssize_t got; (got = read(ends[0], at, sizeof drawn[2])) > 0;)
        at += got;
    assert_true(at == drawn[2][0] + sizeof drawn[2]);
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int by_bytes(const void *a, const void *b) {
    return memcmp(a, b, DRAW_BYTES);
}

static void test_random_never_twice(void **state) {
    pthread_t thread;
    uint8_t(*all)[DRAW_BYTES] = drawn[0];
    (void)state;
    fx_random(drawn[0][0], 1); /* the parent's block is begun when it forks */
    assert_int_equal(pthread_create(&thread, NULL, draw, drawn[1]), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    draw_in_child();
    (void)draw(drawn[0]);
    qsort(all, 3 * DRAWS, DRAW_BYTES, by_bytes);
    for (size_t i = 1; i < 3 * DRAWS; i++)
        assert_memory_not_equal(all[i - 1], all[i], DRAW_BYTES);
}

static void test_equal_ct(void **state) {
    (void)state;
    assert_true(fx_equal_ct("abc", "abc", 3));
    assert_false(fx_equal_ct("abc", "abd", 3));
    assert_false(fx_equal_ct("bbc", "abc", 3));
    assert_true(fx_equal_ct("abc", "xyz", 0));
}

struct unhex_row {
    const char *text;
    size_t len;
    bool ok;
};
static const struct unhex_row unhex_rows[] = {
    {"00ffA9",   3, true },
    {"",         0, true },
    {"00ff",     3, false}, /* short */
    {"00ffa9b0", 3, false}, /* long */
    {"00ffag",   3, false},
    {"00ff a",   3, false},
    {"0x00ff",   3, false},
    {"00ff/:",   3, false},
    {"00ff@G",   3, false},
    {"00ff`g",   3, false},
};

static void test_hex_both_ways(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_COUNT(unhex_rows); i++) {
        const struct unhex_row *row = &unhex_rows[i];
        uint8_t out[4] = {9, 9, 9, 9};
        static const uint8_t untouched[4] = {9, 9, 9, 9}, want[3] = {0x00, 0xff, 0xa9};
        if (fx_unhex(fx_span_str(row->text), out, row->len) != row->ok) fail_msg("%s", row->text);
        if (row->ok)
            assert_memory_equal(out, want, row->len);
        else
            assert_memory_equal(out, untouched, sizeof out);
    }
    char hex[7];
    fx_hex((fx_span){(const uint8_t *)"\x00\xff\xa9", 3}, hex);
    assert_string_equal(hex, "00ffa9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_known_answers),
        cmocka_unit_test(test_sha256_stream_of_a_million_and_again),
        cmocka_unit_test(test_crc32c_known_answers),
        cmocka_unit_test(test_random_differs),
        cmocka_unit_test(test_random_never_twice),
        cmocka_unit_test(test_equal_ct),
        cmocka_unit_test(test_hex_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
