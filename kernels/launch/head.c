#include "kernels/launch/launch.h"

struct head_set {
    const struct fx_kernels *kernels;
    const struct fx_exec *exec;
    const struct fx_step *step;
    const float *gain;
    bool codes;
};

static void norm_logit_row(void *arg, uint32_t index) {
    const struct head_set *set = arg;
    const struct fx_act *act = &set->exec->last;
    uint32_t row = set->step->logit_of[index];
    FX_ASSERT(row < set->step->rows);
    set->kernels->norm(set->exec->x + (size_t)row * act->cols, set->gain, act->cols,
                       set->exec->shape.norm_eps, act->x + (size_t)index * act->stride);
    if (set->codes) set->kernels->encode(act, index);
}

void fx_launch_head(const struct fx_kernels *kernels, struct fx_exec *exec,
                    const struct fx_step *step, const struct fx_weight *gain,
                    const struct fx_weight *weight) {
    uint32_t rows = step->logit_rows;
    FX_ASSERT(rows <= exec->logit_rows_max && gain->cols == exec->shape.hidden);
    FX_ASSERT(gain->layout == FX_LAYOUT_F32_ROW && weight->rows == exec->shape.vocab);
    if (rows) {
        struct head_set set = {kernels, exec, step, gain->data, fx_wants_codes(weight)};
        fx_launch_rows(exec, rows, (uint64_t)gain->cols * 4, norm_logit_row, &set);
        (void)fx_launch_mul(exec, 0, weight, &exec->last, rows, exec->logits, weight->rows);
        fx_launch_muls(kernels, exec, 1);
        fx_launch_count_dense(exec, weight, rows);
    }
    fx_launch_end(exec);
}
