#include "common/model/config_rope.h"
#include "common/model/family.h"

static FX_MUST bool read_linear(const json_t *rope, struct fx_model_config *out, fx_error *err) {
    out->rope.scaling = FX_ROPE_LINEAR;
    return fx_config__positive(rope, "factor", 0, &out->rope.factor, err);
}

static FX_MUST bool read_llama3(const json_t *rope, struct fx_model_config *out, fx_error *err) {
    struct fx_config_number context = {"original_max_position_embeddings", out->context_max, 1,
                                       FX_CONTEXT_MAX, &out->rope.context};
    out->rope.scaling = FX_ROPE_LLAMA3;
    if (!fx_config__positive(rope, "factor", 0, &out->rope.factor, err) ||
        !fx_config__positive(rope, "low_freq_factor", 0, &out->rope.low_factor, err) ||
        !fx_config__positive(rope, "high_freq_factor", 0, &out->rope.high_factor, err))
        return false;
    if (out->rope.low_factor >= out->rope.high_factor)
        return fx_fail(err, FX_INVALID_ARGUMENT, "low_freq_factor is not below high_freq_factor");
    return fx_config__number(rope, context, err);
}

static FX_MUST bool read_plain(const json_t *rope, struct fx_model_config *out, fx_error *err) {
    (void)rope, (void)out, (void)err;
    return true;
}

static const struct {
    const char *name;
    bool (*read)(const json_t *rope, struct fx_model_config *out, fx_error *err);
} types[] = {
    {"default", read_plain },
    {"linear",  read_linear},
    {"llama3",  read_llama3},
};

static FX_MUST bool read_type(const json_t *rope, const char *field, struct fx_model_config *out,
                              fx_error *err) {
    const json_t *type = fx_config__get(rope, "rope_type");
    if (!type) type = fx_config__get(rope, "type");
    const char *name = type ? json_string_value(type) : "default";
    for (size_t i = 0; name && i < FX_COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].read(rope, out, err) || fx_wrap(err, "%s", field);
    return fx_fail(err, FX_UNIMPLEMENTED, "%s of type '%.40s' is not supported", field,
                   name ? name : "not a string");
}

bool fx_config__rope(const json_t *root, struct fx_model_config *out, fx_error *err) {
    static const char *const fields[] = {"rope_scaling", "rope_parameters"};
    const json_t *theta_in = root;
    for (size_t i = 0; i < FX_COUNT(fields); i++) {
        const json_t *rope = fx_config__get(root, fields[i]);
        if (!rope) continue;
        if (!json_is_object(rope))
            return fx_fail(err, FX_INVALID_ARGUMENT, "%s is not an object", fields[i]);
        if (!read_type(rope, fields[i], out, err)) return false;
        if (fx_config__get(rope, "rope_theta")) theta_in = rope;
    }
    return fx_config__positive(theta_in, "rope_theta", out->family->rope_theta, &out->rope.theta,
                               err);
}
