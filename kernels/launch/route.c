#include "kernels/launch/launch.h"

struct route_set {
    const struct fx_kernels *kernels;
    const struct fx_exec *exec;
};

static void route_row(void *arg, uint32_t row) {
    const struct route_set *set = arg;
    const struct fx_exec *exec = set->exec;
    size_t experts = exec->shape.experts, per_row = exec->shape.experts_per_token;
    set->kernels->route(exec->router_logits + row * experts, (uint32_t)experts, (uint32_t)per_row,
                        exec->shape.gates_raw, exec->chosen + row * per_row,
                        exec->chosen_weight + row * per_row);
}

void fx_launch_route(const struct fx_kernels *kernels, struct fx_exec *exec,
                     const struct fx_step *step, const struct fx_weight *router) {
    uint32_t experts = exec->shape.experts, per_row = exec->shape.experts_per_token;
    FX_ASSERT(step->rows <= exec->rows_max && router->rows == experts && experts > 0);
    FX_ASSERT(!fx_wants_codes(router)); /* a routing decision is worth f32 */
    (void)fx_launch_mul(exec, 0, router, &exec->normed, step->rows, exec->router_logits, experts);
    fx_launch_muls(kernels, exec, 1);
    fx_launch_count_dense(exec, router, step->rows);
    struct route_set set = {kernels, exec};
    fx_launch_rows(exec, step->rows, (uint64_t)experts * 16, route_row, &set);
    fx_slots(exec->chosen, step->rows * per_row, per_row, experts, exec->expert_offset, exec->slot,
             exec->slot_row);
    fx_launch_end(exec);
}
