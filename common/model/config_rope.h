#pragma once
#include "common/model/config_field.h"

/** rope_theta, rope_scaling and, of transformers 5, rope_parameters. @pre out->family, context_max
 *  @err INVALID_ARGUMENT, UNIMPLEMENTED: a type we do not compute */
FX_MUST bool fx_config__rope(const json_t *root, struct fx_model_config *out, fx_error *err);
