#include "common/model/ingest_specs.h"
#include <stdio.h>
#include "common/base/heap.h"

static void add(struct fx_part_specs *specs, const char *name, const char *ending,
                enum fx_dtype dtype, uint64_t rows, uint64_t cols) {
    char *text = specs->names[specs->count];
    (void)snprintf(text, sizeof specs->names[0], "%s%s", name, ending);
    specs->at[specs->count++] = (struct fx_tensor_spec){
        text, dtype, 2, {rows, cols}
    };
}

/* A tensor that is not cut keeps its name, a piece is called by its first row. */
static void add_slice(const struct fx_plan *plan, const struct fx_plan_slice *slice,
                      struct fx_part_specs *specs) {
    const struct fx_plan_tensor *tensor = &plan->tensors[slice->tensor];
    char name[FX_PACK_NAME_MAX + 16];
    bool is_cut = tensor->slice_count > 1;
    (void)snprintf(name, sizeof name, is_cut ? "%s#%u" : "%s", tensor->is.name, slice->row);
    if (fx_plan__is_int4(plan, tensor)) {
        uint64_t blocks = fx_plan__blocks(tensor->is.cols);
        add(specs, name, ".q4", FX_DTYPE_U8, slice->rows, blocks * (FX_BLOCK / 2));
        add(specs, name, ".scale", FX_DTYPE_F32, slice->rows, blocks);
        return;
    }
    add(specs, name, "", fx_plan__dtype(plan, tensor), slice->rows, tensor->is.cols);
    if (tensor->is.kind == FX_PACK_VECTOR) {
        struct fx_tensor_spec *vector = &specs->at[specs->count - 1];
        vector->dims = 1;
        vector->shape[0] = tensor->is.cols;
    }
}

bool fx_part_specs__make(const struct fx_plan *plan, uint32_t part, struct fx_part_specs *specs,
                         fx_error *err) {
    size_t slices = 0;
    for (uint32_t i = 0; i < plan->slice_count; i++)
        slices += plan->slices[i].part == part;
    specs->at = fx_alloc(slices * 2, sizeof *specs->at);
    specs->names = fx_alloc(slices * 2, sizeof *specs->names);
    if (!specs->at || !specs->names)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu tensors", slices);
    for (uint32_t i = 0; i < plan->slice_count; i++)
        if (plan->slices[i].part == part) add_slice(plan, &plan->slices[i], specs);
    return true;
}

void fx_part_specs__done(struct fx_part_specs *specs) {
    free(specs->at);
    free(specs->names);
    *specs = (struct fx_part_specs){0};
}
