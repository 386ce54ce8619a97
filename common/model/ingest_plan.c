#include "common/model/ingest_plan.h"
#include <stdio.h>
#include "common/base/heap.h"

bool fx_plan__is_int4(const struct fx_plan *plan, const struct fx_plan_tensor *tensor) {
    return plan->dtype == FX_MODEL_INT4 && tensor->is.kind == FX_PACK_MATRIX;
}

enum fx_dtype fx_plan__dtype(const struct fx_plan *plan, const struct fx_plan_tensor *tensor) {
    bool half = plan->dtype == FX_MODEL_F16 && tensor->is.kind == FX_PACK_MATRIX;
    return half ? FX_DTYPE_F16 : FX_DTYPE_F32;
}

static FX_MUST bool check_shape(const struct fx_pack_tensor *is, const struct fx_tensor *tensor,
                                fx_error *err) {
    bool vector = is->kind == FX_PACK_VECTOR;
    char got[96] = "";
    size_t len = 0;
    if (vector && tensor->dims == 1 && tensor->shape[0] == is->cols) return true;
    if (!vector && tensor->dims == 2 && tensor->shape[0] == is->source_rows &&
        tensor->shape[1] == is->cols)
        return true;
    for (uint32_t i = 0; i < tensor->dims && len < sizeof got; i++)
        len += (size_t)snprintf(got + len, sizeof got - len, "%s%llu", i ? ", " : "",
                                (unsigned long long)tensor->shape[i]);
    if (vector)
        return fx_fail(err, FX_INVALID_ARGUMENT, "shape is [%s], the config wants [%u]", got,
                       is->cols);
    return fx_fail(err, FX_INVALID_ARGUMENT, "shape is [%s], the config wants [%u, %u]", got,
                   is->source_rows, is->cols);
}

static FX_MUST bool check_source(const struct fx_pack_tensor *is, const struct fx_tensor *tensor,
                                 fx_error *err) {
    if (tensor->dtype != FX_DTYPE_F32 && tensor->dtype != FX_DTYPE_F16 &&
        tensor->dtype != FX_DTYPE_BF16)
        return fx_fail(err, FX_UNIMPLEMENTED, "dtype %s is not supported (F32, F16, BF16 are)",
                       fx_dtype_name(tensor->dtype));
    return check_shape(is, tensor, err);
}

static FX_MUST bool plan_tensor(struct fx_plan *plan, struct fx_source *source, uint32_t i,
                                fx_error *err) {
    struct fx_plan_tensor *tensor = &plan->tensors[i];
    fx_pack_tensor(&plan->config, i, &tensor->is);
    struct fx_source_tensor *from = fx_source__find(source, tensor->is.source);
    if (!from)
        return fx_fail(err, FX_INVALID_ARGUMENT, "tensor '%s' is missing", tensor->is.source);
    if (!check_source(&tensor->is, from->tensor, err))
        return fx_wrap(err, "tensor '%s'", tensor->is.source);
    from->used = true;
    tensor->source = from;
    uint64_t at = (plan->pack_bytes + FX_PACK_ALIGN - 1) / FX_PACK_ALIGN * FX_PACK_ALIGN;
    enum fx_layout layout = fx_pack_layout(tensor->is.kind, plan->dtype);
    tensor->pack =
        (struct fx_manifest_tensor){at, fx_weight_bytes(layout, tensor->is.rows, tensor->is.cols),
                                    layout, tensor->is.rows, tensor->is.cols};
    plan->pack_bytes = at + tensor->pack.bytes;
    plan->source_bytes +=
        (uint64_t)tensor->is.rows * tensor->is.cols * fx_dtype_bytes(from->tensor->dtype);
    return true;
}

/* Written by old versions and of no use: tables that the config implies, the head of a tied
 * model. */
static bool may_ignore(const struct fx_plan *plan, const char *name) {
    static const char ending[] = ".rotary_emb.inv_freq";
    size_t len = strlen(name), end = sizeof ending - 1;
    return (plan->config.tied && strcmp(name, "lm_head.weight") == 0) ||
           (len > end && strcmp(name + len - end, ending) == 0);
}

static FX_MUST bool check_all_used(const struct fx_plan *plan, const struct fx_source *source,
                                   fx_error *err) {
    for (size_t i = 0; i < source->count; i++) {
        const char *name = source->tensors[i].tensor->name;
        if (!source->tensors[i].used && !may_ignore(plan, name))
            return fx_fail(err, FX_INVALID_ARGUMENT,
                           "tensor '%.150s' has no place in a model of this config", name);
    }
    return true;
}

bool fx_plan__make(struct fx_plan *plan, struct fx_source *source, fx_error *err) {
    plan->count = fx_pack_count(&plan->config);
    plan->tensors = fx_alloc(plan->count, sizeof *plan->tensors);
    if (!plan->tensors)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %u tensors", plan->count);
    for (uint32_t i = 0; i < plan->count; i++)
        if (!plan_tensor(plan, source, i, err)) return false;
    return check_all_used(plan, source, err) && fx_plan__cut(plan, err);
}

void fx_plan__done(struct fx_plan *plan) {
    free(plan->tensors);
    free(plan->slices);
    plan->tensors = NULL;
    plan->slices = NULL;
}
