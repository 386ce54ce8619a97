/* Checkpoints that do not fit their config, or hold what can't be stored: refused by name, and
 * nothing is left in the store. */
#include <math.h>
#include "tests/unit/model/synthetic.h"

#define Q "model.layers.0.self_attn.q_proj.weight"

struct row {
    const char *name;
    struct synthetic synthetic;
    enum fx_model_dtype dtype;
    enum fx_code code;
    const char *text;
};
static const struct row rows[] = {
    {"missing",                     {.skip = Q},                                              FX_MODEL_F32,  FX_INVALID_ARGUMENT, "tensor '" Q "' is missing"},
    {"missing norm",
     {.skip = "model.norm.weight"},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'model.norm.weight' is missing"                                                                                                                 },
    {"missing head",
     {.skip = "lm_head.weight"},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'lm_head.weight' is missing"                                                                                                                    },
    {"extra",
     {.extra = {"model.layers.1.mlp.up_proj.weight", FX_DTYPE_F32, 2, {72, 40}}},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'model.layers.1.mlp.up_proj.weight' has no place"                                                                                               },
    {"a bias",
     {.extra = {"model.layers.0.self_attn.q_proj.bias", FX_DTYPE_F32, 1, {40}}},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'model.layers.0.self_attn.q_proj.bias' has no"                                                                                                  },
    {"transposed",
     {.extra = {"model.layers.0.mlp.down_proj.weight", FX_DTYPE_F32, 2, {72, 40}}},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'model.layers.0.mlp.down_proj.weight': shape is [72, 40], the config wants [40, 72]"                                                            },
    {"flat",
     {.extra = {Q, FX_DTYPE_F32, 1, {1600}}},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor '" Q "': shape is [1600], the config wants [40, 40]"                                                                                            },
    {"long norm",
     {.extra = {"model.norm.weight", FX_DTYPE_F32, 1, {41}}},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'model.norm.weight': shape is [41], the config wants [40]"                                                                                      },
    {"norm of two dimensions",
     {.extra = {"model.norm.weight", FX_DTYPE_F32, 2, {1, 40}}},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'model.norm.weight': shape is [1, 40]"                                                                                                          },
    {"whole numbers",
     {.extra = {Q, FX_DTYPE_I8, 2, {40, 40}}},
     FX_MODEL_F32,                                                                                           FX_UNIMPLEMENTED,
     "tensor '" Q "': dtype I8"                                                                                                                              },
    {"f64",
     {.extra = {Q, FX_DTYPE_F64, 2, {40, 40}}},
     FX_MODEL_F32,                                                                                           FX_UNIMPLEMENTED,
     "tensor '" Q "': dtype F64"                                                                                                                             },
    {"NaN in f32",
     {.poisoned = "lm_head.weight", .at = 43, .value = NAN},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'lm_head.weight': row 1, column 3: nan is not finite"                                                                                           },
    {"infinity in a bf16 source",
     {.poisoned = Q, .at = 1599, .value = INFINITY},
     FX_MODEL_F32,                                                                                           FX_INVALID_ARGUMENT,
     "tensor '" Q "': row 39, column 39: inf is not finite"                                                                                                  },
    {"infinity kept as f16",
     {.poisoned = "model.layers.0.self_attn.o_proj.weight", .value = -INFINITY},
     FX_MODEL_F16,                                                                                           FX_INVALID_ARGUMENT,
     "o_proj.weight': row 0, column 0: -inf is not finite"                                                                                                   },
    {"beyond f16",
     {.poisoned = "lm_head.weight", .at = 41, .value = 70000.0f},
     FX_MODEL_F16,                                                                                           FX_INVALID_ARGUMENT,
     "tensor 'lm_head.weight': row 1, column 1: 70000 is beyond f16"                                                                                         },
    {"within f16 once cut to bf16",
     {.poisoned = Q, .at = 0, .value = -65520.0f},
     FX_MODEL_F16,                                                                                           FX_OK,
     ""                                                                                                                                                      }, /* -65520 cut to bf16 is -65280 */
    {"half a step above f16",
     {.poisoned = "lm_head.weight", .at = 0, .value = 65520.0f},
     FX_MODEL_F16,                                                                                           FX_INVALID_ARGUMENT,
     "row 0, column 0: 65520 is beyond f16"                                                                                                                  },
    {"the last of f16",
     {.poisoned = "lm_head.weight", .at = 0, .value = 65519.0f},
     FX_MODEL_F16,                                                                                           FX_OK,
     ""                                                                                                                                                      },
    {"NaN in int4",
     {.poisoned = "model.layers.0.mlp.gate_proj.weight", .at = 81, .value = NAN},
     FX_MODEL_INT4,                                                                                          FX_INVALID_ARGUMENT,
     "tensor 'model.layers.0.mlp.gate_proj.weight': row 2, column 1: nan"                                                                                    },
    {"norms keep what f16 can't",
     {.poisoned = "model.layers.0.post_attention_layernorm.weight", .at = 0, .value = 1e30f},
     FX_MODEL_F16,                                                                                           FX_OK,
     ""                                                                                                                                                      },
    {"old rotary table",
     {.extra = {"model.layers.0.self_attn.rotary_emb.inv_freq", FX_DTYPE_F32, 1, {10}}},
     FX_MODEL_F32,                                                                                           FX_OK,
     ""                                                                                                                                                      },
    {"head of a tied model",
     {.config =
          "{\"tie_word_embeddings\":true,"
          "\"model_type\":\"llama\","
          "\"vocab_size\":13,\"hidden_size\":40,\"intermediate_size\":72,\"num_hidden_layers\":1,"
          "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":20}"},
     FX_MODEL_INT4,                                                                                          FX_OK,
     ""                                                                                                                                                      },
    {"config refused",
     {.config = "{\"model_type\":\"bert\"}"},
     FX_MODEL_F32,                                                                                           FX_UNIMPLEMENTED,
     "config.json: model_type 'bert'"                                                                                                                        },
    {"good in f32",                 {0},                                                      FX_MODEL_F32,  FX_OK,               ""                         },
    {"good in f16",                 {0},                                                      FX_MODEL_F16,  FX_OK,               ""                         },
    {"good in int4",                {0},                                                      FX_MODEL_INT4, FX_OK,               ""                         },
};

static void test_refuses(void **state) {
    const struct row *row = *state;
    struct fixture_dir folder, store;
    struct fx_model_list list;
    fx_error err = {0};
    fixture_dir_make(&folder);
    fixture_dir_make(&store);
    synthetic_write(&row->synthetic, folder.path);
    bool ok = fx_ingest(
        &(struct fx_ingest_opts){
            .folder = folder.path, .store_dir = store.path, .name = "m", .dtype = row->dtype},
        NULL, &err);
    if (ok != (row->code == FX_OK)) fail_msg("%s", ok ? "accepted" : err.text);
    if (!ok) fixture_expect(&err, row->code, row->text);
    assert_true(fx_store_list(store.path, &list, &err));
    assert_int_equal(list.count, ok ? 1 : 0);
    if (ok) fx_model_free(fixture_open(store.path, "m"));
    free(list.at);
    char stages[FIXTURE_PATH];
    fixture_path(stages, store.path, ".import");
    if (access(stages, F_OK) == 0) assert_int_equal(fixture_entries(stages), 0);
    fixture_dir_remove(&folder);
    fixture_dir_remove(&store);
}
FX_TEST_MAIN(test_refuses, rows)
