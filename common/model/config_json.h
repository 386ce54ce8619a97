#pragma once
#include <jansson.h>
#include "common/base/error.h"
#include "common/base/span.h"

FX_DEFINE_AUTO(json_t, json_decref)

/** How much a text may make us allocate before it is looked at. */
struct fx_json_limits {
    size_t depth_max, values_max;
};

/** One JSON object: valid UTF-8, no duplicate member, within the limits.
 *  @own caller, json_decref @err INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
FX_MUST bool fx_config__json(fx_span text, struct fx_json_limits limits, json_t **out,
                             fx_error *err);
