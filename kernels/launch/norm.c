#include "kernels/launch/launch.h"
#include <string.h>

struct norm_set {
    const struct fx_kernels *kernels;
    const struct fx_exec *exec;
    const float *gain; /* NULL: as it is */
    bool codes;
};

static void norm_row(void *arg, uint32_t row) {
    const struct norm_set *set = arg;
    const struct fx_act *act = &set->exec->normed;
    const float *x = set->exec->x + (size_t)row * act->cols;
    float *out = act->x + (size_t)row * act->stride;
    if (set->gain)
        set->kernels->norm(x, set->gain, act->cols, set->exec->shape.norm_eps, out);
    else
        memcpy(out, x, act->cols * sizeof *out);
    if (set->codes) set->kernels->encode(act, row);
}

void fx_launch_norm(const struct fx_kernels *kernels, struct fx_exec *exec,
                    const struct fx_step *step, const struct fx_weight *gain, bool codes) {
    FX_ASSERT(step->rows <= exec->rows_max);
    FX_ASSERT(!gain->data ||
              (gain->layout == FX_LAYOUT_F32_ROW && gain->cols == exec->shape.hidden));
    struct norm_set set = {kernels, exec, gain->data, codes};
    fx_launch_rows(exec, step->rows, (uint64_t)exec->shape.hidden * 4, norm_row, &set);
    fx_launch_end(exec);
}
