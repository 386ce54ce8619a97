#include "common/model/config.h"
#include "common/model/config_rope.h"
#include "common/model/family.h"

static const char *const dtype_names[] = {
    [FX_MODEL_F32] = "f32", [FX_MODEL_F16] = "f16", [FX_MODEL_INT4] = "int4"};

const char *fx_model_dtype_name(enum fx_model_dtype dtype) {
    return dtype_names[dtype];
}

enum fx_model_dtype fx_model_dtype_of(const char *name) {
    for (size_t i = 1; i < FX_COUNT(dtype_names); i++)
        if (strcmp(dtype_names[i], name) == 0) return (enum fx_model_dtype)i;
    return (enum fx_model_dtype)0;
}

static FX_MUST bool find_family(const json_t *root, const struct fx_family **out, fx_error *err) {
    const char *name = json_string_value(json_object_get(root, "model_type"));
    if (!name) return fx_fail(err, FX_INVALID_ARGUMENT, "model_type is not a string");
    *out = fx_family_find(name);
    return *out || fx_fail(err, FX_UNIMPLEMENTED, "model_type '%.60s' is not supported (%s are)",
                           name, fx_family_names());
}

/* What would change the arithmetic. */
static FX_MUST bool check_off(const json_t *root, fx_error *err) {
    const json_t *partial = fx_config__get(root, "partial_rotary_factor");
    if (partial && json_number_value(partial) != 1.0)
        return fx_fail(err, FX_UNIMPLEMENTED,
                       "partial_rotary_factor other than 1 is not supported");
    const json_t *act = fx_config__get(root, "hidden_act");
    const char *name = act ? json_string_value(act) : "silu";
    if (!name || strcmp(name, "silu") != 0)
        return fx_fail(err, FX_UNIMPLEMENTED, "hidden_act '%.40s' is not supported (silu is)",
                       name ? name : "not a string");
    return fx_config__off(root, "attention_bias", err) && fx_config__off(root, "mlp_bias", err) &&
           fx_config__absent(root, "quantization_config", err);
}

static FX_MUST bool read_numbers(const json_t *root, struct fx_model_config *out, fx_error *err) {
    const struct fx_family *family = out->family;
    const struct fx_config_number fields[] = {
        {"vocab_size",              FX_CONFIG_REQUIRED,  1, FX_VOCABULARY_MAX, &out->vocabulary  },
        {"hidden_size",             FX_CONFIG_REQUIRED,  1, FX_HIDDEN_MAX,     &out->hidden      },
        {"intermediate_size",       FX_CONFIG_REQUIRED,  1, FX_HIDDEN_MAX,     &out->intermediate},
        {"num_hidden_layers",       FX_CONFIG_REQUIRED,  1, FX_LAYERS_MAX,     &out->layers      },
        {"num_attention_heads",     FX_CONFIG_REQUIRED,  1, FX_HEADS_MAX,      &out->heads       },
        {"max_position_embeddings", family->context_max, 1, FX_CONTEXT_MAX,    &out->context_max },
    };
    if (!fx_config__numbers(root, fields, FX_COUNT(fields), err)) return false;
    struct fx_config_number kv = {"num_key_value_heads",
                                  family->kv_heads ? family->kv_heads : out->heads, 1, FX_HEADS_MAX,
                                  &out->kv_heads};
    struct fx_config_number dim = {"head_dim",
                                   family->head_dim ? family->head_dim : out->hidden / out->heads,
                                   2, FX_HIDDEN_MAX, &out->head_dim};
    return fx_config__number(root, kv, err) && fx_config__number(root, dim, err);
}

static FX_MUST bool check_shape(const struct fx_model_config *config, fx_error *err) {
    if (config->heads % config->kv_heads)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "num_attention_heads %u is no multiple of num_key_value_heads %u",
                       config->heads, config->kv_heads);
    if (config->head_dim % 2)
        return fx_fail(err, FX_INVALID_ARGUMENT, "head_dim %u is odd", config->head_dim);
    if ((uint64_t)config->heads * config->head_dim > FX_HIDDEN_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "num_attention_heads * head_dim is above %d",
                       FX_HIDDEN_MAX);
    return true;
}

static FX_MUST bool put_eos(const json_t *id, struct fx_model_config *out, fx_error *err) {
    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= out->vocabulary)
        return fx_fail(err, FX_INVALID_ARGUMENT, "eos_token_id is no id of the vocabulary");
    if (out->eos_count == FX_EOS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "more than %d of eos_token_id", FX_EOS_MAX);
    out->eos_ids[out->eos_count++] = (uint32_t)json_integer_value(id);
    return true;
}

/* An id or a list of ids; the generation config goes first. */
static FX_MUST bool get_eos(const json_t *root, const json_t *generation,
                            struct fx_model_config *out, fx_error *err) {
    const json_t *eos = fx_config__get(generation, "eos_token_id");
    if (!eos) eos = fx_config__get(root, "eos_token_id");
    if (!eos) return true;
    if (!json_is_array(eos)) return put_eos(eos, out, err);
    for (size_t i = 0; i < json_array_size(eos); i++)
        if (!put_eos(json_array_get(eos, i), out, err)) return false;
    return true;
}

static FX_MUST bool get_bos(const json_t *root, struct fx_model_config *out, fx_error *err) {
    out->has_bos = fx_config__get(root, "bos_token_id") != NULL;
    struct fx_config_number bos = {"bos_token_id", FX_CONFIG_REQUIRED, 0, out->vocabulary - 1,
                                   &out->bos_id};
    return !out->has_bos || fx_config__number(root, bos, err);
}

static FX_MUST bool parse(const json_t *root, const json_t *generation, struct fx_model_config *out,
                          fx_error *err) {
    double norm_eps;
    if (!find_family(root, &out->family, err) || !check_off(root, err) ||
        !read_numbers(root, out, err) ||
        (out->family->read && !out->family->read(root, out, err)) ||
        !fx_config__rope(root, out, err) ||
        !fx_config__positive(root, "rms_norm_eps", out->family->norm_eps, &norm_eps, err) ||
        !fx_config__bool(root, "tie_word_embeddings", false, &out->tied, err) ||
        !check_shape(out, err))
        return false;
    out->norm_eps = (float)norm_eps;
    return get_bos(root, out, err) && get_eos(root, generation, out, err);
}

bool fx_model_config_parse(fx_span config_json, fx_span generation_config_json,
                           struct fx_model_config *out, fx_error *err) {
    static const struct fx_json_limits limits = {32, 1 << 16};
    fx_auto(json_t) root = NULL;
    fx_auto(json_t) generation = NULL;
    struct fx_model_config config = {0};
    if (!generation_config_json.len) generation_config_json = fx_span_str("{}");
    if (!fx_config__json(config_json, limits, &root, err)) return fx_wrap(err, "config.json");
    if (!fx_config__json(generation_config_json, limits, &generation, err))
        return fx_wrap(err, "generation_config.json");
    if (!parse(root, generation, &config, err)) return fx_wrap(err, "config.json");
    *out = config;
    return true;
}
