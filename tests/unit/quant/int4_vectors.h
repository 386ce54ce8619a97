#pragma once
#include "common/quant/int4.h"
#include "tests/fx_test.h"
#include <jansson.h>

/* Reads int4_vectors.json, written by int4_vectors.py, and holds a codec to it. */

enum { VALUES_MAX = 512, BLOCKS_MAX = VALUES_MAX / 64 };

typedef bool encode_fn(const float *, size_t, uint8_t *, float *, fx_error *);
typedef void decode_fn(const uint8_t *, const float *, size_t, float *);

struct vector {
    size_t n, blocks;
    uint32_t in[VALUES_MAX], out[VALUES_MAX], scales[BLOCKS_MAX];
    uint8_t codes[VALUES_MAX / 2];
};

static inline size_t vector_hex(const json_t *object, const char *key, size_t digits, uint32_t *out,
                                size_t max) {
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    size_t count = strlen(text) / digits;
    assert_true(count <= max);
    for (size_t i = 0; i < count; i++) {
        char word[9] = {0};
        memcpy(word, text + i * digits, digits);
        out[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    return count;
}

static inline void vector_read(const json_t *object, struct vector *vector) {
    uint32_t codes[VALUES_MAX / 2];
    vector->n = vector_hex(object, "in", 8, vector->in, VALUES_MAX);
    vector->blocks = vector_hex(object, "scales", 8, vector->scales, BLOCKS_MAX);
    assert_int_equal(vector->blocks, (vector->n + 63) / 64);
    assert_int_equal(vector_hex(object, "out", 8, vector->out, VALUES_MAX), vector->n);
    assert_int_equal(vector_hex(object, "codes", 2, codes, VALUES_MAX / 2), vector->blocks * 32);
    for (size_t i = 0; i < vector->blocks * 32; i++)
        vector->codes[i] = (uint8_t)codes[i];
}

/* True when the codec gives the vector's bytes both ways. */
static inline bool vector_holds(const struct vector *vector, encode_fn *encode, decode_fn *decode) {
    float in[VALUES_MAX], out[VALUES_MAX], scales[BLOCKS_MAX];
    uint8_t codes[VALUES_MAX / 2];
    memcpy(in, vector->in, sizeof in);
    if (!encode(in, vector->n, codes, scales, NULL)) return false;
    bool ok = memcmp(codes, vector->codes, vector->blocks * 32) == 0 &&
              memcmp(scales, vector->scales, vector->blocks * 4) == 0;
    memcpy(scales, vector->scales, sizeof scales);
    decode(vector->codes, scales, vector->n, out);
    return ok && memcmp(out, vector->out, vector->n * 4) == 0;
}

/* How many vectors fail; the first one's name goes to `first`. */
static inline size_t vectors_failing(encode_fn *encode, decode_fn *decode, char first[96]) {
    const char *path = FX_SOURCE_DIR "/tests/unit/quant/int4_vectors.json";
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_t *cases = json_object_get(root, "cases"), *object;
    assert_true(json_array_size(cases) >= 20);
    size_t failing = 0, at;
    json_array_foreach(cases, at, object) {
        struct vector vector;
        vector_read(object, &vector);
        if (vector_holds(&vector, encode, decode)) continue;
        if (failing++ == 0)
            (void)snprintf(first, 96, "%s", json_string_value(json_object_get(object, "name")));
    }
    json_decref(root);
    return failing;
}
