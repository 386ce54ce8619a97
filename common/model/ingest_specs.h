#pragma once
#include "common/model/ingest_plan.h"

/** The tensors of one part file. */
struct fx_part_specs {
    struct fx_tensor_spec *at;
    char (*names)[FX_PACK_NAME_MAX + 32];
    size_t count;
};
/** @own caller, fx_part_specs__done, also after a failure; `specs` begins zeroed */
FX_MUST bool fx_part_specs__make(const struct fx_plan *plan, uint32_t part,
                                 struct fx_part_specs *specs, fx_error *err);
void fx_part_specs__done(struct fx_part_specs *specs);
