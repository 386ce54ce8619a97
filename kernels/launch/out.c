#include "kernels/launch/launch.h"

void fx_launch_out(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_step *step, const struct fx_weight *weight) {
    FX_ASSERT(step->rows <= exec->rows_max && weight->rows == exec->shape.hidden);
    struct fx_mul *mul =
        fx_launch_mul(exec, 0, weight, &exec->mixed, step->rows, exec->x, weight->rows);
    mul->add = true;
    fx_launch_muls(kernels, exec, 1);
    fx_launch_count_dense(exec, weight, step->rows);
    fx_launch_end(exec);
}
