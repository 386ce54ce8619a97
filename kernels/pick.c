#include "kernels/launch/table.h"
#include <string.h>

/* What a processor without the vector kernels runs as "cpu": the reference. */
static const struct fx_kernels *best_kernels(void) {
    const struct fx_kernels *kernels = fx_cpu_kernels();
    return kernels ? kernels : &fx_ref_kernels;
}

FX_BACKEND(ref_ops, "ref", &fx_ref_kernels);
FX_BACKEND(cpu_ops, "cpu", best_kernels());

const struct fx_ops *fx_ops_pick(const char *name, fx_error *err) {
    static const struct fx_ops *const all[] = {&ref_ops, &cpu_ops};
    for (size_t i = 0; i < FX_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    fx_error_set(err, FX_INVALID_ARGUMENT, "backend '%s' is not one of ref, cpu", name);
    return NULL;
}

const char *fx_ops_cpu_level(void) {
    return fx_cpu_kernels() ? "avx2" : "plain";
}
