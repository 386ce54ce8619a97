#pragma once
/* A llama checkpoint of odd sizes (tails of blocks and of tiles), made to be spoilt. */
#include "tests/unit/model/store_fixture.h"
#include "common/quant/int4.h"

#define SYNTHETIC_CONFIG                                                                           \
    "{\"model_type\":\"llama\",\"vocab_size\":13,\"hidden_size\":40,\"intermediate_size\":72,"     \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":20," \
    "\"eos_token_id\":2}"

static const struct fx_tensor_spec synthetic_specs[] = {
    {"model.embed_tokens.weight",                      FX_DTYPE_F32,  2, {13, 40}},
    {"model.layers.0.input_layernorm.weight",          FX_DTYPE_BF16, 1, {40}    },
    {"model.layers.0.self_attn.q_proj.weight",         FX_DTYPE_BF16, 2, {40, 40}},
    {"model.layers.0.self_attn.k_proj.weight",         FX_DTYPE_F16,  2, {20, 40}},
    {"model.layers.0.self_attn.v_proj.weight",         FX_DTYPE_F32,  2, {20, 40}},
    {"model.layers.0.self_attn.o_proj.weight",         FX_DTYPE_F16,  2, {40, 40}},
    {"model.layers.0.post_attention_layernorm.weight", FX_DTYPE_F32,  1, {40}    },
    {"model.layers.0.mlp.gate_proj.weight",            FX_DTYPE_F32,  2, {72, 40}},
    {"model.layers.0.mlp.up_proj.weight",              FX_DTYPE_BF16, 2, {72, 40}},
    {"model.layers.0.mlp.down_proj.weight",            FX_DTYPE_F32,  2, {40, 72}},
    {"model.norm.weight",                              FX_DTYPE_F16,  1, {40}    },
    {"lm_head.weight",                                 FX_DTYPE_F32,  2, {13, 40}},
};
enum { SYNTHETIC_TENSORS = FX_COUNT(synthetic_specs), SYNTHETIC_VALUES_MAX = 72 * 72 };

/* What is wrong with it; all zero: nothing. */
struct synthetic {
    const char *config;          /* NULL: SYNTHETIC_CONFIG */
    const char *skip;            /* a tensor left out */
    struct fx_tensor_spec extra; /* name NULL: none; else also replaces one of that name */
    const char *poisoned;        /* a tensor whose value `at` is `value` */
    uint32_t at;
    float value;
};

static inline void synthetic_fill(const struct synthetic *synthetic,
                                  const struct fx_tensor_spec *spec, uint32_t seed, uint64_t count,
                                  uint8_t *out) {
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        float value = (float)(int32_t)seed / 4294967296.0f;
        uint32_t bits;
        if (synthetic->poisoned && strcmp(spec->name, synthetic->poisoned) == 0 &&
            i == synthetic->at)
            value = synthetic->value;
        memcpy(&bits, &value, 4);
        uint16_t half = spec->dtype == FX_DTYPE_F16 ? fx_f32_to_f16(value) : (uint16_t)(bits >> 16);
        if (spec->dtype == FX_DTYPE_F32)
            memcpy(out + i * 4, &value, 4);
        else
            memcpy(out + i * 2, &half, 2);
    }
}

static inline size_t synthetic_list(const struct synthetic *synthetic,
                                    struct fx_tensor_spec out[SYNTHETIC_TENSORS + 1]) {
    size_t count = 0;
    const char *extra = synthetic->extra.name;
    for (size_t i = 0; i < SYNTHETIC_TENSORS; i++) {
        const char *name = synthetic_specs[i].name;
        bool skipped = (synthetic->skip && strcmp(name, synthetic->skip) == 0) ||
                       (extra && strcmp(name, extra) == 0);
        if (!skipped) out[count++] = synthetic_specs[i];
    }
    if (extra) out[count++] = synthetic->extra;
    return count;
}

/* Without padding tensors: those would be foreign to the config. */
static inline void synthetic_write(const struct synthetic *synthetic, const char *dir) {
    struct fx_tensor_spec specs[SYNTHETIC_TENSORS + 1];
    static uint8_t data[1 << 18];
    static char header[1 << 14];
    size_t count = synthetic_list(synthetic, specs), len = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t values = specs[i].shape[0] * (specs[i].dims == 2 ? specs[i].shape[1] : 1);
        uint64_t bytes = values * fx_dtype_bytes(specs[i].dtype);
        assert_true(at + bytes <= sizeof data);
        if (specs[i].dtype <= FX_DTYPE_BF16 && specs[i].dtype != FX_DTYPE_F64)
            synthetic_fill(synthetic, &specs[i], (uint32_t)i + 1, values, data + at);
        char shape[64];
        (void)snprintf(shape, sizeof shape, specs[i].dims == 2 ? "%llu,%llu" : "%llu",
                       (unsigned long long)specs[i].shape[0],
                       (unsigned long long)specs[i].shape[1]);
        len += (size_t)snprintf(header + len, sizeof header - len,
                                "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,"
                                "%zu]}",
                                i ? "," : "{", specs[i].name, fx_dtype_name(specs[i].dtype), shape,
                                at, at + (size_t)bytes);
        at += (size_t)bytes;
    }
    len += (size_t)snprintf(header + len, sizeof header - len, "}");
    uint64_t length = len;
    uint8_t *file = fx_alloc(8 + len + at, 1);
    assert_non_null(file);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, len);
    memcpy(file + 8 + len, data, at);
    fixture_write(dir, "model.safetensors", file, 8 + len + at);
    free(file);
    const char *config = synthetic->config ? synthetic->config : SYNTHETIC_CONFIG;
    fixture_write(dir, "config.json", config, strlen(config));
}
