#include "kernels/launch/launch.h"
#include "kernels/math.h"

struct add_set {
    const struct fx_kernels *kernels;
    const struct fx_exec *exec;
    const float *gain, *gates; /* or NULL */
};

/* x += sigmoid(gate) * norm(branch) of one row. */
static void add_row(void *arg, uint32_t row) {
    const struct add_set *set = arg;
    const struct fx_shape *shape = &set->exec->shape;
    float *branch = set->exec->branch + (size_t)row * shape->hidden;
    float *x = set->exec->x + (size_t)row * shape->hidden;
    if (set->gain) set->kernels->norm(branch, set->gain, shape->hidden, shape->norm_eps, branch);
    float gate = set->gates ? 1.0f / (1.0f + fx_expf(-set->gates[row])) : 1.0f;
    for (uint32_t i = 0; i < shape->hidden; i++)
        x[i] += gate * branch[i];
}

void fx_launch_add(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_weight *weight, const struct fx_act *act, uint32_t rows,
                   const struct fx_after *after) {
    const struct fx_weight *norm = after ? fx_weight_given(after->norm) : NULL;
    const struct fx_weight *gate = after ? fx_weight_given(after->gate) : NULL;
    uint32_t hidden = exec->shape.hidden;
    bool at_once = !norm && !gate;
    FX_ASSERT(weight->rows == hidden && rows <= exec->rows_max);
    fx_launch_mul(exec, 0, weight, act, rows, at_once ? exec->x : exec->branch, hidden)->add =
        at_once;
    if (gate) (void)fx_launch_mul(exec, 1, gate, &exec->normed, rows, exec->branch_gate, 1);
    fx_launch_muls(kernels, exec, gate ? 2 : 1);
    fx_launch_count_dense(exec, weight, rows);
    if (gate) fx_launch_count_dense(exec, gate, rows);
    if (at_once) return;
    struct add_set set = {kernels, exec, norm ? norm->data : NULL, gate ? exec->branch_gate : NULL};
    fx_launch_rows(exec, rows, (uint64_t)hidden * 4, add_row, &set);
}
