#include "common/model/config_field.h"
#include <math.h>

const json_t *fx_config__get(const json_t *root, const char *field) {
    const json_t *value = json_object_get(root, field);
    return json_is_null(value) ? NULL : value;
}

bool fx_config__number(const json_t *root, struct fx_config_number field, fx_error *err) {
    const json_t *value = fx_config__get(root, field.name);
    if (!value && field.fallback == FX_CONFIG_REQUIRED)
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

bool fx_config__numbers(const json_t *root, const struct fx_config_number *fields, size_t count,
                        fx_error *err) {
    for (size_t i = 0; i < count; i++)
        if (!fx_config__number(root, fields[i], err)) return false;
    return true;
}

bool fx_config__positive(const json_t *root, const char *field, double fallback, double *out,
                         fx_error *err) {
    const json_t *value = fx_config__get(root, field);
    if (value && !json_is_number(value))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is not a number", field);
    if (!value && fallback <= 0) return fx_fail(err, FX_INVALID_ARGUMENT, "%s is missing", field);
    double number = value ? json_number_value(value) : fallback;
    if (!((float)number > 0) || !isfinite((float)number))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is %g, not a number > 0", field, number);
    *out = number;
    return true;
}

bool fx_config__bool(const json_t *root, const char *field, bool fallback, bool *out,
                     fx_error *err) {
    const json_t *value = fx_config__get(root, field);
    if (value && !json_is_boolean(value))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s is neither true nor false", field);
    *out = value ? json_is_true(value) : fallback;
    return true;
}

bool fx_config__off(const json_t *root, const char *field, fx_error *err) {
    bool on;
    if (!fx_config__bool(root, field, false, &on, err)) return false;
    return !on || fx_fail(err, FX_UNIMPLEMENTED, "%s true is not supported", field);
}

bool fx_config__absent(const json_t *root, const char *field, fx_error *err) {
    return !fx_config__get(root, field) ||
           fx_fail(err, FX_UNIMPLEMENTED, "%s is not supported", field);
}
