/* The vectors must catch a codec with one wrong rule: tests.cmake makes the mutants from int4.c. */
#include "int4_vectors.h"

#define MUTANTS(row)                                                                               \
    row(tie_away) row(tie_down) row(sign_code) row(sign_decode) row(sign_max) row(tail_scale)      \
        row(tail_dropped) row(clamp) row(nibbles) row(zero_scale)

#define DECLARE(name)                                                                              \
    encode_fn name##_encode;                                                                       \
    decode_fn name##_decode;
MUTANTS(DECLARE)

struct row {
    const char *name;
    encode_fn *encode;
    decode_fn *decode;
};
#define ROW(name) {#name, name##_encode, name##_decode},
static const struct row rows[] = {MUTANTS(ROW)};

static void test_mutant_is_caught(void **state) {
    const struct row *row = *state;
    char first[96] = "";
    size_t failing = vectors_failing(row->encode, row->decode, first);
    if (failing == 0) fail_msg("no vector catches the mutant %s", row->name);
    print_message("%s: %zu vectors fail, first '%s'\n", row->name, failing, first);
}
FX_TEST_MAIN(test_mutant_is_caught, rows)
