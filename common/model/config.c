#include "common/model/config.h"
#include <math.h>
#include "common/model/config_json.h"

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

/* The defaults that transformers' classes have. */
struct family {
    const char *name;
    enum fx_model_type type;
    uint32_t kv_heads; /* 0: as many as heads */
    uint32_t window, context_max, experts, experts_per_token;
    double norm_eps, rope_theta;
};
static const struct family families[] = {
    {"llama",   FX_MODEL_LLAMA,   0, 0,    2048,   0, 0, 1e-6, 1e4},
    {"mistral", FX_MODEL_MISTRAL, 8, 4096, 131072, 0, 0, 1e-6, 1e4},
    {"mixtral", FX_MODEL_MIXTRAL, 8, 0,    131072, 8, 2, 1e-5, 1e6},
};

static FX_MUST bool find_family(const json_t *root, const struct family **out, fx_error *err) {
    const char *name = json_string_value(json_object_get(root, "model_type"));
    if (!name) return fx_fail(err, FX_INVALID_ARGUMENT, "model_type is not a string");
    for (size_t i = 0; i < FX_COUNT(families); i++)
        if (strcmp(families[i].name, name) == 0) {
            *out = &families[i];
            return true;
        }
    return fx_fail(err, FX_UNIMPLEMENTED,
                   "model_type '%.60s' is not supported (llama, mistral and mixtral are)", name);
}

/* A field that is there and not null. */
static const json_t *get(const json_t *root, const char *field) {
    const json_t *value = json_object_get(root, field);
    return json_is_null(value) ? NULL : value;
}

enum { REQUIRED = -1 };
struct number_field {
    const char *name;
    int64_t fallback; /* REQUIRED: none */
    uint32_t min, max;
    uint32_t *out;
};

static FX_MUST bool get_number(const json_t *root, struct number_field field, fx_error *err) {
    const json_t *value = get(root, field.name);
    if (!value && field.fallback == REQUIRED)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is missing", field.name);
    if (value && !json_is_integer(value))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is not a whole number", field.name);
    int64_t number = value ? json_integer_value(value) : field.fallback;
    if (number < field.min || number > field.max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is %lld, not in %u..%u", field.name,
                       (long long)number, field.min, field.max);
    *field.out = (uint32_t)number;
    return true;
}

static FX_MUST bool get_positive(const json_t *root, const char *field, double fallback,
                                 double *out, fx_error *err) {
    const json_t *value = get(root, field);
    if (value && !json_is_number(value))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is not a number", field);
    double number = value ? json_number_value(value) : fallback;
    if (!((float)number > 0) || !isfinite((float)number))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is %g, not a number > 0", field, number);
    *out = number;
    return true;
}

static FX_MUST bool get_bool(const json_t *root, const char *field, bool *out, fx_error *err) {
    const json_t *value = get(root, field);
    if (value && !json_is_boolean(value))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is neither true nor false", field);
    *out = json_is_true(value);
    return true;
}

/* What would change the arithmetic. */
static FX_MUST bool check_off(const json_t *root, fx_error *err) {
    static const char *const switches[] = {"attention_bias", "mlp_bias"};
    for (size_t i = 0; i < FX_COUNT(switches); i++) {
        bool on;
        if (!get_bool(root, switches[i], &on, err)) return false;
        if (on) return fx_fail(err, FX_UNIMPLEMENTED, "%s true is not supported", switches[i]);
    }
    if (get(root, "quantization_config"))
        return fx_fail(err, FX_UNIMPLEMENTED, "quantization_config is not supported");
    const json_t *partial = get(root, "partial_rotary_factor");
    if (partial && json_number_value(partial) != 1.0)
        return fx_fail(err, FX_UNIMPLEMENTED,
                       "partial_rotary_factor other than 1 is not supported");
    const json_t *act = get(root, "hidden_act");
    const char *name = act ? json_string_value(act) : "silu";
    if (!name || strcmp(name, "silu") != 0)
        return fx_fail(err, FX_UNIMPLEMENTED, "hidden_act '%.40s' is not supported (silu is)",
                       name ? name : "not a string");
    return true;
}

