#include "common/base/heap.h"
#include "common/model/ingest_plan.h"

/* At most what a tensor costs in a part's header and in padding, beside its name. */
enum { ENTRY_BYTES = 384, HEADER_BYTES = 128 };

/* The part being filled. */
struct fill {
    uint32_t part, specs;
    uint64_t bytes; /* an upper bound of the file's size */
};

static uint32_t specs_of(const struct fx_plan *plan, const struct fx_plan_tensor *tensor) {
    return fx_plan__is_int4(plan, tensor) ? 2 : 1;
}

static uint64_t row_bytes(const struct fx_plan *plan, const struct fx_plan_tensor *tensor) {
    if (fx_plan__is_int4(plan, tensor))
        return (uint64_t)fx_plan__blocks(tensor->is.cols) * (FX_BLOCK / 2 + sizeof(float));
    return (uint64_t)tensor->is.cols * fx_dtype_bytes(fx_plan__dtype(plan, tensor));
}

static uint64_t entry_bytes(const struct fx_plan *plan, const struct fx_plan_tensor *tensor) {
    return specs_of(plan, tensor) * (ENTRY_BYTES + (uint64_t)strlen(tensor->is.name));
}

static FX_MUST bool add_slice(struct fx_plan *plan, struct fx_plan_slice slice, fx_error *err) {
    if (plan->slice_count == plan->slice_cap) {
        uint32_t cap = plan->slice_cap ? plan->slice_cap * 2 : plan->count;
        struct fx_plan_slice *slices = fx_realloc(plan->slices, cap, sizeof *slices);
        if (!slices) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %u slices", cap);
        plan->slices = slices;
        plan->slice_cap = cap;
    }
    plan->slices[plan->slice_count++] = slice;
    plan->tensors[slice.tensor].slice_count++;
    return true;
}

/* How many of the rows from `row` on go into the part, 0: a new part is better. */
static uint32_t rows_that_fit(const struct fx_plan *plan, const struct fx_plan_tensor *tensor,
                              const struct fill *fill, uint32_t row) {
    uint64_t each = row_bytes(plan, tensor), entry = entry_bytes(plan, tensor);
    uint32_t rest = tensor->is.rows - row;
    uint64_t cap = plan->part_bytes_max;
    if (fill->bytes + entry + rest * each <= cap) return rest;
    bool is_empty = fill->specs == 0;
    if (!is_empty) return 0;
    uint64_t room = cap > fill->bytes + entry ? cap - fill->bytes - entry : 0;
    return (uint32_t)(room / each / FX_TILE_ROWS * FX_TILE_ROWS);
}

static FX_MUST bool cut_tensor(struct fx_plan *plan, uint32_t i, struct fill *fill, fx_error *err) {
    struct fx_plan_tensor *tensor = &plan->tensors[i];
    tensor->slice_first = plan->slice_count;
    for (uint32_t row = 0; row < tensor->is.rows;) {
        uint32_t rows = rows_that_fit(plan, tensor, fill, row);
        if (!rows && fill->specs) {
            *fill = (struct fill){fill->part + 1, 0, HEADER_BYTES};
            continue;
        }
        if (!rows)
            return fx_fail(err, FX_INVALID_ARGUMENT,
                           "tensor '%s': %d rows do not fit a part of %u bytes", tensor->is.name,
                           FX_TILE_ROWS, plan->part_bytes_max);
        if (!add_slice(plan, (struct fx_plan_slice){i, fill->part, row, rows, fill->specs}, err))
            return false;
        fill->specs += specs_of(plan, tensor);
        fill->bytes += entry_bytes(plan, tensor) + rows * row_bytes(plan, tensor);
        row += rows;
    }
    return true;
}

bool fx_plan__cut(struct fx_plan *plan, fx_error *err) {
    struct fill fill = {0, 0, HEADER_BYTES};
    for (uint32_t i = 0; i < plan->count; i++)
        if (!cut_tensor(plan, i, &fill, err)) return false;
    plan->part_count = fill.part + 1;
    return true;
}
