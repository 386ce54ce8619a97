#pragma once
#include "common/model/jinja.h"

struct json_t;

/** A JSON value as a template sees it; all its strings count as the user's. They are borrowed from
 *  `json`, the rest is in `arena`. */
FX_MUST bool fx_template__json(const struct json_t *json, fx_arena *arena,
                               struct fx_jinja_value *out, fx_error *err);
