/* config.json: what is refused, by the field's name, and the defaults. */
#include "tests/unit/model/store_fixture.h"

/* A whole config; later members would be duplicates, so rows add or replace by text. */
#define CORE                                                                                       \
    "\"vocab_size\":320,\"hidden_size\":64,\"intermediate_size\":128,\"num_hidden_layers\":3,"     \
    "\"num_attention_heads\":4"
#define LLAMA "{\"model_type\":\"llama\"," CORE
#define MISTRAL "{\"model_type\":\"mistral\",\"num_key_value_heads\":2," CORE
#define MIXTRAL "{\"model_type\":\"mixtral\",\"num_key_value_heads\":2," CORE

struct row {
    const char *name, *config, *generation;
    enum fx_code code;
    const char *text;
};
static const struct row rows[] = {
    {"least",                              LLAMA "}",                                                        "",                           FX_OK,               ""                                             },
    {"mixtral",                            MIXTRAL "}",                                                      "",                           FX_OK,               ""                                             },
    {"rope_scaling null",                  LLAMA ",\"rope_scaling\":null}",                                  "",                           FX_OK,               ""                                             },
    {"rope_scaling default",               LLAMA ",\"rope_scaling\":{\"rope_type\":\"default\"}}",           "",                           FX_OK,               ""                                             },
    {"rope_scaling linear",                LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}",  "",
     FX_OK,                                                                                                                                                     ""                                             },
    {"rope_scaling dynamic",               LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.0}}", "",
     FX_UNIMPLEMENTED,                                                                                                                                          "config.json: rope_scaling of type 'dynamic'"  },
    {"rope_scaling llama3",                LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\"}}",            "",
     FX_INVALID_ARGUMENT,                                                                                                                                       "rope_scaling: factor is missing"              },
    {"rope_scaling llama3, bounds",
     LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_"
           "freq_factor\":4}}",                                                                              "",                           FX_INVALID_ARGUMENT, "low_freq_factor is not below high_freq_factor"},
    {"mlp_only_layers a number",           "{\"model_type\":\"qwen3_moe\",\"mlp_only_layers\":2," CORE "}",
     "",                                                                                                                                   FX_INVALID_ARGUMENT, "mlp_only_layers is not a list"                },
    {"layer_types too short",
     "{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"layer_types\":[\"full_attention\"]"
     "," CORE "}",
     "",                                                                                                                                   FX_INVALID_ARGUMENT, "layer_types does not name 3 layers"           },
    {"layer_types linear",
     "{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"layer_types\":[\"linear_attention\"]"
     "," CORE "}",
     "",                                                                                                                                   FX_UNIMPLEMENTED,    "layer_types 'linear_attention'"               },
    {"clip_qkv",                           "{\"model_type\":\"olmoe\",\"clip_qkv\":8," CORE "}",             "",                           FX_UNIMPLEMENTED,
     "clip_qkv"                                                                                                                                                                                                },
    {"qkv_bias false",                     "{\"model_type\":\"qwen2_moe\",\"qkv_bias\":false," CORE "}",     "",
     FX_UNIMPLEMENTED,                                                                                                                                          "qkv_bias false"                               },
    {"rope_scaling a number",              LLAMA ",\"rope_scaling\":2}",                                     "",                           FX_INVALID_ARGUMENT,
     "rope_scaling is not an object"                                                                                                                                                                           },
    {"rope_parameters yarn",               LLAMA ",\"rope_parameters\":{\"rope_type\":\"yarn\"}}",           "",
     FX_UNIMPLEMENTED,                                                                                                                                          "rope_parameters of type 'yarn'"               },
    {"other model",                        "{\"model_type\":\"gpt2\"," CORE "}",                             "",                           FX_UNIMPLEMENTED,
     "model_type 'gpt2' is not supported"                                                                                                                                                                      },
    {"no model",                           "{" CORE "}",                                                     "",                           FX_INVALID_ARGUMENT, "model_type"                                   },
    {"attention_bias",                     LLAMA ",\"attention_bias\":true}",                                "",                           FX_UNIMPLEMENTED,
     "attention_bias true"                                                                                                                                                                                     },
    {"mlp_bias",                           LLAMA ",\"mlp_bias\":true}",                                      "",                           FX_UNIMPLEMENTED,    "mlp_bias true"                                },
    {"mlp_bias a number",                  LLAMA ",\"mlp_bias\":0}",                                         "",                           FX_INVALID_ARGUMENT, "mlp_bias"                                     },
    {"hidden_act",                         LLAMA ",\"hidden_act\":\"gelu\"}",                                "",                           FX_UNIMPLEMENTED,    "hidden_act 'gelu'"                            },
    {"quantised",                          LLAMA ",\"quantization_config\":{}}",                             "",                           FX_UNIMPLEMENTED,
     "quantization_config"                                                                                                                                                                                     },
    {"partial rotary",                     LLAMA ",\"partial_rotary_factor\":0.5}",                          "",                           FX_UNIMPLEMENTED,
     "partial_rotary_factor"                                                                                                                                                                                   },
    {"no hidden_size",                     "{\"model_type\":\"llama\",\"vocab_size\":320}",                  "",                           FX_INVALID_ARGUMENT,
     "hidden_size is missing"                                                                                                                                                                                  },
    {"heads of kv",                        LLAMA ",\"num_key_value_heads\":3}",                              "",                           FX_INVALID_ARGUMENT,
     "num_attention_heads 4 is no multiple of num_key_value_heads 3"                                                                                                                                           },
    {"no kv heads",                        LLAMA ",\"num_key_value_heads\":0}",                              "",                           FX_INVALID_ARGUMENT,
     "num_key_value_heads is 0, not in 1..1024"                                                                                                                                                                },
    {"odd head",                           LLAMA ",\"head_dim\":15}",                                        "",                           FX_INVALID_ARGUMENT, "head_dim 15 is odd"                           },
    {"huge head",                          LLAMA ",\"head_dim\":65536}",                                     "",                           FX_INVALID_ARGUMENT, "head_dim is above"                            },
    {"head a text",                        LLAMA ",\"head_dim\":\"16\"}",                                    "",                           FX_INVALID_ARGUMENT,
     "head_dim is not a whole number"                                                                                                                                                                          },
    {"eps 0",                              LLAMA ",\"rms_norm_eps\":0}",                                     "",                           FX_INVALID_ARGUMENT, "rms_norm_eps is 0"                            },
    {"eps beyond f32",                     LLAMA ",\"rms_norm_eps\":1e300}",                                 "",                           FX_INVALID_ARGUMENT, "rms_norm_eps"                                 },
    {"eps below f32",                      LLAMA ",\"rms_norm_eps\":1e-65}",                                 "",                           FX_INVALID_ARGUMENT, "rms_norm_eps"                                 },
    {"theta a text",                       LLAMA ",\"rope_theta\":\"1\"}",                                   "",                           FX_INVALID_ARGUMENT, "rope_theta"                                   },
    {"tie a text",                         LLAMA ",\"tie_word_embeddings\":\"no\"}",                         "",                           FX_INVALID_ARGUMENT,
     "tie_word_embeddings"                                                                                                                                                                                     },
    {"window 0",                           MISTRAL ",\"sliding_window\":0}",                                 "",                           FX_INVALID_ARGUMENT, "sliding_window"                               },
    {"no experts",                         MIXTRAL ",\"num_local_experts\":0}",                              "",                           FX_INVALID_ARGUMENT,
     "num_local_experts"                                                                                                                                                                                       },
    {"more experts chosen than there are",
     MIXTRAL ",\"num_local_experts\":4,\"num_experts_per_tok\":5}",                                          "",                           FX_INVALID_ARGUMENT,
     "num_experts_per_tok is 5, not in 1..4"                                                                                                                                                                   },
    {"eos of no token",                    LLAMA ",\"eos_token_id\":320}",                                   "",                           FX_INVALID_ARGUMENT, "eos_token_id"                                 },
    {"eos a text",                         LLAMA ",\"eos_token_id\":\"2\"}",                                 "",                           FX_INVALID_ARGUMENT, "eos_token_id"                                 },
    {"eos of many",                        LLAMA ",\"eos_token_id\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",   "",
     FX_INVALID_ARGUMENT,                                                                                                                                       "more than 16"                                 },
    {"eos of the generation config",       LLAMA "}",                                                        "{\"eos_token_id\":[1,320]}", FX_INVALID_ARGUMENT,
     "eos_token_id"                                                                                                                                                                                            },
    {"bos of no token",                    LLAMA ",\"bos_token_id\":-1}",                                    "",                           FX_INVALID_ARGUMENT, "bos_token_id"                                 },
    {"duplicate field",                    LLAMA ",\"vocab_size\":321}",                                     "",                           FX_INVALID_ARGUMENT, "duplicate"                                    },
    {"no JSON",                            "vocab",                                                          "",                           FX_INVALID_ARGUMENT, "config.json: JSON"                            },
    {"list",                               "[]",                                                             "",                           FX_INVALID_ARGUMENT, "config.json: not a JSON object"               },
    {"generation config no JSON",          LLAMA "}",                                                        "{",                          FX_INVALID_ARGUMENT, "generation_config.json"                       },
};

static void test_config(void **state) {
    const struct row *row = *state;
    struct fx_model_config config;
    fx_error err = {0};
    bool ok = fx_model_config_parse(fx_span_str(row->config), fx_span_str(row->generation), &config,
                                    &err);
    if (row->code == FX_OK && !ok) fail_msg("refused: %s", err.text);
    if (row->code == FX_OK) return;
    assert_false(ok);
    fixture_expect(&err, row->code, row->text);
}
FX_TEST_MAIN(test_config, rows)
