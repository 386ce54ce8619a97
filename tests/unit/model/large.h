#pragma once
#include "tests/unit/model/store_fixture.h"

/* A checkpoint of 130 MB of zeros (a sparse file): its import takes long enough to be disturbed. */
static inline void large_make(const char *dir, char folder[FIXTURE_PATH]) {
    static const char config[] =
        "{\"model_type\":\"llama\",\"vocab_size\":131072,\"hidden_size\":256,"
        "\"intermediate_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":4,"
        "\"tie_word_embeddings\":true}";
    static const struct fx_tensor_spec specs[] = {
        {"model.embed_tokens.weight",                      FX_DTYPE_F32, 2, {131072, 256}},
        {"model.layers.0.input_layernorm.weight",          FX_DTYPE_F32, 1, {256}        },
        {"model.layers.0.self_attn.q_proj.weight",         FX_DTYPE_F32, 2, {256, 256}   },
        {"model.layers.0.self_attn.k_proj.weight",         FX_DTYPE_F32, 2, {256, 256}   },
        {"model.layers.0.self_attn.v_proj.weight",         FX_DTYPE_F32, 2, {256, 256}   },
        {"model.layers.0.self_attn.o_proj.weight",         FX_DTYPE_F32, 2, {256, 256}   },
        {"model.layers.0.post_attention_layernorm.weight", FX_DTYPE_F32, 1, {256}        },
        {"model.layers.0.mlp.gate_proj.weight",            FX_DTYPE_F32, 2, {64, 256}    },
        {"model.layers.0.mlp.up_proj.weight",              FX_DTYPE_F32, 2, {64, 256}    },
        {"model.layers.0.mlp.down_proj.weight",            FX_DTYPE_F32, 2, {256, 64}    },
        {"model.norm.weight",                              FX_DTYPE_F32, 1, {256}        },
    };
    char path[FIXTURE_PATH];
    fx_error err = {0};
    fx_auto(fx_safetensors_writer) writer = NULL;
    fixture_path(folder, dir, "large");
    assert_int_equal(mkdir(folder, 0755), 0);
    fixture_write(folder, "config.json", config, sizeof config - 1);
    fixture_path(path, folder, "model.safetensors");
    assert_true(fx_safetensors_create(path, specs, FX_COUNT(specs), &writer, &err));
}
