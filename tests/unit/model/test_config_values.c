/* The fields of the goldens, and transformers' defaults for those a config leaves out. */
#include "common/model/family.h"
#include "tests/unit/model/store_fixture.h"

static void parse(const char *config, const char *generation, struct fx_model_config *out) {
    fx_error err = {0};
    if (!fx_model_config_parse(fx_span_str(config), fx_span_str(generation), out, &err))
        fail_msg("%s", err.text);
}

static void load(const char *folder, struct fx_model_config *out) {
    size_t len;
    char *config = fixture_read(folder, "config.json", &len);
    char *generation = fixture_read(folder, "generation_config.json", &len);
    parse(config, generation, out);
    free(config);
    free(generation);
}

static void test_goldens(void **state) {
    struct fx_model_config config;
    (void)state;
    load(FX_GOLDENS "mistral-window", &config);
    assert_string_equal(config.family->name, "mistral");
    assert_int_equal(config.window, 16);
    assert_int_equal(config.kv_heads, 2);
    assert_true(config.norm_eps == 1e-6f);
    load(FX_GOLDENS "mixtral", &config);
    assert_string_equal(config.family->name, "mixtral");
    assert_int_equal(config.window, 0);
    assert_int_equal(config.head_dim, 16); /* null in the file */
    assert_int_equal(config.experts, 8);
    assert_int_equal(config.experts_per_token, 2);
    assert_true(config.rope.theta == 1e6);
    load(FX_GOLDENS "llama-tied", &config);
    assert_string_equal(config.family->name, "llama");
    assert_int_equal(config.kv_heads, 1);
    assert_int_equal(config.experts, 0);
    assert_true(config.tied);
}

static void test_bundled(void **state) {
    struct fx_model_config config;
    (void)state;
    load(FX_BUNDLED, &config);
    assert_int_equal(config.vocabulary, 260);
    assert_int_equal(config.hidden, 192);
    assert_int_equal(config.intermediate, 384);
    assert_int_equal(config.layers, 4);
    assert_int_equal(config.heads, 6);
    assert_int_equal(config.kv_heads, 2);
    assert_int_equal(config.head_dim, 32);
    assert_int_equal(config.context_max, 1024);
    assert_true(config.tied);
    assert_true(config.has_bos);
    assert_int_equal(config.bos_id, 256);
    assert_int_equal(config.eos_count, 1);
    assert_int_equal(config.eos_ids[0], 257);
}

#define CORE                                                                                       \
    "\"vocab_size\":320,\"hidden_size\":64,\"intermediate_size\":128,\"num_hidden_layers\":3,"     \
    "\"num_attention_heads\":8"

static void test_defaults(void **state) {
    struct fx_model_config config;
    (void)state;
    parse("{\"model_type\":\"llama\"," CORE "}", "", &config);
    assert_int_equal(config.kv_heads, 8);
    assert_int_equal(config.head_dim, 8);
    assert_int_equal(config.context_max, 2048);
    assert_int_equal(config.window, 0);
    assert_true(config.norm_eps == 1e-6f && config.rope.theta == 1e4);
    assert_false(config.tied || config.has_bos);
    assert_int_equal(config.eos_count, 0);
    parse("{\"model_type\":\"mistral\"," CORE "}", "", &config);
    assert_int_equal(config.window, 4096);
    assert_int_equal(config.kv_heads, 8);
    parse("{\"model_type\":\"mistral\",\"sliding_window\":null," CORE "}", "", &config);
    assert_int_equal(config.window, 0);
    parse("{\"model_type\":\"mixtral\"," CORE "}", "", &config);
    assert_int_equal(config.experts, 8);
    assert_int_equal(config.experts_per_token, 2);
    assert_true(config.norm_eps == 1e-5f && config.rope.theta == 1e6);
}

static void test_eos_and_rope(void **state) {
    struct fx_model_config config;
    (void)state;
    parse("{\"model_type\":\"llama\",\"eos_token_id\":9," CORE "}", "{\"eos_token_id\":[3,4]}",
          &config);
    assert_int_equal(config.eos_count, 2);
    assert_int_equal(config.eos_ids[0], 3);
    assert_int_equal(config.eos_ids[1], 4);
    parse("{\"model_type\":\"llama\",\"eos_token_id\":9," CORE "}", "{\"eos_token_id\":null}",
          &config);
    assert_int_equal(config.eos_count, 1);
    assert_int_equal(config.eos_ids[0], 9);
    parse("{\"model_type\":\"llama\",\"rope_parameters\":{\"rope_type\":\"default\","
          "\"rope_theta\":500000.0}," CORE "}",
          "", &config);
    assert_true(config.rope.theta == 5e5);
}

static void test_dtypes(void **state) {
    (void)state;
    for (int dtype = FX_MODEL_F32; dtype <= FX_MODEL_INT4; dtype++)
        assert_int_equal(fx_model_dtype_of(fx_model_dtype_name((enum fx_model_dtype)dtype)), dtype);
    assert_int_equal(fx_model_dtype_of("int8"), 0);
    assert_int_equal(fx_model_dtype_of(""), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),  cmocka_unit_test(test_bundled),
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_eos_and_rope),
        cmocka_unit_test(test_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