/* rope_scaling null or of type "default"; transformers 5 puts theta into rope_parameters. */
static FX_MUST bool get_rope(const json_t *root, const struct family *family,
                             struct fx_model_config *out, fx_error *err) {
    static const char *const fields[] = {"rope_scaling", "rope_parameters"};
    const json_t *theta_in = root;
    for (size_t i = 0; i < FX_COUNT(fields); i++) {
        const json_t *rope = get(root, fields[i]);
        if (!rope) continue;
        if (!json_is_object(rope))
            return fx_fail(err, FX_INVALID_ARGUMENT, "%s is not an object", fields[i]);
        const json_t *type = get(rope, "rope_type") ? get(rope, "rope_type") : get(rope, "type");
        const char *name = type ? json_string_value(type) : "default";
        if (!name || strcmp(name, "default") != 0)
            return fx_fail(err, FX_UNIMPLEMENTED, "%s of type '%.40s' is not supported", fields[i],
                           name ? name : "not a string");
        if (get(rope, "rope_theta")) theta_in = rope;
    }
    return get_positive(theta_in, "rope_theta", family->rope_theta, &out->rope_theta, err);
}

static FX_MUST bool get_numbers(const json_t *root, const struct family *family,
                                struct fx_model_config *out, fx_error *err) {
    const struct number_field fields[] = {
        {"vocab_size",              REQUIRED,            1, FX_VOCABULARY_MAX, &out->vocabulary  },
        {"hidden_size",             REQUIRED,            1, FX_HIDDEN_MAX,     &out->hidden      },
        {"intermediate_size",       REQUIRED,            1, FX_HIDDEN_MAX,     &out->intermediate},
        {"num_hidden_layers",       REQUIRED,            1, FX_LAYERS_MAX,     &out->layers      },
        {"num_attention_heads",     REQUIRED,            1, FX_HEADS_MAX,      &out->heads       },
        {"max_position_embeddings", family->context_max, 1, FX_CONTEXT_MAX,    &out->context_max },
    };
    for (size_t i = 0; i < FX_COUNT(fields); i++)
        if (!get_number(root, fields[i], err)) return false;
    struct number_field kv = {"num_key_value_heads",
                              family->kv_heads ? family->kv_heads : out->heads, 1, FX_HEADS_MAX,
                              &out->kv_heads};
    struct number_field dim = {"head_dim", out->hidden / out->heads, 2, FX_HIDDEN_MAX,
                               &out->head_dim};
    return get_number(root, kv, err) && get_number(root, dim, err);
}

static FX_MUST bool get_experts(const json_t *root, const struct family *family,
                                struct fx_model_config *out, fx_error *err) {
    if (!family->experts) return true;
    struct number_field experts = {"num_local_experts", family->experts, 1, FX_MODEL_EXPERTS_MAX,
                                   &out->experts};
    if (!get_number(root, experts, err)) return false;
    struct number_field chosen = {"num_experts_per_tok", family->experts_per_token, 1, out->experts,
                                  &out->experts_per_token};
    return get_number(root, chosen, err);
}

/* Absent is the family's default, null is none; llama has no window. */
static FX_MUST bool get_window(const json_t *root, const struct family *family,
                               struct fx_model_config *out, fx_error *err) {
    if (family->type == FX_MODEL_LLAMA || json_is_null(json_object_get(root, "sliding_window")))
        return true;
    struct number_field window = {"sliding_window", family->window, 0, FX_CONTEXT_MAX,
                                  &out->window};
    if (!get_number(root, window, err)) return false;
    return out->window || !json_object_get(root, "sliding_window") ||
           fx_fail(err, FX_INVALID_ARGUMENT, "sliding_window is 0");
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
    const json_t *eos = get(generation, "eos_token_id");
    if (!eos) eos = get(root, "eos_token_id");
    if (!eos) return true;
    if (!json_is_array(eos)) return put_eos(eos, out, err);
    for (size_t i = 0; i < json_array_size(eos); i++)
        if (!put_eos(json_array_get(eos, i), out, err)) return false;
    return true;
}

static FX_MUST bool get_bos(const json_t *root, struct fx_model_config *out, fx_error *err) {
    out->has_bos = get(root, "bos_token_id") != NULL;
    struct number_field bos = {"bos_token_id", REQUIRED, 0, out->vocabulary - 1, &out->bos_id};
    return !out->has_bos || get_number(root, bos, err);
}

static FX_MUST bool parse(const json_t *root, const json_t *generation, struct fx_model_config *out,
                          fx_error *err) {
    const struct family *family;
    double norm_eps;
    if (!find_family(root, &family, err) || !check_off(root, err) ||
        !get_numbers(root, family, out, err) || !get_experts(root, family, out, err) ||
        !get_window(root, family, out, err) || !get_rope(root, family, out, err) ||
        !get_positive(root, "rms_norm_eps", family->norm_eps, &norm_eps, err) ||
        !get_bool(root, "tie_word_embeddings", &out->tied, err) || !check_shape(out, err))
        return false;
    out->type = family->type;
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
