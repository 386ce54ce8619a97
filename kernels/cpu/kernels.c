#include "kernels/launch/launch.h"
#include <stddef.h>

#if defined(__x86_64__)
#include "kernels/cpu/cpu.h"
#include <cpuid.h>

static const struct fx_kernels avx2_kernels = {
    .matmul = fx_avx2_matmul,
    .norm = fx_avx2_norm,
    .encode = fx_avx2_encode,
    .rope = fx_avx2_rope,
    .kv_write = fx_avx2_kv_write,
    .attend = fx_avx2_attend,
    .route = fx_avx2_route,
    .swiglu = fx_avx2_swiglu,
    .combine = fx_avx2_combine,
};

static bool has_avx2_fma_f16c(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const struct fx_kernels *fx_cpu_kernels(void) {
    enum { UNKNOWN, NO, YES };
    static _Atomic int known = UNKNOWN; /* cpuid traps in a virtual machine: asked once */
    int level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level == UNKNOWN) {
        level = has_avx2_fma_f16c() ? YES : NO;
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return level == YES ? &avx2_kernels : NULL;
}
#else
const struct fx_kernels *fx_cpu_kernels(void) {
    return NULL;
}
#endif
