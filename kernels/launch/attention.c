#include "kernels/launch/launch.h"

struct attend_set {
    const struct fx_kernels *kernels;
    const struct fx_exec *exec;
    const struct fx_step *step;
    const struct fx_kv *kv;
    uint32_t window;
};

/* Unit = row * kv_heads + kv_head. */
static void attend_unit(void *arg, uint32_t unit) {
    const struct attend_set *set = arg;
    const struct fx_exec *exec = set->exec;
    const struct fx_shape *shape = &exec->shape;
    const struct fx_step *step = set->step;
    uint32_t row = unit / shape->kv_heads, position = step->positions[row];
    size_t q_width = (size_t)shape->heads * shape->head_dim;
    bool cut = set->window && position >= set->window;
    const struct fx_attend attend = {
        .shape = shape,
        .kv = set->kv,
        .table = step->tables + (size_t)step->sequences[row] * step->table_stride,
        .page_tokens = step->page_tokens,
        .first = cut ? position - set->window + 1 : 0,
        .position = position,
        .q = exec->q + row * q_width,
        .out = exec->mixed.x + (size_t)row * exec->mixed.stride,
    };
    set->kernels->attend(&attend, unit % shape->kv_heads);
}

/* The longest row bounds the cost of a unit. */
static uint64_t unit_cost(const struct fx_shape *shape, const struct fx_step *step) {
    uint32_t longest = 0;
    for (uint32_t row = 0; row < step->rows; row++)
        if (step->positions[row] > longest) longest = step->positions[row];
    return (longest + 1ull) * shape->head_dim * 2 * (shape->heads / shape->kv_heads);
}

void fx_launch_attention(const struct fx_kernels *kernels, struct fx_exec *exec,
                         const struct fx_step *step, const struct fx_kv *kv, uint32_t window,
                         bool codes) {
    FX_ASSERT(step->rows <= exec->rows_max);
    FX_ASSERT(step->page_tokens >= 8 && FX_BLOCK % step->page_tokens == 0);
    struct attend_set set = {kernels, exec, step, kv, window};
    fx_launch_rows(exec, step->rows * exec->shape.kv_heads, unit_cost(&exec->shape, step),
                   attend_unit, &set);
    if (codes) fx_launch_encode(kernels, exec, &exec->mixed, step->rows);
    fx_launch_end(exec);
}
