#include "kernels/launch/launch.h"

void fx_launch_out(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_step *step, const struct fx_weight *weight,
                   const struct fx_after *after) {
    fx_launch_add(kernels, exec, weight, &exec->mixed, step->rows, after);
    fx_launch_end(exec);
}
