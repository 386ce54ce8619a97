#include "kernels/launch/launch.h"

void fx_launch_embed(struct fx_exec *exec, const struct fx_step *step,
                     const struct fx_weight *table) {
    FX_ASSERT(step->rows <= exec->rows_max && table->cols == exec->shape.hidden);
    for (uint32_t row = 0; row < step->rows; row++)
        fx_weight_row(table, step->tokens[row], exec->x + (size_t)row * table->cols);
    fx_launch_end(exec);
}
