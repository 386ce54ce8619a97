#pragma once
#include "common/model/config.h"
#include "common/model/config_json.h"

/* Reading members of config.json: for config.c and the families. Absent and null are the same;
 * errors name the member. */

/** NULL: absent, or null. */
const json_t *fx_config__get(const json_t *root, const char *field);

enum { FX_CONFIG_REQUIRED = -1 };
struct fx_config_number {
    const char *name;
    int64_t fallback; /* FX_CONFIG_REQUIRED: none */
    uint32_t min, max;
    uint32_t *out;
};
/** @err INVALID_ARGUMENT */
FX_MUST bool fx_config__number(const json_t *root, struct fx_config_number field, fx_error *err);
FX_MUST bool fx_config__numbers(const json_t *root, const struct fx_config_number *fields,
                                size_t count, fx_error *err);
/** A finite number > 0; fallback 0: it must be there. @err INVALID_ARGUMENT */
FX_MUST bool fx_config__positive(const json_t *root, const char *field, double fallback,
                                 double *out, fx_error *err);
/** @err INVALID_ARGUMENT */
FX_MUST bool fx_config__bool(const json_t *root, const char *field, bool fallback, bool *out,
                             fx_error *err);
/** `field` must be absent or false. @err INVALID_ARGUMENT, UNIMPLEMENTED */
FX_MUST bool fx_config__off(const json_t *root, const char *field, fx_error *err);
/** `field` must be absent or null. @err UNIMPLEMENTED */
FX_MUST bool fx_config__absent(const json_t *root, const char *field, fx_error *err);
