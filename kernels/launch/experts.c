#include "kernels/launch/launch.h"
#include <string.h>

struct expert_set {
    const struct fx_kernels *kernels;
    struct fx_exec *exec;
    bool codes;
};

static void swiglu_slot(void *arg, uint32_t slot) {
    const struct expert_set *set = arg;
    const struct fx_act *inner = &set->exec->inner;
    size_t at = (size_t)slot * inner->stride;
    set->kernels->swiglu(set->exec->gate + at, set->exec->up + at, inner->cols, inner->x + at);
    memset(inner->x + at + inner->cols, 0, (inner->stride - inner->cols) * sizeof *inner->x);
    if (set->codes) set->kernels->encode(inner, slot);
}

static void combine_row(void *arg, uint32_t row) {
    const struct expert_set *set = arg;
    struct fx_exec *exec = set->exec;
    size_t per_row = exec->shape.experts_per_token, hidden = exec->shape.hidden;
    set->kernels->combine(exec->expert_out, exec->slot + row * per_row,
                          exec->chosen + row * per_row, exec->chosen_weight + row * per_row,
                          (uint32_t)per_row, (uint32_t)hidden, exec->x + row * hidden);
}

static void count_expert(struct fx_exec *exec, const struct fx_weight *weight, uint32_t rows) {
    exec->counts.expert_matmuls++;
    exec->counts.expert_rows += rows;
    exec->counts.weight_bytes += fx_weight_bytes(weight->layout, weight->rows, weight->cols);
}

/* gate and up of every expert that has rows, as one set. */
static void gate_up(const struct fx_kernels *kernels, struct fx_exec *exec,
                    const struct fx_mlp *experts) {
    uint32_t muls = 0;
    for (uint32_t e = 0; e < exec->shape.experts; e++) {
        uint32_t first = exec->expert_offset[e], rows = exec->expert_offset[e + 1] - first;
        if (rows == 0) continue;
        const struct fx_weight *weights[] = {&experts[e].gate, &experts[e].up};
        float *outs[] = {exec->gate, exec->up};
        for (uint32_t i = 0; i < 2; i++) {
            FX_ASSERT(weights[i]->rows == exec->inner.cols);
            struct fx_mul *mul =
                fx_launch_mul(exec, muls++, weights[i], &exec->normed, rows,
                              outs[i] + (size_t)first * exec->inner.stride, exec->inner.stride);
            mul->row_of = exec->slot_row + first;
            count_expert(exec, weights[i], rows);
        }
    }
    fx_launch_muls(kernels, exec, muls);
}

/* down of every expert that has rows; its rows are the slots from `first` on. */
static void down(const struct fx_kernels *kernels, struct fx_exec *exec,
                 const struct fx_mlp *experts) {
    uint32_t muls = 0;
    for (uint32_t e = 0; e < exec->shape.experts; e++) {
        uint32_t first = exec->expert_offset[e], rows = exec->expert_offset[e + 1] - first;
        if (rows == 0) continue;
        const struct fx_weight *weight = &experts[e].down;
        FX_ASSERT(weight->rows == exec->shape.hidden);
        struct fx_mul *mul =
            fx_launch_mul(exec, muls++, weight, &exec->inner, rows,
                          exec->expert_out + (size_t)first * weight->rows, weight->rows);
        mul->row_first = first;
        count_expert(exec, weight, rows);
    }
    fx_launch_muls(kernels, exec, muls);
}

/* Placement other than this machine's memory needs a backend that streams: not this one. */
static void check_homes(const struct fx_homes *homes, uint32_t layer, const uint32_t *offset) {
    if (!homes) return;
    FX_ASSERT(layer < homes->layers);
    const struct fx_home *home = homes->at + (size_t)layer * homes->experts;
    for (uint32_t e = 0; e < homes->experts; e++)
        FX_ASSERT(offset[e] == offset[e + 1] || home[e].tier == FX_TIER_RAM);
}

static bool any_wants_codes(const struct fx_mlp *experts, uint32_t count) {
    for (uint32_t e = 0; e < count; e++)
        if (fx_wants_codes(&experts[e].down)) return true;
    return false;
}

void fx_launch_experts(const struct fx_kernels *kernels, struct fx_exec *exec,
                       const struct fx_step *step, uint32_t layer, const struct fx_mlp *experts) {
    const struct fx_shape *shape = &exec->shape;
    FX_ASSERT(step->rows <= exec->rows_max && shape->experts > 0);
    check_homes(step->homes, layer, exec->expert_offset);
    uint32_t slots = exec->expert_offset[shape->experts];
    struct expert_set set = {kernels, exec, any_wants_codes(experts, shape->experts)};
    (void)fx_exec_inner(exec, shape->expert_ffn);
    gate_up(kernels, exec, experts);
    fx_launch_rows(exec, slots, (uint64_t)shape->expert_ffn * 16, swiglu_slot, &set);
    down(kernels, exec, experts);
    fx_launch_rows(exec, step->rows, (uint64_t)shape->hidden * shape->experts_per_token,
                   combine_row, &set);
    fx_launch_end(exec);
}

void fx_launch_mlp(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_step *step, const struct fx_mlp *weights,
                   const struct fx_after *after) {
    uint32_t rows = step->rows, width = weights->gate.rows;
    const struct fx_act *inner = fx_exec_inner(exec, width);
    FX_ASSERT(rows <= exec->rows_max && weights->up.rows == width);
    FX_ASSERT(width == exec->shape.ffn || width == exec->shape.shared_ffn);
    (void)fx_launch_mul(exec, 0, &weights->gate, &exec->normed, rows, exec->gate, inner->stride);
    (void)fx_launch_mul(exec, 1, &weights->up, &exec->normed, rows, exec->up, inner->stride);
    fx_launch_muls(kernels, exec, 2);
    fx_launch_count_dense(exec, &weights->gate, rows);
    fx_launch_count_dense(exec, &weights->up, rows);
    struct expert_set set = {kernels, exec, fx_wants_codes(&weights->down)};
    fx_launch_rows(exec, rows, (uint64_t)width * 16, swiglu_slot, &set);
    fx_launch_add(kernels, exec, &weights->down, inner, rows, after);
    fx_launch_end(exec);
}
